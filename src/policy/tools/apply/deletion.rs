//! Applies deletions: only policies are asked, and see the object as it was.

use std::sync::Arc;

use super::{Applied, Change, Pair, Rehearsal};
use crate::report::recording::Recording;
use crate::request::{Operation, Request};

/// Deletes the old object of the pair, or else the given one.
pub(super) fn apply(rehearsal: &Rehearsal<'_>, pair: &Pair, recording: Option<&Recording>) -> Applied {
    let kind = &pair.identity.kind;
    let stored = pair.old.as_ref().unwrap_or(&pair.new);
    let version = rehearsal.host.crd_of(kind).and_then(|crd| crd.version(&kind.version));
    let prepared = || {
        let known = rehearsal.builtins?.prepare(stored, Some(stored), false)?;
        known.old.map(Arc::new)
    };
    let (object, known) = match version {
        Some(version) => (Arc::new(version.stored(stored)), true),
        None => prepared().map_or_else(|| (Arc::clone(stored), false), |object| (object, true)),
    };
    let request = Request {
        operation: Operation::Delete,
        object: None,
        ..rehearsal.request(pair, serde_json::Value::Null, Some(object))
    };
    let mut applied = Applied { as_written: !known, ..Applied::new(Change::Delete) };
    rehearsal.decide(&request, &mut applied, recording);
    applied
}
