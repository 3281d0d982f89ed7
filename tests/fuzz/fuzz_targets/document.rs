//! Any bytes: reading ends, and a document that reads is the one that `serde_json` reads where that reads it too.
#![no_main]

use admit_cel::{Node, ReadLimits, document};
use bumpalo::Bump;
use libfuzzer_sys::fuzz_target;
use serde_json::Value as Json;

fuzz_target!(|bytes: &[u8]| {
    let arena = Bump::new();
    let Ok(ours) = document::parse(&arena, bytes, &ReadLimits::default()) else { return };
    if let Ok(theirs) = serde_json::from_slice::<Json>(bytes) {
        assert_eq!(unsigned(ours.to_json()), unsigned(Node::from_json(&theirs).to_json()));
    }
});

/// Without the sign of zeros: `-0` is an integer to Kubernetes, and a double to `serde_json`.
fn unsigned(json: Json) -> Json {
    match json {
        Json::Number(number) if number.as_f64() == Some(0.0) => Json::from(0),
        Json::Array(items) => items.into_iter().map(unsigned).collect(),
        Json::Object(fields) => fields.into_iter().map(|(name, value)| (name, unsigned(value))).collect(),
        other => other,
    }
}
