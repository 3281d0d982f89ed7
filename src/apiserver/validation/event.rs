//! Events. Those with an `eventTime`, and all that come through `events.k8s.io`, have to be complete; older ones only
//! have to live in the namespace of their subject.

use serde_json::Value;

use super::text;
use crate::registry::names::qualified_name_problems;
use crate::resources::ResourceInfo;
use crate::status::Cause;

const MESSAGE_LIMIT: usize = 1024;
const INSTANCE_LIMIT: usize = 128;
const TYPES: [&str; 2] = ["Normal", "Warning"];

pub(super) fn event(info: &ResourceInfo, object: &Value) -> Vec<Cause> {
    let view = if info.group.is_empty() { &CORE } else { &EVENTS };
    if text(object, "eventTime").is_empty() && info.group.is_empty() {
        return namespace_of_subject(object, view);
    }
    let mut causes = Vec::new();
    if text(object, "eventTime").is_empty() {
        causes.push(Cause::required("eventTime", ""));
    }
    if let Some(series) = object.get("series").filter(|series| !series.is_null()) {
        if series.get("count").and_then(Value::as_i64).unwrap_or(0) < 2 {
            causes.push(invalid("series.count", "should be at least 2"));
        }
        if text(series, "lastObservedTime").is_empty() {
            causes.push(Cause::required("series.lastObservedTime", ""));
        }
    }
    let controller = text(object, view.controller);
    if controller.is_empty() {
        causes.push(Cause::required("reportingController", ""));
    }
    for problem in qualified_name_problems(controller) {
        causes.push(Cause::invalid("reportingController", &controller.into(), &problem));
    }
    let instance = text(object, "reportingInstance");
    if instance.is_empty() {
        causes.push(Cause::required("reportingInstance", ""));
    }
    let bounds = [
        ("reportingInstance", instance, INSTANCE_LIMIT),
        ("action", text(object, "action"), INSTANCE_LIMIT),
        ("reason", text(object, "reason"), INSTANCE_LIMIT),
        ("message", text(object, view.message), MESSAGE_LIMIT),
    ];
    for (field, value, limit) in bounds {
        if value.is_empty() && matches!(field, "action" | "reason") {
            causes.push(Cause::required(field, ""));
        } else if value.len() > limit {
            causes.push(invalid(field, &format!("can have at most {limit} characters")));
        }
    }
    let kind = text(object, "type");
    if kind.is_empty() {
        causes.push(Cause::required("type", ""));
    } else if !TYPES.contains(&kind) {
        causes.push(invalid("type", &format!("has invalid value: {kind}")));
    }
    if info.group.is_empty() {
        causes.extend(namespace_of_subject(object, view));
    } else {
        causes.extend(superseded(object));
    }
    causes
}

/// What one fact is called in the two views of an event.
struct View {
    subject: &'static str,
    controller: &'static str,
    message: &'static str,
}

const CORE: View = View { subject: "involvedObject", controller: "reportingComponent", message: "message" };
const EVENTS: View = View { subject: "regarding", controller: "reportingController", message: "note" };

/// An event about an object of the cluster lives in `default`.
fn namespace_of_subject(object: &Value, view: &View) -> Vec<Cause> {
    let own = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let subject = object.get(view.subject).map(|subject| text(subject, "namespace")).unwrap_or_default();
    let fits =
        if subject.is_empty() { matches!(own, "" | "default" | "kube-system") } else { subject == own };
    if fits {
        Vec::new()
    } else {
        vec![Cause::invalid("involvedObject.namespace", &subject.into(), "does not match event.namespace")]
    }
}

/// Fields of the old view may not be set through the new one.
fn superseded(object: &Value) -> Vec<Cause> {
    let set = |name: &str| object.get(name).is_some_and(|value| !value.is_null() && *value != 0);
    let mut causes = Vec::new();
    for (field, name) in
        [("firstTimestamp", "deprecatedFirstTimestamp"), ("lastTimestamp", "deprecatedLastTimestamp")]
    {
        if set(name) {
            causes.push(invalid(field, "needs to be unset"));
        }
    }
    if set("deprecatedCount") {
        causes.push(invalid("count", "needs to be unset"));
    }
    let source = object.get("deprecatedSource").unwrap_or(&Value::Null);
    if !text(source, "component").is_empty() || !text(source, "host").is_empty() {
        causes.push(invalid("source", "needs to be unset"));
    }
    causes
}

/// Most causes do not show the value.
fn invalid(field: &str, why: &str) -> Cause {
    Cause::invalid(field, &"".into(), why)
}
