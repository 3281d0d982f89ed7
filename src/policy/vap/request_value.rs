//! Provides the `request` variable: an AdmissionRequest as expressions see it.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::matching::Matched;
use crate::request::{GroupVersionKind, GroupVersionResource, Request, UserInfo};

/// The request in the form in which the policy matched it. Empty optional fields are absent, as in Kubernetes' own
/// encoding; the objects are variables of their own.
pub(super) fn request_value(request: &Request<'_>, matched: &Matched<'_>) -> Value {
    let mut fields = Map::with_capacity(14);
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("uid", json!(""));
    put("kind", kind_value(&matched.kind));
    put("resource", resource_value(&matched.resource));
    put("requestKind", kind_value(&request.request_kind));
    put("requestResource", resource_value(&request.request_resource));
    for (key, text) in [
        ("subResource", &request.subresource),
        ("requestSubResource", &request.request_subresource),
        ("name", &request.name),
        ("namespace", &request.namespace),
    ] {
        if !text.is_empty() {
            put(key, json!(text));
        }
    }
    put("operation", json!(request.operation.as_str()));
    put("userInfo", user_value(&request.user));
    put("object", Value::Null);
    put("oldObject", Value::Null);
    put("dryRun", json!(request.dry_run));
    put("options", request.options.as_ref().map_or(Value::Null, |options| options.value().into_owned()));
    Value::Object(fields)
}

/// Builds `request` for match conditions: the kind is that of the match, and the resource that of the request (apiserver
/// `pkg/admission/plugin/webhook/matchconditions/matcher.go`).
pub(super) fn condition_request_value(request: &Request<'_>, matched: &Matched<'_>) -> Value {
    let resource = Cow::Borrowed(&request.resource);
    request_value(request, &Matched { resource, kind: matched.kind.clone() })
}

fn kind_value(kind: &GroupVersionKind) -> Value {
    texts([("group", &kind.group), ("version", &kind.version), ("kind", &kind.kind)])
}

fn resource_value(resource: &GroupVersionResource) -> Value {
    texts([("group", &resource.group), ("version", &resource.version), ("resource", &resource.resource)])
}

fn texts<const N: usize>(fields: [(&str, &String); N]) -> Value {
    // Allocated with its final size, since every request has four of them.
    let mut map = Map::with_capacity(N);
    map.extend(fields.map(|(key, text)| (key.to_owned(), Value::from(text.as_str()))));
    Value::Object(map)
}

fn user_value(user: &UserInfo) -> Value {
    let mut fields = Map::with_capacity(4);
    if !user.username.is_empty() {
        fields.insert("username".to_owned(), json!(user.username));
    }
    if !user.uid.is_empty() {
        fields.insert("uid".to_owned(), json!(user.uid));
    }
    if !user.groups.is_empty() {
        fields.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        let extra: Map<String, Value> =
            user.extra.iter().map(|(key, values)| (key.clone(), json!(values))).collect();
        fields.insert("extra".to_owned(), Value::Object(extra));
    }
    Value::Object(fields)
}
