//! The recorded matrix of custom resources and definitions, request by request over HTTP, each case on a server of its
//! own. What changes with every run is masked on both sides as the corpus says.

use admit_apiserver::Server;
use axum::body::Body;
use http::Request;
use serde_json::{Map, Value};
use tower::ServiceExt as _;

use crate::corpus;
use crate::harness::{self, Answer};
use crate::mask::masked;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test(flavor = "multi_thread")]
async fn every_recorded_request_is_answered_as_recorded() {
    let Some(folder) = testing::corpus("crd-matrix").unwrap() else { return };
    let definitions = corpus::lines(&folder.join("crds.jsonl"));
    let only = std::env::var("CRD_MATRIX_ONLY").unwrap_or_default();
    let mut differing = Vec::new();
    let (mut requests, mut cases) = (0, 0);
    for case in corpus::lines(&folder.join("recorded.jsonl")) {
        let id = case["id"].as_str().expect("an id");
        if !id.contains(&only) {
            continue;
        }
        let definition = definitions.iter().find(|definition| definition["crd"] == case["crd"]);
        let steps = case["steps"].as_array().expect("steps");
        if let Err(difference) = replay(definition, steps).await {
            differing.push(format!("{id}: {difference}"));
        }
        requests += steps.len();
        cases += 1;
    }
    assert!(cases > 0, "the matrix has no case `{only}`");
    assert!(
        differing.is_empty(),
        "{} of {cases} cases ({requests} requests) differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
}

async fn replay(definition: Option<&Value>, steps: &[Value]) -> Result<(), String> {
    let server = Server::builder().clock(corpus::clock()).build().await.expect("a server");
    if let Some(definition) = definition {
        let answer = harness::post(&server, DEFINITIONS, &definition["manifest"]).await;
        same("definition", &definition["outcome"], &answer.status.into())?;
        same("its warnings", &sorted(&definition["warnings"]), &sorted(&texts(&answer)))?;
    }
    for (i, step) in steps.iter().enumerate() {
        let answer = request(&server, step).await;
        let at = format!("step {i} ({})", step["op"].as_str().unwrap_or_default());
        same(&format!("{at} outcome"), &step["outcome"], &answer.status.into())
            .map_err(|difference| format!("{difference} {}", answer.message()))?;
        same(&format!("{at} warnings"), &sorted(&step["warnings"]), &sorted(&texts(&answer)))?;
        if let Some(status) = step.get("status") {
            same(&at, &refusal(status), &refusal(&unnamed(status, answer.body.clone())))?;
        }
        if let Some(object) = step.get("object").filter(|object| object["kind"] != "(accepted)") {
            same(&at, &masked(object), &as_recorded(masked(&answer.body)))?;
        }
        if step.get("conditions").is_some() {
            settled(&server, step).await.map_err(|difference| format!("{at} {difference}"))?;
        }
    }
    Ok(())
}

/// The random end of a generated name as the recording masks it.
fn unnamed(expected: &Value, found: Value) -> Value {
    let name = expected.pointer("/details/name").and_then(Value::as_str);
    let Some(prefix) = name.and_then(|name| name.strip_suffix("XXXXX")) else { return found };
    let text = found.to_string();
    let Some((_, rest)) = text.split_once(prefix) else { return found };
    let end: String = rest.chars().take(5).collect();
    serde_json::from_str(&text.replace(&format!("{prefix}{end}"), &format!("{prefix}XXXXX"))).expect("JSON")
}

/// Warnings: formats are told in the order of a Go map, that is in none. A recording leaves them out when there are none.
fn sorted(warnings: &Value) -> Value {
    let mut warnings = warnings.as_array().cloned().unwrap_or_default();
    warnings.sort_by_key(ToString::to_string);
    warnings.into()
}

/// Definitions were recorded without what the server adds to them, which is noted apart.
fn as_recorded(mut object: Value) -> Value {
    if object["kind"] == "CustomResourceDefinition"
        && let Some(fields) = object.as_object_mut()
    {
        fields.shift_remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["uid", "resourceVersion", "creationTimestamp"] {
                metadata.shift_remove(field);
            }
        }
    }
    object
}

