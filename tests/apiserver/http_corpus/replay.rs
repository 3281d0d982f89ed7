//! Sends the steps of a sequence, watches beside the steps that run during them.

use admit_apiserver::{Identity, Server};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use super::compare::Bindings;

pub struct Replay {
    router: axum::Router,
    bindings: Bindings,
}

/// A step's number, and what differs.
pub type Outcome = (u64, Result<(), String>);

impl Replay {
    pub fn new(server: &Server) -> Self {
        Self { router: server.router(), bindings: Bindings::default() }
    }

    pub async fn fixtures(&self, definitions: &[Value]) {
        for definition in definitions {
            let body = definition.get("body").or(definition.get("manifest")).unwrap_or(definition);
            let request = json!({
                "method": "POST", "path": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                "headers": {"Content-Type": "application/json"}, "body": body
            });
            let answer = receive(send(self.router.clone(), &request).await).await;
            assert_eq!(answer.status, 201, "a fixture is refused: {}", String::from_utf8_lossy(&answer.body));
        }
    }

    pub async fn run(&mut self, sequence: &Value) -> Vec<Outcome> {
        if let Some(namespace) = sequence["namespace"].as_str() {
            let request = json!({
                "method": "POST", "path": "/api/v1/namespaces", "headers": {"Content-Type": "application/json"},
                "body": {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            });
            assert_eq!(send(self.router.clone(), &request).await.status(), 201, "namespace {namespace}");
        }
        let mut outcomes = Vec::new();
        let mut watches: Vec<(u64, &Value, JoinHandle<Received>)> = Vec::new();
        for step in sequence["steps"].as_array().unwrap() {
            let n = step["n"].as_u64().unwrap();
            let request = self.bindings.fill_value(&step["request"]);
            if let Some(during) = step.get("duringSteps").or_else(|| step["response"].get("duringSteps")) {
                let last = during[1].as_u64().unwrap();
                let router = self.router.clone();
                let response = send(router, &request).await;
                watches.push((last, step, tokio::spawn(receive(response))));
                continue;
            }
            let received = receive(send(self.router.clone(), &request).await).await;
            outcomes.push((n, self.compare(step, &received)));
            let (ended, open): (Vec<_>, Vec<_>) = watches.into_iter().partition(|(last, _, _)| *last <= n);
            watches = open;
            for (_, watched, task) in ended {
                let received = task.await.unwrap();
                outcomes.push((watched["n"].as_u64().unwrap(), self.compare(watched, &received)));
            }
        }
        for (_, watched, task) in watches {
            let received = task.await.unwrap();
            outcomes.push((watched["n"].as_u64().unwrap(), self.compare(watched, &received)));
        }
        outcomes
    }

    fn compare(&mut self, step: &Value, received: &Received) -> Result<(), String> {
        let expected = &step["response"];
        let Some(status) = expected["status"].as_u64() else { return Ok(()) };
        if status != u64::from(received.status) {
            let body: String = String::from_utf8_lossy(&received.body).chars().take(400).collect();
            return Err(format!("status {} instead of {status}: {body}", received.status));
        }
        self.warnings(&expected["headers"], received)?;
        let content_type = expected["headers"]["Content-Type"].as_str().unwrap_or_default();
        if content_type != received.content_type {
            return Err(format!("Content-Type {} instead of {content_type}", received.content_type));
        }
        let note = step["note"].as_str().unwrap_or_default();
        if note.contains("left out") || note.contains("cut") {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&received.body);
        if let Some(body) = expected.get("body") {
            let found: Value =
                serde_json::from_str(&text).map_err(|error| format!("no JSON: {error}: {text}"))?;
            return self.bindings.same(body, &found, "");
        }
        if let Some(stream) = expected.get("stream") {
            let found: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            return self.bindings.same(stream, &Value::Array(found), "stream");
        }
        match expected.get("bodyText").and_then(Value::as_str) {
            Some(body) => self.bindings.same_text(body, &text, "body"),
            None => Ok(()),
        }
    }

    fn warnings(&mut self, headers: &Value, received: &Received) -> Result<(), String> {
        let expected: Vec<Value> = match &headers["Warning"] {
            Value::Null => Vec::new(),
            Value::Array(list) => list.clone(),
            one => vec![one.clone()],
        };
        let found: Vec<Value> = received.warnings.iter().map(|text| text.as_str().into()).collect();
        self.bindings.same(&Value::Array(expected), &Value::Array(found), "Warning")
    }
}

struct Received {
    status: u16,
    content_type: String,
    warnings: Vec<String>,
    body: Vec<u8>,
}

async fn receive(response: Response<Body>) -> Received {
    let (parts, body) = response.into_parts();
    let text = |name: &str| -> Vec<String> {
        let values = parts.headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let status = parts.status.as_u16();
    let content_type = text("content-type").into_iter().next().unwrap_or_default();
    let warnings = text("warning");
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Received { status, content_type, warnings, body }
}

async fn send(router: axum::Router, request: &Value) -> Response<Body> {
    let mut uri = request["path"].as_str().unwrap().to_owned();
    if let Some(query) = request["query"].as_str().filter(|query| !query.is_empty()) {
        uri = format!("{uri}?{query}");
    }
    let mut builder = Request::builder().method(request["method"].as_str().unwrap()).uri(uri);
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        builder = builder.header(name, value.as_str().unwrap());
    }
    let mut identity = Identity::admin();
    let credential = "authentication.kubernetes.io/credential-id".to_owned();
    identity.extra.insert(credential, vec!["X509SHA256=0".to_owned()]);
    if request["anonymous"] == true {
        identity = Identity::anonymous();
    }
    builder = builder.extension(identity);
    router.oneshot(builder.body(Body::from(body(request))).unwrap()).await.unwrap()
}

fn body(request: &Value) -> Vec<u8> {
    if let Some(body) = request.get("body") {
        return body.to_string().into_bytes();
    }
    if let Some(text) = request["bodyText"].as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(encoded) = request["bodyBase64"].as_str() {
        return STANDARD.decode(encoded).unwrap();
    }
    if let Some(repeat) = request.get("bodyRepeat") {
        let part = |name: &str| repeat[name].as_str().unwrap_or_default().to_owned();
        let count = usize::try_from(repeat["count"].as_u64().unwrap()).unwrap();
        return format!("{}{}{}", part("prefix"), part("unit").repeat(count), part("suffix")).into_bytes();
    }
    Vec::new()
}
