//! Answers kinds that are never stored: access reviews, token reviews and self-subject reviews.

use std::collections::BTreeMap;

use admit_apimachinery::field_error::together;
use admit_apimachinery::go::quote::quote_all;
use admit_apimachinery::pointer;
use admit_apimachinery::selector::{LabelSelector, field_terms};
use admit_policy::AccessAttributes;
use axum::response::Response;
use serde_json::{Value, json};

use super::accept::Accepted;
use super::asked_selectors;
use super::{Failure, Incoming, body, presentation};
use crate::builtin::{decode, tables};
use crate::call::{Call, Query};
use crate::codec;
use crate::identity::Identity;
use crate::object;
use crate::registry::{Registry, belongs_to_path};
use crate::resources::Scope;
use crate::server::Server;
use crate::status::{Cause, Refusal};

pub(super) async fn answer(
    server: &Server,
    call: &Call,
    incoming: Incoming,
    accepted: &Accepted,
) -> Result<Response, Failure> {
    let query = Query::parse(&incoming.query);
    let (sent, options) = incoming.posted(&call.info, accepted).await?;
    let info = &call.info;
    let received = codec::receive(info, None, &sent)?;
    let mut review = body::known(call, (&info.group, &info.version, &info.kind), &options, &sent, received)?;
    let mut metadata = json!({});
    if let Some(Value::Object(given)) = review.get("metadata") {
        metadata = Value::Object(given.clone());
    }
    review["metadata"] = metadata;
    belongs_to_path(call, &mut review)?;
    server.registry().track(call, None, &mut review, &options)?;
    let metadata = decode::ordered_metadata(tables(), review["metadata"].take());
    review["metadata"] = metadata;
    let registry = server.registry();
    if call.info.kind.ends_with("AccessReview") {
        checked(call, &review)?;
    }
    let status = match call.info.kind.as_str() {
        "SelfSubjectReview" => {
            review["metadata"] = json!({"creationTimestamp": call.clock.stamp()});
            json!({"userInfo": call.identity.user_info()})
        }
        "TokenReview" => token_review(server, &review)?,
        "SelfSubjectRulesReview" => rules_review(registry, &call.identity, &mut review)?,
        "SelfSubjectAccessReview" => access_review(registry, &call.identity, &review),
        _ => access_review(registry, &subject(&review), &review),
    };
    review["status"] = status;
    Ok(presentation::shown_as(call, &query, accepted, (201, &review))?)
}

const UNKNOWN: &str = "invalid bearer token";

fn token_review(server: &Server, review: &Value) -> Result<Value, Refusal> {
    let token = pointer::text(review, "/spec/token");
    if token.is_empty() {
        return Err(Refusal::bad_request("token is required for TokenReview in authentication"));
    }
    let unknown = || json!({"user": {}, "error": UNKNOWN});
    let Some(known) = server.recognised(token) else {
        return Ok(unknown());
    };
    // A client may ask for its own audiences; the default is those of this server.
    let mut wanted = texts(&review["spec"]["audiences"]);
    if wanted.is_empty() {
        wanted = server.audiences().to_vec();
    }
    let shared: Vec<&String> = wanted.iter().filter(|audience| known.audiences.contains(audience)).collect();
    if shared.is_empty() && !known.is_signed {
        return Ok(unknown());
    }
    if shared.is_empty() {
        // Joins the errors of two authenticators: that of the server's own tokens, and that of service accounts.
        let why = format!(
            "[{UNKNOWN}, token audiences [{}] is invalid for the target audiences [{}]]",
            quote_all(&known.audiences, " "),
            quote_all(&wanted, " ")
        );
        return Ok(json!({"user": {}, "error": why}));
    }
    Ok(json!({"authenticated": true, "user": known.identity.user_info(), "audiences": shared}))
}

