//! Every protobuf body that kubectl was recorded to send is understood.

use admit_apiserver::internals::{decode, protobuf, tables};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::corpus;

#[test]
fn recorded_bodies_are_read() {
    let Some(folder) = testing::corpus("kubectl").unwrap() else { return };
    let mut read = 0;
    for scenario in corpus::lines(&folder.join("scenarios.jsonl")) {
        for exchange in exchanges(&scenario) {
            let Some(body) = exchange.pointer("/request/bodyBase64").and_then(Value::as_str) else {
                continue;
            };
            let bytes = STANDARD.decode(body).expect("base64");
            let path = exchange.pointer("/request/path").and_then(Value::as_str).expect("a path");
            let object = protobuf::decode(tables(), &bytes).unwrap_or_else(|error| panic!("{path}: {error}"));
            let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
            let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
            let kind =
                tables().kind(group, version, text("kind")).unwrap_or_else(|| panic!("{path}: {object}"));
            let canonical =
                decode::decode(tables(), kind, object).unwrap_or_else(|error| panic!("{path}: {error}"));
            assert!(canonical.unknown.is_empty(), "{path}");
            read += 1;
        }
    }
    assert!(read > 0, "the corpus holds no protobuf bodies");
}

fn exchanges(scenario: &Value) -> impl Iterator<Item = &Value> {
    let steps = scenario.get("steps").and_then(Value::as_array).into_iter().flatten();
    steps.filter_map(|step| step.get("exchanges").and_then(Value::as_array)).flatten()
}
