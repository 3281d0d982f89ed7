//! Event. Those with an `eventTime` must be complete; older ones only have to be in the namespace of their subject.
//! Through `events.k8s.io` only complete ones are created, and hardly anything of them may change.
//!
//! Errors name the fields as the server's own form of an event does, whose names are most of them those of the core
//! group.

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use admit_apimachinery::names::NameRule;
use admit_apimachinery::pointer::text;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::go_struct;
use crate::kinds::{Habit, Naming, Strategy};
use crate::object;

pub(super) const CORE: Strategy = Strategy {
    kind: "Event",
    habits: &[Habit::CreatedByUpdate, Habit::Uncollected, Habit::JudgedApart, Habit::ChangeOnce],
    name: Some(Naming::Rule(NameRule::PathSegment)),
    validate: Some(|object, errors| from_the_start(object, &OLD, errors)),
    ..Strategy::PLAIN
};

pub(super) const EVENTS: Strategy = Strategy {
    kind: "Event",
    habits: &[Habit::CreatedByUpdate, Habit::Uncollected],
    name: Some(Naming::Rule(NameRule::Subdomain)),
    validate_create: Some(create),
    validate_update: Some(update),
    ..Strategy::PLAIN
};

const MESSAGE_LIMIT: usize = 1024;
const NAME_LIMIT: usize = 128;

/// What some facts are called in a view of an event.
struct View {
    subject: &'static str,
    controller: &'static str,
    message: &'static str,
}

const OLD: View = View { subject: "involvedObject", controller: "reportingComponent", message: "message" };
const NEW: View = View { subject: "regarding", controller: "reportingController", message: "note" };

/// What both views have demanded from the start.
fn from_the_start(object: &Value, view: &View, errors: &mut FieldErrors) {
    let event = Field::root(object);
    let is_old_style = event.get("eventTime").text().is_empty();
    let own = object::namespace(object);
    let subject = event.get(view.subject).get("namespace").text();
    // An event about an object of the cluster lives in `default`.
    let fits = match subject {
        "" => matches!(own, "" | "default") || (own == "kube-system" && !is_old_style),
        subject => subject == own || !is_old_style,
    };
    if !fits {
        let place = event.get("involvedObject").get("namespace");
        errors.add(|| place.invalid_as(subject, "does not match event.namespace"));
    }
    if !is_old_style {
        complete(&event, view, errors);
    }
    let place = event.get("namespace");
    for problem in NameRule::Subdomain.problems(own, false) {
        errors.add(|| place.invalid_as(own, problem));
    }
}

fn complete(event: &Field<'_>, view: &View, errors: &mut FieldErrors) {
    let controller = event.get(view.controller).text();
    let place = event.get(view.controller);
    if controller.is_empty() {
        errors.add(|| place.required(""));
    }
    for problem in labels::key(controller) {
        errors.add(|| place.invalid_as(controller, problem));
    }
    for name in ["reportingInstance", "action", "reason"] {
        let field = event.get(name);
        if field.text().is_empty() {
            errors.add(|| field.required(""));
        }
        at_most(&field, field.text(), NAME_LIMIT, errors);
    }
    at_most(&event.get("message"), event.get(view.message).text(), MESSAGE_LIMIT, errors);
}

/// Errors about most fields do not show the value.
fn at_most(field: &Field<'_>, text: &str, limit: usize, errors: &mut FieldErrors) {
    if text.len() > limit {
        errors.add(|| field.invalid_as("", format!("can have at most {limit} characters")));
    }
}

fn create(object: &Value, errors: &mut FieldErrors) {
    from_the_start(object, &NEW, errors);
    let event = Field::root(object);
    series(&event, errors);
    let time = event.get("eventTime");
    if time.text().is_empty() {
        errors.add(|| time.required(""));
    }
    let kind = event.get("type");
    if !["Normal", "Warning"].contains(&kind.text()) {
        errors.add(|| kind.invalid_as("", format!("has invalid value: {}", kind.text())));
    }
    superseded(&event, errors);
}

/// Fields of the old view may not be set through the new one.
fn superseded(event: &Field<'_>, errors: &mut FieldErrors) {
    let source = event.get("deprecatedSource");
    let set = [
        ("firstTimestamp", event.get("deprecatedFirstTimestamp").is_set()),
        ("lastTimestamp", event.get("deprecatedLastTimestamp").is_set()),
        ("count", event.get("deprecatedCount").integer().unwrap_or(0) != 0),
        ("source", ["component", "host"].iter().any(|name| !source.get(name).text().is_empty())),
    ];
    for (name, _) in set.into_iter().filter(|(_, is_set)| *is_set) {
        errors.add(|| event.get(name).invalid_as("", "needs to be unset"));
    }
}

fn series(event: &Field<'_>, errors: &mut FieldErrors) {
    let series = event.get("series");
    if !series.is_set() {
        return;
    }
    if series.get("count").integer().unwrap_or(0) < 2 {
        errors.add(|| series.get("count").invalid_as("", "should be at least 2"));
    }
    if series.get("lastObservedTime").text().is_empty() {
        errors.add(|| series.get("lastObservedTime").required(""));
    }
}