fn rules_review(registry: &Registry, identity: &Identity, review: &mut Value) -> Result<Value, Refusal> {
    let namespace = pointer::text(review, "/spec/namespace").to_owned();
    if namespace.is_empty() {
        return Err(Refusal::bad_request("no namespace on request"));
    }
    review["spec"] = json!({});
    object::set_meta(review, "managedFields", None);
    let user = identity.to_user();
    let granted = registry.access_rules().granted(&user, &namespace);
    let mut resources = Vec::new();
    let mut paths = Vec::new();
    for rule in granted.rules {
        if !rule.resources.is_empty() {
            let mut shown =
                json!({"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources});
            if !rule.resource_names.is_empty() {
                shown["resourceNames"] = json!(rule.resource_names);
            }
            resources.push(shown);
        }
        if !rule.non_resource_urls.is_empty() {
            paths.push(json!({"verbs": rule.verbs, "nonResourceURLs": rule.non_resource_urls}));
        }
    }
    let mut status = json!({"resourceRules": resources, "nonResourceRules": paths, "incomplete": false});
    let mut problems: Vec<String> = granted.problems.iter().map(ToString::to_string).collect();
    if let Some(untold) = registry.authorization.untold(&user) {
        // Each authorization mode has its message; that of RBAC is one text.
        let roles = Some(problems.join(", ")).filter(|roles| !roles.is_empty());
        problems = vec![together(std::iter::once(untold.to_owned()).chain(roles))];
    }
    if !problems.is_empty() {
        status["incomplete"] = true.into();
        status["evaluationError"] = problems.join(", ").into();
    }
    Ok(status)
}

/// # Errors
/// 422 with all errors in the review.
fn checked(call: &Call, review: &Value) -> Result<(), Refusal> {
    let spec = &review["spec"];
    let (resource, path) = (spec.get("resourceAttributes"), spec.get("nonResourceAttributes"));
    let mut causes = Vec::new();
    match (resource, path) {
        (None, None) => {
            let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            causes.push(Cause::invalid("spec.resourceAttributes", &Value::Null, why));
        }
        (Some(_), Some(path)) => {
            let why = "cannot be specified in combination with resourceAttributes";
            causes.push(Cause::invalid("spec.nonResourceAttributes", &shown_path(path), why));
        }
        _ => {}
    }
    let for_others = !call.info.kind.starts_with("Self");
    if for_others && spec["user"].as_str().unwrap_or_default().is_empty() && texts(&spec["groups"]).is_empty()
    {
        let why = "at least one of user or group must be specified";
        causes.push(Cause::invalid("spec.user", &"".into(), why));
    }
    causes.extend(resource.map(asked_selectors::checked).unwrap_or_default());
    let local = call.info.scope == Scope::Namespaced;
    let is_told = |(name, value): (&String, &Value)| {
        !value.is_null() && name != "managedFields" && !(local && name == "namespace")
    };
    if review["metadata"].as_object().into_iter().flatten().any(is_told) {
        let why = if local { "must be empty except for namespace" } else { "must be empty" };
        causes.push(Cause::invalid("metadata", &review["metadata"], why));
    }
    if let Some(asked) = resource.filter(|_| local).map(|resource| &resource["namespace"])
        && asked.as_str().unwrap_or_default() != call.namespace
    {
        let asked = asked.as_str().unwrap_or_default();
        let why = "must match metadata.namespace";
        causes.push(Cause::invalid("spec.resourceAttributes.namespace", &asked.into(), why));
    }
    if let Some(path) = path.filter(|_| local) {
        let why = "disallowed on this kind of request";
        causes.push(Cause::invalid("spec.nonResourceAttributes", &shown_path(path), why));
    }
    // These refusals name the group and no kind.
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Refusal::invalid_kind("authorization.k8s.io", "", "", causes))
    }
}

/// Formats a path for an error message.
fn shown_path(path: &Value) -> Value {
    let text = |field: &str| path[field].as_str().unwrap_or_default();
    json!({"Path": text("path"), "Verb": text("verb")})
}

/// Answers a validated access review.
fn access_review(registry: &Registry, user: &Identity, review: &Value) -> Value {
    let spec = &review["spec"];
    let attributes = match spec.get("nonResourceAttributes") {
        None => resource_attributes(&spec["resourceAttributes"]),
        Some(path) => {
            let text = |field: &str| path[field].as_str().unwrap_or_default().to_owned();
            AccessAttributes::Path { verb: text("verb"), path: text("path") }
        }
    };
    let access = registry.access(user, &attributes);
    let mut status = json!({"allowed": access.allowed});
    if !access.reason.is_empty() {
        status["reason"] = access.reason.into();
    }
    let unread = unread_selectors(&spec["resourceAttributes"]);
    if !unread.is_empty() {
        status["evaluationError"] = unread.join("; ").into();
    }
    status
}

/// Returns the errors for raw selectors that cannot be parsed, which are ignored.
fn unread_selectors(asked: &Value) -> Vec<String> {
    let raw = |field: &str| asked[field]["rawSelector"].as_str().unwrap_or_default();
    let (fields, labels) = (raw("fieldSelector"), raw("labelSelector"));
    let unread = [
        ("fieldSelector", field_terms(fields).is_err()),
        ("labelSelector", LabelSelector::parse(labels).is_err()),
    ];
    let unread = unread.into_iter().filter(|(_, unread)| *unread);
    unread.map(|(field, _)| format!("spec.resourceAttributes.{field} ignored due to parse error")).collect()
}

fn resource_attributes(asked: &Value) -> AccessAttributes {
    let text = |field: &str| asked[field].as_str().unwrap_or_default().to_owned();
    let selector = |field: &str| match asked[field]["rawSelector"].as_str().unwrap_or_default() {
        "" => written(&asked[field]["requirements"]),
        raw => raw.to_owned(),
    };
    AccessAttributes::Resource {
        verb: text("verb"),
        group: text("group"),
        version: text("version"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        field_selector: selector("fieldSelector"),
        label_selector: selector("labelSelector"),
    }
}

/// Formats requirements as a selector string. A field requirement without exactly one value has no string form; no
/// authorizer that reads selectors is asked about it.
fn written(requirements: &Value) -> String {
    let escaped = |value: &str| value.replace('\\', r"\\").replace(',', r"\,").replace('=', r"\=");
    let terms = requirements.as_array().into_iter().flatten().filter_map(|requirement| {
        let key = requirement["key"].as_str()?;
        let operator = match requirement["operator"].as_str()? {
            "In" => "=",
            "NotIn" => "!=",
            _ => return None,
        };
        match texts(&requirement["values"]).as_slice() {
            [value] => Some(format!("{key}{operator}{}", escaped(value))),
            _ => None,
        }
    });
    terms.collect::<Vec<_>>().join(",")
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the user of a SubjectAccessReview, with exactly the groups that it names.
fn subject(review: &Value) -> Identity {
    let spec = &review["spec"];
    let text = |field: &str| spec[field].as_str().unwrap_or_default().to_owned();
    let (username, uid) = (text("user"), text("uid"));
    Identity { username, uid, groups: texts(&spec["groups"]), extra: BTreeMap::new() }
}
