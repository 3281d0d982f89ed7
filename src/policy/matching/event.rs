//! Converts Events between `v1` and `events.k8s.io/v1`, which name some of their fields differently (kubernetes
//! `pkg/apis/events/v1/conversion.go`).

use serde_json::{Map, Value, json};

/// The same field in `v1` and in `events.k8s.io/v1`.
const FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// An object of `events.k8s.io/v1` as one of `v1`.
pub(super) fn to_core(event: &Value) -> Value {
    let name = |name: &str| FIELDS.iter().find(|(_, newer)| *newer == name).map(|(core, _)| *core);
    let mut fields = renamed(event, "v1", name);
    // Zero values that Go's encoder writes nevertheless.
    for (field, zero) in [
        ("involvedObject", json!({})),
        ("source", json!({})),
        ("firstTimestamp", Value::Null),
        ("lastTimestamp", Value::Null),
        ("eventTime", Value::Null),
        ("reportingComponent", json!("")),
        ("reportingInstance", json!("")),
    ] {
        fields.entry(field).or_insert(zero);
    }
    Value::Object(fields)
}

/// An object of `v1` as one of `events.k8s.io/v1`.
pub(super) fn to_events(event: &Value) -> Value {
    let name = |name: &str| FIELDS.iter().find(|(core, _)| *core == name).map(|(_, newer)| *newer);
    let mut fields = renamed(event, "events.k8s.io/v1", name);
    for (field, zero) in [
        ("regarding", json!({})),
        ("deprecatedSource", json!({})),
        ("deprecatedFirstTimestamp", Value::Null),
        ("deprecatedLastTimestamp", Value::Null),
        ("eventTime", Value::Null),
    ] {
        fields.entry(field).or_insert(zero);
    }
    for field in ["reportingController", "reportingInstance"] {
        if fields.get(field).is_some_and(|text| text == "") {
            fields.shift_remove(field);
        }
    }
    Value::Object(fields)
}

fn renamed(
    event: &Value,
    api_version: &str,
    other_name: impl Fn(&str) -> Option<&'static str>,
) -> Map<String, Value> {
    let members = event.as_object().into_iter().flatten();
    let mut out: Map<String, Value> =
        members.map(|(name, value)| (other_name(name).unwrap_or(name).to_owned(), value.clone())).collect();
    out.insert("apiVersion".to_owned(), api_version.into());
    out
}