/// The texts of the warnings, without code, agent and quotes.
fn texts(answer: &Answer) -> Value {
    let text = |header: &String| {
        let quoted = header.strip_prefix("299 - ").expect("a warning of code 299");
        let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("a quoted text");
        inner.replace("\\\"", "\"").replace("\\\\", "\\")
    };
    answer.warnings.iter().map(text).collect()
}

fn same(what: &str, expected: &Value, found: &Value) -> Result<(), String> {
    if expected == found {
        return Ok(());
    }
    Err(format!("{what}: expected\n  {expected}\nfound\n  {found}"))
}

/// A refusal to be compared: rules are evaluated in the order of a Go map, that is in none, so that causes are a set. The
/// message lists them as well and is compared where there is one alone.
fn refusal(status: &Value) -> Value {
    let mut status = masked(status);
    if let Some(causes) = status.pointer_mut("/details/causes").and_then(Value::as_array_mut)
        && causes.len() > 1
    {
        causes.sort_by_key(ToString::to_string);
        status["message"] = Value::Null;
    }
    status
}

async fn request(server: &Server, step: &Value) -> Answer {
    let path = step["path"].as_str().expect("a path");
    let query: Vec<String> = step["params"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default().replace(' ', "%20")))
        .collect();
    let uri = if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) };
    let content_type = step["contentType"].as_str().unwrap_or("application/json");
    let mut request = Request::builder().method(step["method"].as_str().expect("a method")).uri(uri);
    // Whom managedFields name.
    request = request.header("user-agent", "client");
    if let Some(accept) = step["accept"].as_str() {
        request = request.header("accept", accept);
    }
    let body = match (step["rawBody"].as_str(), step.get("body")) {
        (Some(text), _) => Body::from(text.to_owned()),
        (None, Some(body)) => Body::from(unmasked(server, step, path, body.to_string()).await),
        (None, None) => Body::empty(),
    };
    if step.get("rawBody").or_else(|| step.get("body")).is_some() {
        request = request.header("content-type", content_type);
    }
    let response = server.router().oneshot(request.body(body).expect("a request")).await.expect("an answer");
    harness::answer(response).await
}

/// The body as it was sent: with the stored object's resourceVersion, or an old one where that is what was tried, and
/// with a time.
async fn unmasked(server: &Server, step: &Value, path: &str, text: String) -> String {
    let refused = step.pointer("/status/message").and_then(Value::as_str).unwrap_or_default();
    let bad_time = refused.split_once("parsing time \"").and_then(|(_, rest)| rest.split_once('"'));
    let text = text.replace("<time>", bad_time.map_or("2020-02-02T02:02:02Z", |(bad, _)| bad));
    if !text.contains("<rv>") {
        return text;
    }
    let object = path.trim_end_matches("/status").trim_end_matches("/scale");
    let current = harness::get(server, object).await.body;
    let version = current["metadata"]["resourceVersion"].as_str().filter(|_| step["outcome"] != 409);
    text.replace("<rv>", version.unwrap_or("1"))
}

/// What the recording notes of a definition after the server settled.
async fn settled(server: &Server, step: &Value) -> Result<(), String> {
    let name = step["body"]["metadata"]["name"].as_str().expect("a name");
    let stored = harness::get(server, &format!("{DEFINITIONS}/{name}")).await.body;
    let mut conditions = stored["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.sort_by_key(|condition| condition["type"].to_string());
    let noted = |condition: &Value| -> Value {
        let fields = ["type", "status", "reason", "message"];
        fields
            .iter()
            .map(|field| ((*field).to_owned(), condition[*field].clone()))
            .collect::<Map<_, _>>()
            .into()
    };
    same("conditions", &step["conditions"], &conditions.iter().map(noted).collect())?;
    for field in ["acceptedNames", "storedVersions"] {
        if let Some(expected) = step.get(field) {
            same(field, expected, &stored["status"][field])?;
        }
    }
    Ok(())
}
