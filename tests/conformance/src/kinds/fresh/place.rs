//! Runs a server that rows are sent to.

use admit_apiserver::{Clock, Identity};
use serde_json::{Value, json};

use super::rows::{DEFINITIONS, Group};
use super::text;
use super::wire::Wire;
use crate::kinds::http::{Bindings, Received, receive, recorded, send, server};

pub(super) struct Place<'f> {
    router: axum::Router,
    /// The definition that is still to be put.
    strict: Option<&'f Value>,
    puts_carry_version: bool,
    wire: Option<Wire>,
}

impl<'f> Place<'f> {
    pub(super) async fn start(group: &Group<'f>) -> Result<Self, String> {
        // Time stands still: whether two writes fall into one second would be chance.
        let now = recorded()?;
        let server = server(Clock::new(move || now)).await?;
        let mut place = Self {
            router: server.router(),
            strict: group.strict,
            puts_carry_version: group.puts_carry_version,
            wire: None,
        };
        for request in &group.before {
            let answer = place.sent(request, admin()).await?;
            if answer.status >= 300 {
                let body = String::from_utf8_lossy(&answer.body).into_owned();
                return Err(format!(
                    "before: {} {}: {}: {body}",
                    text(request, "method"),
                    text(request, "path"),
                    answer.status
                ));
            }
        }
        if group.wire {
            place.wire = Some(Wire::of(&place).await?);
        }
        Ok(place)
    }

    /// # Errors
    /// How the answer differs from the recorded one.
    pub(super) async fn ask(&mut self, row: &Value) -> Result<(), String> {
        if let Some(mut wire) = self.wire.take() {
            let answer = wire.ask(self, row).await;
            self.wire = Some(wire);
            return answer;
        }
        if row["schema"] == "strict"
            && let Some(definition) = self.strict.take()
        {
            self.put(definition).await?;
        }
        let mut request = row["request"].clone();
        self.fill_version(&mut request).await?;
        let answer = self.sent(&request, user(&request)).await?;
        let mut expected = row["response"].clone();
        if row["request"].get("json").is_some() {
            // The client that sent protobuf did not record warnings: the same objects in JSON have some.
            expected["warnings"] = answer.warnings.iter().map(|text| latin1(text)).collect();
        }
        compared(&expected, &answer)
    }

    async fn put(&self, definition: &Value) -> Result<(), String> {
        let path = format!("{DEFINITIONS}/{}", text(&definition["metadata"], "name"));
        let mut request = json!({"method": "PUT", "path": path, "body": definition});
        request["body"]["metadata"]["resourceVersion"] = "<rv>".into();
        self.fill_version(&mut request).await?;
        let answer = self.sent(&request, admin()).await?;
        match answer.status {
            200 => Ok(()),
            status => Err(format!("{path}: {status}: {}", String::from_utf8_lossy(&answer.body))),
        }
    }

