//! What `answers.json`, `endpoints.json`, `plugins.json`, `requests.json`, `side_by_side.json` and `writes.json` say of single
//! rules: short sequences of requests to a fresh server, with what is to be seen in their answers. The facts were read off
//! kube-apiserver v1.36.2, those of `nodes.json` and `off_by_default.json` from the tables of tests of its plugins, and those of `validation.json` from its
//! rules.
//!
//! A sequence may name `plugins` that are on beside the usual ones, the `without` that is off, an AdmissionConfiguration of
//! `settings`, and `modes` of authorization.
//! A step is `{"do": "METHOD /path", "type": content type, "body": …, "status": code}` with any of `has` (JSON pointer →
//! value), `lacks` (JSON pointers), `says` (a part of the message), `warns` (parts of the warnings, one for each) and
//! `bodyText` in place of `body`, and `headers` beside them. `as` names the user, by default the administrator; one of `system:node:` is a node. What
//! `keep` names (name → JSON pointer into the answer) stands for `{{name}}` in the steps that follow.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use admit_apiserver::{AdmissionConfiguration, AdmissionPlugins, AuthorizationMode, Identity, Server};
use axum::body::Body;
use http::Request;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::harness::{Answer, answer};

pub async fn send(server: &Server, step: &Value) -> Answer {
    let (method, path) = step["do"].as_str().unwrap().split_once(' ').unwrap();
    let body = match (step.get("body"), step["bodyText"].as_str()) {
        (Some(body), _) => Body::from(body.to_string()),
        (None, Some(text)) => Body::from(text.to_owned()),
        (None, None) => Body::empty(),
    };
    let content_type = step["type"].as_str().unwrap_or("application/json");
    let mut request = Request::builder().method(method).uri(path).header("content-type", content_type);
    for (name, value) in step["headers"].as_object().into_iter().flatten() {
        request = request.header(name, value.as_str().unwrap());
    }
    if let Some(user) = step["as"].as_str() {
        let group = user.starts_with("system:node:").then(|| "system:nodes".to_owned());
        request = request.extension(Identity::new(user, group));
    }
    answer(server.router().oneshot(request.body(body).unwrap()).await.unwrap()).await
}

pub fn check(step: &Value, found: &Answer) -> Result<(), String> {
    let fail = |what: String| Err(format!("{what}: {} {}", found.status, found.body));
    if step["status"] != found.status {
        return fail(format!("status {}", step["status"]));
    }
    for (at, value) in step["has"].as_object().into_iter().flatten() {
        if found.body.pointer(at) != Some(value) {
            return fail(format!("{at} {value}"));
        }
    }
    for at in step["lacks"].as_array().into_iter().flatten() {
        if found.body.pointer(at.as_str().unwrap()).is_some() {
            return fail(format!("without {at}"));
        }
    }
    if let Some(part) = step["says"].as_str().filter(|part| !found.message().contains(part)) {
        return fail(format!("saying {part}"));
    }
    if let Some(parts) = step["warns"].as_array() {
        let warned = parts.len() == found.warnings.len()
            && parts.iter().zip(&found.warnings).all(|(part, text)| text.contains(part.as_str().unwrap()));
        if !warned {
            return fail(format!("warning {parts:?}, not {:?}", found.warnings));
        }
    }
    Ok(())
}

/// The step with what was kept of answers before.
fn filled(step: &Value, kept: &BTreeMap<String, String>) -> Value {
    let mut text = step.to_string();
    for (name, value) in kept {
        text = text.replace(&format!("{{{{{name}}}}}"), value);
    }
    serde_json::from_str(&text).unwrap()
}

/// Settings that name no other file.
pub fn configuration(text: &str) -> AdmissionConfiguration {
    let none = |_: &Path| Err(io::ErrorKind::NotFound.into());
    AdmissionConfiguration::read(text, Path::new(""), none).unwrap()
}

async fn server_for(sequence: &Value) -> Server {
    let names = |key: &str| sequence[key].as_array().into_iter().flatten().filter_map(Value::as_str);
    let settings = match sequence.get("settings") {
        Some(settings) => configuration(&settings.to_string()),
        None => AdmissionConfiguration::default(),
    };
    let plugins =
        AdmissionPlugins::configured(names("plugins"), sequence["without"].as_str(), &settings).unwrap();
    let modes = names("modes").map(|mode| match mode {
        "Node" => AuthorizationMode::Node,
        "RBAC" => AuthorizationMode::Rbac,
        "AlwaysAllow" => AuthorizationMode::AlwaysAllow,
        other => panic!("there is no mode {other}"),
    });
    Server::builder().admission_plugins(plugins).authorization(modes).build().await.unwrap()
}

/// The first step that is not answered as it is to be.
async fn failure(sequence: &Value) -> Option<String> {
    let server = server_for(sequence).await;
    let mut kept = BTreeMap::new();
    for step in sequence["steps"].as_array().unwrap() {
        let step = filled(step, &kept);
        let found = send(&server, &step).await;
        if let Err(why) = check(&step, &found) {
            return Some(format!("{}: {}: {why}", sequence["name"], step["do"]));
        }
        for (name, at) in step["keep"].as_object().into_iter().flatten() {
            let value = found.body.pointer(at.as_str().unwrap()).and_then(Value::as_str).unwrap();
            kept.insert(name.clone(), value.to_owned());
        }
    }
    None
}

#[tokio::test]
async fn single_rules_are_those_of_the_reference() {
    let files = [
        include_str!("answers.json"),
        include_str!("endpoints.json"),
        include_str!("nodes.json"),
        include_str!("off_by_default.json"),
        include_str!("plugins.json"),
        include_str!("requests.json"),
        include_str!("side_by_side.json"),
        include_str!("validation.json"),
        include_str!("writes.json"),
    ];
    let sequences = files.map(|text| serde_json::from_str::<Vec<Value>>(text).unwrap());
    let mut failed = Vec::new();
    for sequence in sequences.iter().flatten() {
        failed.extend(failure(sequence).await);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
