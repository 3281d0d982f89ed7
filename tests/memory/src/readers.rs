//! Reads bytes in each way that the program does. The results are dropped: only the memory counts.

use admit_apimachinery::yaml;
use admit_policy::{Arena, LoadOptions, PolicySet, Review, json, manifest};

/// A function that reads bytes.
pub type Reader = fn(&[u8]);

/// All readers with their names.
pub const ALL: [(&str, Reader); 5] =
    [("json", value), ("review", review), ("yaml", values), ("manifest", documents), ("policies", policies)];

/// Reads JSON as a request's body.
pub fn value(bytes: &[u8]) {
    drop(json::parse(bytes));
}

/// Reads JSON as an AdmissionReview.
pub fn review(bytes: &[u8]) {
    let arena = Arena::for_text(bytes.len());
    drop(Review::read(&arena, bytes).map(|review| review.envelope));
}

/// Reads YAML as a request's body.
pub fn values(bytes: &[u8]) {
    drop(yaml::parse_values(&String::from_utf8_lossy(bytes)));
}

/// Reads YAML as a file.
pub fn documents(bytes: &[u8]) {
    drop(manifest::read_leniently("file.yaml", &String::from_utf8_lossy(bytes)));
}

/// Reads YAML as a file of policies, as `serve`, `check` and `lint` load it.
pub fn policies(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    drop(PolicySet::load_files([("file.yaml", &*text)], LoadOptions::default()));
}