    /// Puts in the version that the object has now.
    pub(super) async fn fill_version(&self, request: &mut Value) -> Result<(), String> {
        let asked =
            self.puts_carry_version && request["method"] == "PUT" && request["body"]["metadata"].is_object();
        if !asked && request["body"]["metadata"]["resourceVersion"] != "<rv>" {
            return Ok(());
        }
        let path = text(request, "path").split('?').next().unwrap_or_default();
        let mut parts: Vec<&str> = path.split('/').collect();
        // A path that ends in a subresource has a part more than that of its object.
        while parts.len() > 1
            && parts.last().is_some_and(|part| *part != text(&request["body"]["metadata"], "name"))
        {
            parts.pop();
        }
        let read = json!({"method": "GET", "path": parts.join("/")});
        let answer = self.sent(&read, admin()).await?;
        let object: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        if answer.status == 200 {
            request["body"]["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
        } else if let Some(metadata) = request["body"]["metadata"].as_object_mut() {
            metadata.shift_remove("resourceVersion");
        }
        Ok(())
    }

    pub(super) async fn sent(&self, request: &Value, identity: Identity) -> Result<Received, String> {
        let mut wire = json!({"method": request["method"], "path": request["path"], "headers": {}});
        let has_body = request.get("body").is_some_and(|body| !body.is_null());
        if let Some(text) = request["body"].as_str() {
            wire["bodyText"] = text.into();
        } else if has_body {
            wire["body"] = request["body"].clone();
        } else if let Some(encoded) = request.get("bodyBase64") {
            wire["bodyBase64"] = encoded.clone();
        }
        if has_body || request.get("bodyBase64").is_some() {
            let usual = if request["method"] == "PATCH" { MERGE_PATCH } else { "application/json" };
            let kind = request["contentType"].as_str().unwrap_or(usual);
            wire["headers"]["Content-Type"] = kind.into();
        }
        if let Some(accept) = request["accept"].as_str() {
            wire["headers"]["Accept"] = accept.into();
        }
        for (name, value) in request["headers"].as_object().into_iter().flatten() {
            wire["headers"][name] = value.clone();
        }
        receive(send(self.router.clone(), &wire, identity).await?).await
    }
}

/// What patches are that do not say it.
const MERGE_PATCH: &str = "application/merge-patch+json";

/// The administrator with the client certificate of the recording, whose digest the server tells.
pub(super) fn admin() -> Identity {
    const CERTIFICATE: &str = "X509SHA256=88cd8d7e6e9f0731c3ad9798b3d6124b63f3c44cd5754751af30354fa534c26d";
    let mut admin = Identity::admin();
    admin.extra.insert("authentication.kubernetes.io/credential-id".to_owned(), vec![CERTIFICATE.to_owned()]);
    admin
}

/// Who sends a request.
fn user(request: &Value) -> Identity {
    match text(request, "user") {
        "alice" => {
            let mut alice =
                Identity::new("alice", ["system:masters", "system:authenticated"].map(String::from));
            alice.extra.insert("scope".to_owned(), vec!["a".to_owned()]);
            alice
        }
        "bob" => {
            let mut bob = Identity::new("bob", ["devs", "system:authenticated"].map(String::from));
            bob.uid = "u-1".to_owned();
            bob
        }
        "sa" => {
            let groups = ["system:serviceaccounts", "system:serviceaccounts:va", "system:authenticated"];
            Identity::new("system:serviceaccount:va:default", groups.map(String::from))
        }
        _ => admin(),
    }
}

pub(super) fn compared(expected: &Value, received: &Received) -> Result<(), String> {
    let status = expected["status"].as_u64().unwrap_or_default();
    let body = String::from_utf8_lossy(&received.body);
    if status != u64::from(received.status) {
        let start: String = body.chars().take(400).collect();
        return Err(format!("status {} instead of {status}: {start}", received.status));
    }
    let mut bindings = Bindings::default();
    let warnings = received.warnings.iter().map(|text| latin1(text).into()).collect();
    let expected_warnings = expected["warnings"].as_array().cloned().unwrap_or_default();
    bindings.same(&bindings_sorted(expected_warnings), &bindings_sorted(warnings), "warnings")?;
    let found: Value = serde_json::from_str(&body).map_err(|error| format!("no JSON: {error}"))?;
    let (expected, found) = (as_set(&expected["body"]), as_set(&found));
    bindings.same(&expected, &found, "")
}

/// Bindings of a policy are asked in the order of one of Go's maps, which is chance: what they warn of is put in order,
/// other warnings stay where they are.
fn bindings_sorted(mut warnings: Vec<Value>) -> Value {
    const OF_A_BINDING: &str = "299 - \"Validation failed for ValidatingAdmissionPolicy";
    let is_one = |warning: &Value| warning.as_str().is_some_and(|warning| warning.starts_with(OF_A_BINDING));
    let mut sorted: Vec<Value> = warnings.iter().filter(|warning| is_one(warning)).cloned().collect();
    sorted.sort_by_key(Value::to_string);
    let places = warnings.iter_mut().filter(|warning| is_one(warning));
    places.zip(sorted).for_each(|(place, warning)| *place = warning);
    Value::Array(warnings)
}

/// As the recording client read headers: a character for each byte.
fn latin1(text: &str) -> String {
    text.bytes().map(char::from).collect()
}

/// Several causes have no order; the message is the same texts joined, each once, in whichever order.
fn as_set(body: &Value) -> Value {
    let mut body = body.clone();
    let Some(causes) = body.pointer_mut("/details/causes").and_then(Value::as_array_mut) else { return body };
    if causes.len() > 1 {
        causes.sort_by_key(Value::to_string);
        let told: usize =
            causes.iter().map(|cause| text(cause, "field").len() + text(cause, "message").len()).sum();
        let message = text(&body, "message");
        let (subject, list) = message.split_once(": [").unwrap_or((message, ""));
        let message = format!("{subject}: the causes, and {} bytes", list.len().abs_diff(told));
        // Last, so that a difference of the causes themselves is told.
        if let Some(members) = body.as_object_mut() {
            members.shift_remove("message");
            members.insert("message".to_owned(), message.into());
        }
    }
    body
}
