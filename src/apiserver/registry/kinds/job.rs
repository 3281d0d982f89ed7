//! Jobs: labels that are read and not stored.

use serde_json::Value;

use crate::object;

/// A Job without labels is read as one with those of its template. It is stored without: a write of what was read is
/// then a change.
pub(super) fn read(job: &mut Value) {
    let labels = job.pointer("/spec/template/metadata/labels").cloned();
    object::set_meta(job, "labels", labels);
}

pub(super) fn reads_otherwise(job: &Value) -> bool {
    job.pointer("/metadata/labels").is_none() && job.pointer("/spec/template/metadata/labels").is_some()
}
