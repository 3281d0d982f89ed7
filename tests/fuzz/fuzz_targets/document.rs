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
        assert_eq!(ours.to_json(), Node::from_json(&theirs).to_json());
    }
});
