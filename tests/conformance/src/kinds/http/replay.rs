//! Sends the steps of a sequence to a server in process; watches run beside the steps.

use std::io::Read as _;

use admit_apiserver::{AdmissionPlugins, Clock, Identity, Server};
use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::ServiceExt as _;

use super::compare::Bindings;

/// Where the server would be if it listened.
const HOST: &str = "127.0.0.1:6443";

/// When the sequences were recorded: a server that replays them is at that time.
const RECORDED: &str = "2026-11-21T12:00:00Z";

/// A step's number, and what differs.
pub(super) type Step = (u64, Result<(), String>);

/// A server, and what placeholders stand for in its answers.
pub(super) struct Replay {
    router: axum::Router,
    bindings: Bindings,
}

/// A watch whose answer is read while later steps run.
struct Watch<'s> {
    /// The last step that it covers.
    until: u64,
    step: &'s Value,
    answer: JoinHandle<Result<Received, String>>,
}

impl Replay {
    /// A server that holds what the sequence starts from.
    pub(super) async fn start(sequence: &Value, definitions: &[Value]) -> Result<Self, String> {
        let replay = Self {
            router: server(Clock::starting_at(recorded()?)).await?.router(),
            bindings: Bindings::default(),
        };
        for definition in definitions {
            replay.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await?;
        }
        if let Some(name) = sequence["namespace"].as_str() {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            replay.create("/api/v1/namespaces", &namespace).await?;
        }
        Ok(replay)
    }

    async fn create(&self, path: &str, object: &Value) -> Result<(), String> {
        let request = json!({
            "method": "POST", "path": path, "headers": {"Content-Type": "application/json"}, "body": object
        });
        let answer = receive(send(self.router.clone(), &request, user(&request)).await?).await?;
        match answer.status {
            201 => Ok(()),
            status => Err(format!("{path}: status {status}: {}", String::from_utf8_lossy(&answer.body))),
        }
    }

    pub(super) async fn run(&mut self, sequence: &Value) -> Vec<Step> {
        let mut outcomes = Vec::new();
        let mut open: Vec<Watch<'_>> = Vec::new();
        let steps: Vec<&Value> = super::super::steps(sequence).collect();
        for (at, step) in steps.iter().copied().enumerate() {
            let number = step["n"].as_u64().unwrap_or_default();
            let request = self.bindings.fill_value(&step["request"]);
            self.bindings.generating(generated_prefix(&request));
            let during = step.get("duringSteps").or_else(|| step["response"].get("duringSteps"));
            if let Some(during) = during {
                match send(self.router.clone(), &request, user(&request)).await {
                    Ok(response) => open.push(Watch {
                        until: during[1].as_u64().unwrap_or(number),
                        step,
                        answer: tokio::spawn(receive(response)),
                    }),
                    Err(problem) => outcomes.push((number, Err(problem))),
                }
                continue;
            }
            let outcome = match send(self.router.clone(), &request, user(&request)).await {
                Ok(response) => match (
                    receive(response).await,
                    overwritten(step, steps.get(at + 1..).unwrap_or_default()),
                ) {
                    (Ok(answer), Some(step)) => self.compare(&step, &answer),
                    (Ok(answer), None) => self.compare(step, &answer),
                    (Err(problem), _) => Err(problem),
                },
                Err(problem) => Err(problem),
            };
            outcomes.push((number, outcome));
            let (ended, still_open) = open.into_iter().partition(|watch| watch.until <= number);
            open = still_open;
            self.end(ended, &mut outcomes).await;
        }
        self.end(open, &mut outcomes).await;
        outcomes
    }

    async fn end(&mut self, watches: Vec<Watch<'_>>, outcomes: &mut Vec<Step>) {
        for watch in watches {
            let outcome = match watch.answer.await {
                Ok(answer) => answer.and_then(|answer| self.compare(watch.step, &answer)),
                Err(error) => Err(error.to_string()),
            };
            outcomes.push((watch.step["n"].as_u64().unwrap_or_default(), outcome));
        }
    }

