//! Events. Those with an `eventTime` must be complete; older ones only have to be in the namespace of their subject.
//! Through `events.k8s.io` only complete ones are created, and hardly anything of them may change.

use admit_apimachinery::labels;
use serde_json::Value;

use super::text;
use crate::resources::ResourceInfo;
use crate::status::{Cause, Causes};

const MESSAGE_LIMIT: usize = 1024;
const NAME_LIMIT: usize = 128;
const TYPES: [&str; 2] = ["Normal", "Warning"];

/// What is wrong with a new event.
pub(super) fn event(info: &ResourceInfo, object: &Value) -> Causes {
    let view = View::of(info);
    let mut causes = from_the_start(object, view);
    if !info.group.is_empty() {
        causes.extend(series(object));
        if text(object, "eventTime").is_empty() {
            causes.push(Cause::required("eventTime", ""));
        }
        let kind = text(object, "type");
        if !TYPES.contains(&kind) {
            causes.push(invalid("type", &format!("has invalid value: {kind}")));
        }
        causes.extend(superseded(object));
    }
    causes
}

/// What is wrong with a changed event: through `events.k8s.io` nothing but the series may change.
pub(super) fn changed(info: &ResourceInfo, object: &Value, old: &Value) -> Causes {
    if info.group.is_empty() {
        return from_the_start(object, View::of(info));
    }
    let mut causes =
        if object.get("series") == old.get("series") { Causes::default() } else { series(object) };
    for (field, name) in IMMUTABLE {
        let value = object.get(name).unwrap_or(&Value::Null);
        if value != old.get(name).unwrap_or(&Value::Null) {
            causes.push(Cause::invalid(field, value, "field is immutable"));
        }
    }
    causes
}

/// The fields of an event that stay, as the core view and as `events.k8s.io` name them.
const IMMUTABLE: [(&str, &str); 13] = [
    ("involvedObject", "regarding"),
    ("reason", "reason"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("type", "type"),
    ("eventTime", "eventTime"),
    ("action", "action"),
    ("related", "related"),
    ("reportingController", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

/// What both views have demanded from the start.
fn from_the_start(object: &Value, view: &View) -> Causes {
    let own = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let subject = object.get(view.subject).map(|subject| text(subject, "namespace")).unwrap_or_default();
    let old_style = text(object, "eventTime").is_empty();
    // An event about an object of the cluster lives in `default`.
    let fits = match subject {
        "" => matches!(own, "" | "default") || (own == "kube-system" && !old_style),
        subject => subject == own || !old_style,
    };
    let mut causes = Causes::default();
    if !fits {
        causes.push(Cause::invalid(
            "involvedObject.namespace",
            &subject.into(),
            "does not match event.namespace",
        ));
    }
    if old_style {
        return causes;
    }
    let controller = text(object, view.controller);
    if controller.is_empty() {
        causes.push(Cause::required(view.controller, ""));
    }
    for problem in labels::key(controller) {
        causes.push(Cause::invalid(view.controller, &controller.into(), &problem));
    }
    let bounds = [
        ("reportingInstance", text(object, "reportingInstance"), NAME_LIMIT),
        ("action", text(object, "action"), NAME_LIMIT),
        ("reason", text(object, "reason"), NAME_LIMIT),
        ("message", text(object, view.message), MESSAGE_LIMIT),
    ];
    for (field, value, limit) in bounds {
        if value.is_empty() && field != "message" {
            causes.push(Cause::required(field, ""));
        } else if value.len() > limit {
            causes.push(invalid(field, &format!("can have at most {limit} characters")));
        }
    }
    causes
}

fn series(object: &Value) -> Causes {
    let Some(series) = object.get("series").filter(|series| !series.is_null()) else {
        return Causes::default();
    };
    let mut causes = Causes::default();
    if series.get("count").and_then(Value::as_i64).unwrap_or(0) < 2 {
        causes.push(invalid("series.count", "should be at least 2"));
    }
    if text(series, "lastObservedTime").is_empty() {
        causes.push(Cause::required("series.lastObservedTime", ""));
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

impl View {
    fn of(info: &ResourceInfo) -> &'static Self {
        if info.group.is_empty() { &CORE } else { &EVENTS }
    }
}

/// Fields of the old view may not be set through the new one.
fn superseded(object: &Value) -> Causes {
    let set = |name: &str| object.get(name).is_some_and(|value| !value.is_null() && *value != 0);
    let mut causes = Causes::default();
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