/// Nothing but the series may change. The reason is compared twice.
fn update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    from_the_start(object, &NEW, errors);
    let event = Field::root(object);
    if object.get("series") != old.get("series") {
        series(&event, errors);
    }
    for (name, shown) in FIXED {
        let (new, before) = (shown(object), shown(old));
        if new != before {
            errors.add(|| event.get(name).invalid_as(new, "field is immutable"));
        }
    }
}

/// A field, and what is read of it.
type FixedField = (&'static str, fn(&Value) -> BadValue);

/// The fields that stay, and how each is shown, in the order in which they are compared.
const FIXED: [FixedField; 14] = [
    ("involvedObject", |event| in_go(event.get("regarding").unwrap_or(&Value::Null))),
    ("reason", |event| text(event, "/reason").into()),
    ("message", |event| text(event, "/note").into()),
    ("source", source),
    ("firstTimestamp", |event| of(event, "deprecatedFirstTimestamp")),
    ("lastTimestamp", |event| of(event, "deprecatedLastTimestamp")),
    ("count", |event| event.get("deprecatedCount").and_then(Value::as_i64).unwrap_or(0).into()),
    ("reason", |event| text(event, "/reason").into()),
    ("type", |event| text(event, "/type").into()),
    ("eventTime", |event| of(event, "eventTime")),
    ("action", |event| text(event, "/action").into()),
    ("related", related),
    ("reportingController", |event| text(event, "/reportingController").into()),
    ("reportingInstance", |event| text(event, "/reportingInstance").into()),
];

fn of(event: &Value, name: &str) -> BadValue {
    event.get(name).unwrap_or(&Value::Null).into()
}

fn source(event: &Value) -> BadValue {
    let source = event.get("deprecatedSource").unwrap_or(&Value::Null);
    go_struct::of_texts(&[("Component", text(source, "/component")), ("Host", text(source, "/host"))])
}

fn related(event: &Value) -> BadValue {
    event.get("related").filter(|related| !related.is_null()).map_or(Value::Null.into(), in_go)
}

fn in_go(reference: &Value) -> BadValue {
    go_struct::of_texts(&[
        ("Kind", text(reference, "/kind")),
        ("Namespace", text(reference, "/namespace")),
        ("Name", text(reference, "/name")),
        ("UID", text(reference, "/uid")),
        ("APIVersion", text(reference, "/apiVersion")),
        ("ResourceVersion", text(reference, "/resourceVersion")),
        ("FieldPath", text(reference, "/fieldPath")),
    ])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    fn event() -> Value {
        json!({"metadata": {"name": "e", "namespace": "t"}, "regarding": {"namespace": "t"}, "type": "Normal",
            "eventTime": "2020-01-01T00:00:00.000000Z", "reportingController": "a/b", "reportingInstance": "i",
            "action": "a", "reason": "r"})
    }

    #[test]
    fn new_events_are_complete() {
        assert!(told(&EVENTS, &event(), None).is_empty());
        let mut wrong = event();
        wrong["deprecatedCount"] = json!(1);
        wrong["deprecatedSource"] = json!({"host": "h"});
        wrong["series"] = json!({"count": 1});
        wrong["type"] = json!("Odd");
        wrong["action"] = json!("a".repeat(129));
        assert_eq!(
            told(&EVENTS, &wrong, None),
            [
                "action: Invalid value: \"\": can have at most 128 characters",
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
                "type: Invalid value: \"\": has invalid value: Odd",
                "count: Invalid value: \"\": needs to be unset",
                "source: Invalid value: \"\": needs to be unset",
            ]
        );
    }

    #[test]
    fn nothing_but_the_series_changes() {
        let mut changed = event();
        changed["series"] = json!({"count": 2, "lastObservedTime": "2020-01-01T00:00:00.000000Z"});
        assert!(told(&EVENTS, &changed, Some(&event())).is_empty());
        changed["related"] = json!({"kind": "Pod"});
        changed["reason"] = json!("s");
        assert_eq!(
            told(&EVENTS, &changed, Some(&event())),
            [
                "reason: Invalid value: \"s\": field is immutable",
                "reason: Invalid value: \"s\": field is immutable",
                "related: Invalid value: {\"Kind\":\"Pod\",\"Namespace\":\"\",\"Name\":\"\",\"UID\":\"\",\
                 \"APIVersion\":\"\",\"ResourceVersion\":\"\",\"FieldPath\":\"\"}: field is immutable",
            ]
        );
    }

    #[test]
    fn old_events_lie_beside_their_subject() {
        let old = |own: &str, subject: &str| json!({"metadata": {"namespace": own}, "involvedObject": {"namespace": subject}});
        assert!(
            told(&CORE, &old("t", "t"), None).is_empty() && told(&CORE, &old("default", ""), None).is_empty()
        );
        assert_eq!(
            told(&CORE, &old("t", "u"), None),
            ["involvedObject.namespace: Invalid value: \"u\": does not match event.namespace"]
        );
    }
}
