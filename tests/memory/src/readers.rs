//! Readers of bytes. What they make of them is dropped: only what it takes counts.

use admit_apimachinery::yaml;
use admit_policy::{Arena, LoadOptions, PolicySet, Review, json, manifest};

/// Something that reads bytes.
pub type Reader = fn(&[u8]);

/// All of them, with their names.
pub const ALL: [(&str, Reader); 5] =
    [("json", value), ("review", review), ("yaml", values), ("manifest", documents), ("policies", policies)];

/// JSON as a request's body.
pub fn value(bytes: &[u8]) {
    drop(json::parse(bytes));
}

/// JSON as an AdmissionReview.
pub fn review(bytes: &[u8]) {
    let arena = Arena::for_text(bytes.len());
    drop(Review::read(&arena, bytes).map(|review| review.envelope));
}

/// YAML as a request's body.
pub fn values(bytes: &[u8]) {
    drop(yaml::parse_values(&String::from_utf8_lossy(bytes)));
}

/// YAML as a file.
pub fn documents(bytes: &[u8]) {
    drop(manifest::read_leniently("file.yaml", &String::from_utf8_lossy(bytes)));
}

/// YAML as a file of policies, as `serve`, `check` and `lint` load it.
pub fn policies(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    drop(PolicySet::load_files([("file.yaml", &*text)], LoadOptions::default()));
}
