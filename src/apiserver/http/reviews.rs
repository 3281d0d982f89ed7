//! Kinds that are asked and never stored: access reviews and reviews of identities.

use axum::response::Response;
use http::Method;
use serde_json::{Value, json};

use super::accept::Accepted;
use super::{Failure, Incoming, body, respond};
use crate::codec;
use crate::identity::{Identity, MASTERS};
use crate::object;
use crate::registry::Call;
use crate::server::Server;
use crate::status::{Cause, Refusal};

pub(super) async fn answer(
    server: &Server,
    call: &Call,
    incoming: Incoming,
    accepted: &Accepted,
) -> Result<Response, Failure> {
    if incoming.method != Method::POST {
        return Err(Refusal::method_not_allowed().into());
    }
    accepted.check()?;
    let options = incoming.write_options("CreateOptions")?;
    let body = body::object(&call.info, &incoming.headers, incoming.body).await?;
    let mut review = codec::receive(&call.info, None, &body)?.object;
    let mut metadata = json!({});
    if let Some(Value::Object(given)) = review.get("metadata") {
        metadata = Value::Object(given.clone());
    }
    review["metadata"] = metadata;
    server.registry().track(call, None, &mut review, &options);
    let status = match call.info.kind.as_str() {
        "SelfSubjectReview" => {
            review["metadata"] = json!({"creationTimestamp": object::now()});
            json!({"userInfo": call.identity.user_info()})
        }
        "TokenReview" => token_review(server, &review)?,
        "SelfSubjectRulesReview" => rules_review(&call.identity, &mut review)?,
        "SelfSubjectAccessReview" => access_review(&call.identity, &review)?,
        _ => {
            let user = subject(call, &review)?;
            access_review(&user, &review)?
        }
    };
    review["status"] = status;
    Ok(respond::document(201, &review, accepted))
}

fn token_review(server: &Server, review: &Value) -> Result<Value, Refusal> {
    match review.pointer("/spec/token").and_then(Value::as_str).filter(|token| !token.is_empty()) {
        None => Err(Refusal::bad_request("token is required for TokenReview in authentication")),
        Some(token) => Ok(match server.identity_of(token) {
            Some(identity) => json!({"authenticated": true, "user": identity.user_info()}),
            None => json!({"user": {}, "error": "invalid bearer token"}),
        }),
    }
}

fn rules_review(identity: &Identity, review: &mut Value) -> Result<Value, Refusal> {
    if review.pointer("/spec/namespace").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(Refusal::bad_request("no namespace on request"));
    }
    review["spec"] = json!({});
    let mut resources = Vec::new();
    let mut paths = Vec::new();
    if identity.is_admin() {
        resources.push(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}));
        paths.push(json!({"verbs": ["*"], "nonResourceURLs": ["*"]}));
    }
    resources.push(json!({
        "verbs": ["create"], "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"]
    }));
    resources.push(json!({
        "verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]
    }));
    paths.push(json!({
        "verbs": ["get"],
        "nonResourceURLs": ["/.well-known", "/.well-known/*", "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez",
            "/openapi", "/openapi/*", "/readyz", "/version", "/version/"]
    }));
    // What anonymous users may see as well.
    paths.push(json!({
        "verbs": ["get"], "nonResourceURLs": ["/healthz", "/livez", "/readyz", "/version", "/version/"]
    }));
    Ok(json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false}))
}

fn access_review(user: &Identity, review: &Value) -> Result<Value, Refusal> {
    let spec = &review["spec"];
    match (spec.get("resourceAttributes"), spec.get("nonResourceAttributes")) {
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            Err(invalid("spec.resourceAttributes", "null", why))
        }
        (Some(_), Some(path)) => {
            let text = |field: &str| path[field].as_str().unwrap_or_default().to_owned();
            let shown = format!("{{\"Path\":\"{}\",\"Verb\":\"{}\"}}", text("path"), text("verb"));
            let why = "cannot be specified in combination with resourceAttributes";
            Err(invalid("spec.nonResourceAttributes", &shown, why))
        }
        _ => Ok(json!({"allowed": user.is_admin()})),
    }
}

/// Whom a SubjectAccessReview asks about.
fn subject(call: &Call, review: &Value) -> Result<Identity, Refusal> {
    let spec = &review["spec"];
    let user = spec["user"].as_str().unwrap_or_default();
    let groups: Vec<String> = spec["groups"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    if user.is_empty() && groups.is_empty() {
        return Err(invalid("spec.user", "\"\"", "at least one of user or group must be specified"));
    }
    let asked = spec.pointer("/resourceAttributes/namespace").and_then(Value::as_str).unwrap_or_default();
    if !call.namespace.is_empty() && asked != call.namespace {
        let shown = format!("\"{asked}\"");
        return Err(invalid("spec.resourceAttributes.namespace", &shown, "must match metadata.namespace"));
    }
    let mut identity = Identity::anonymous();
    user.clone_into(&mut identity.username);
    identity.groups = groups.into_iter().filter(|group| group == MASTERS).collect();
    Ok(identity)
}

/// These refusals carry the group and no kind.
fn invalid(field: &str, shown: &str, why: &str) -> Refusal {
    let cause = Cause {
        reason: "FieldValueInvalid".to_owned(),
        field: field.to_owned(),
        message: format!("Invalid value: {shown}: {why}"),
    };
    Refusal::invalid_kind("authorization.k8s.io", "", "", vec![cause])
}