    fn compare(&mut self, step: &Value, received: &Received) -> Result<(), String> {
        let expected = &step["response"];
        // Without a status the connection was closed unanswered, which is nothing to hold a server to.
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
        let json = |text: &str| -> Result<Value, String> {
            serde_json::from_str(text).map_err(|error| format!("no JSON: {error}: {text}"))
        };
        if let Some(body) = expected.get("body") {
            let mut found = json(&text)?;
            if expected["partial"] == true {
                found = picked(body, &found);
            }
            return self.bindings.same(body, &found, "");
        }
        if let Some(stream) = expected.get("stream") {
            let found: Vec<Value> = text.lines().map(json).collect::<Result<_, _>>()?;
            return self.bindings.same(stream, &Value::Array(found), "stream");
        }
        match expected.get("bodyText").and_then(Value::as_str) {
            // Ages in the text of a Table were recorded as they were printed: right after the object was made.
            Some(body) => self.bindings.same_text(&body.replace("- 0s\n", "- <age>\n"), &text, "body"),
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

/// A read whose recorded object is the body of a request before the next read: the recording client changed the object
/// that it had read in place, so that what was read is not known. The step with what the change cannot have touched.
fn overwritten(step: &Value, after: &[&Value]) -> Option<Value> {
    let body = step["response"].get("body")?;
    let mut writes = after.iter().take_while(|step| step["request"]["method"] != "GET");
    if step["request"]["method"] != "GET" || !writes.any(|step| step["request"]["body"] == *body) {
        return None;
    }
    let mut known = step.clone();
    known["response"]["body"] = identity_of(body);
    known["response"]["partial"] = true.into();
    Some(known)
}

fn identity_of(object: &Value) -> Value {
    let metadata = json!({
        "uid": true, "name": true, "namespace": true, "resourceVersion": true, "creationTimestamp": true
    });
    picked(&json!({"kind": true, "apiVersion": true, "metadata": metadata}), object)
}

/// The members of `object` that `pattern` has as well.
fn picked(pattern: &Value, object: &Value) -> Value {
    let (Value::Object(pattern), Value::Object(members)) = (pattern, object) else { return object.clone() };
    let both = members.iter().filter_map(|(name, value)| Some((name, pattern.get(name)?, value)));
    both.map(|(name, pattern, value)| (name.clone(), picked(pattern, value))).collect()
}

/// The prefix of the name that the server is asked to make.
fn generated_prefix(request: &Value) -> Option<&str> {
    let metadata = &request["body"]["metadata"];
    metadata["generateName"].as_str().filter(|prefix| !prefix.is_empty() && metadata.get("name").is_none())
}

/// An answer that was read to its end.
pub(in crate::kinds) struct Received {
    pub(in crate::kinds) status: u16,
    content_type: String,
    pub(in crate::kinds) warnings: Vec<String>,
    pub(in crate::kinds) headers: http::HeaderMap,
    pub(in crate::kinds) body: Vec<u8>,
}

pub(in crate::kinds) async fn receive(response: Response<Body>) -> Result<Received, String> {
    let (parts, body) = response.into_parts();
    let text = |name: &str| -> Vec<String> {
        let values = parts.headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
    };
    let content_type = text("content-type").into_iter().next().unwrap_or_default();
    let warnings = text("warning");
    let body = body.collect().await.map_err(|error| format!("the body breaks off: {error}"))?;
    let (status, headers) = (parts.status.as_u16(), parts.headers);
    let mut body = body.to_bytes().to_vec();
    if headers.get("content-encoding").is_some_and(|encoding| encoding == "gzip") {
        let mut unpacked = Vec::new();
        let read = GzDecoder::new(body.as_slice()).read_to_end(&mut unpacked);
        read.map_err(|error| format!("the body cannot be unpacked: {error}"))?;
        body = unpacked;
    }
    Ok(Received { status, content_type, warnings, headers, body })
}

/// When the recordings were made.
pub(in crate::kinds) fn recorded() -> Result<jiff::Timestamp, String> {
    RECORDED.parse().map_err(|error| format!("{RECORDED}: {error}"))
}

/// As the recordings were made: without accounts.
pub(in crate::kinds) async fn server(clock: Clock) -> Result<Server, String> {
    let plugins = AdmissionPlugins::new([""; 0], ["ServiceAccount"]).map_err(|error| error.to_string())?;
    let server = Server::builder().issuer(format!("https://{HOST}")).clock(clock);
    server.admission_plugins(plugins).build().await.map_err(|error| error.to_string())
}

fn user(request: &Value) -> Identity {
    if request["anonymous"] == true { Identity::anonymous() } else { Identity::admin() }
}

pub(in crate::kinds) async fn send(
    router: axum::Router,
    request: &Value,
    mut identity: Identity,
) -> Result<Response<Body>, String> {
    let mut uri = request["path"].as_str().unwrap_or_default().to_owned();
    if let Some(query) = request["query"].as_str().filter(|query| !query.is_empty()) {
        uri = format!("{uri}?{query}");
    }
    let mut builder = Request::builder().method(request["method"].as_str().unwrap_or("GET")).uri(uri);
    builder = builder.header("host", HOST);
    for (name, value) in request["headers"].as_object().into_iter().flatten() {
        builder = builder.header(name, value.as_str().unwrap_or_default());
    }
    if identity.is_admin() {
        let credential = "authentication.kubernetes.io/credential-id".to_owned();
        identity.extra.entry(credential).or_insert_with(|| vec!["X509SHA256=0".to_owned()]);
    }
    let request = builder.extension(identity).body(Body::from(body(request)?));
    let request = request.map_err(|error| format!("the request cannot be sent: {error}"))?;
    router.oneshot(request).await.map_err(|error| error.to_string())
}

fn body(request: &Value) -> Result<Vec<u8>, String> {
    if let Some(body) = request.get("body") {
        return Ok(body.to_string().into_bytes());
    }
    if let Some(text) = request["bodyText"].as_str() {
        return Ok(text.as_bytes().to_vec());
    }
    if let Some(encoded) = request["bodyBase64"].as_str() {
        return STANDARD.decode(encoded).map_err(|error| error.to_string());
    }
    if let Some(repeat) = request.get("bodyRepeat") {
        let part = |name: &str| repeat[name].as_str().unwrap_or_default();
        let count = repeat["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0);
        return Ok(format!("{}{}{}", part("prefix"), part("unit").repeat(count), part("suffix")).into_bytes());
    }
    Ok(Vec::new())
}
