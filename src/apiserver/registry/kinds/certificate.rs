//! CertificateSigningRequests: the requesting user, and the approval, which only approvers may write.

use serde_json::{Value, json};

use crate::identity::Identity;

pub(super) fn prepare_create(request: &mut Value, identity: &Identity) {
    let spec = &mut request["spec"];
    spec["username"] = identity.username.as_str().into();
    spec["groups"] = json!(identity.groups);
}

/// The decision of `old` beside the other conditions of `request`.
pub(super) fn keep_approval(request: &mut Value, old: &Value) {
    let conditions = |object: &Value, decided: bool| -> Vec<Value> {
        let all = object.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        all.filter(|condition| is_decision(condition) == decided).cloned().collect()
    };
    let kept = [conditions(old, true), conditions(request, false)].concat();
    if !kept.is_empty() || request.pointer("/status/conditions").is_some() {
        request["status"]["conditions"] = kept.into();
    }
}

fn is_decision(condition: &Value) -> bool {
    matches!(condition.get("type").and_then(Value::as_str), Some("Approved" | "Denied"))
}
