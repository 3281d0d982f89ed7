//! Applies custom resources: carries over what the server keeps from the old object, checks schema and rules, then
//! asks the policies.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{Applied, Change, FieldValidation, Pair, Rehearsal, invalid, merge};
use crate::crd::{CompiledCrd, Write};
use crate::report::decision::{Reason, Status};
use crate::report::recording::Recording;
use crate::request::GroupVersionKind;
use crate::set::builtins::Builtins;

/// The annotation in which kubectl stores what it applied last; manifests do not have it.
const LAST_APPLIED_KEY: &str = "kubectl.kubernetes.io/last-applied-configuration";
const LAST_APPLIED: &str = "/annotations/kubectl.kubernetes.io~1last-applied-configuration";

/// The prefix of warnings of a [`Write`] about unknown fields.
const UNKNOWN: &str = "unknown field ";

pub(super) fn apply(
    rehearsal: &Rehearsal<'_>,
    pair: &Pair,
    crd: &Arc<CompiledCrd>,
    recording: Option<&Recording>,
) -> Applied {
    let change = if pair.old.is_some() { Change::Update } else { Change::Create };
    let kind = &pair.identity.kind;
    let Some(version) = crd.version(&kind.version) else { return Applied::new(change) };
    let old = pair.old.as_deref().map(|old| version.stored(old));
    let new = carried_over(&pair.new, old.as_ref(), None);
    let eval = recording.into();
    let status = rehearsal.is_of_status();
    let written = Write { crd, version, old: old.as_ref(), status, eval }.decide(&new);
    if written.errors.is_empty() && old.as_ref() == Some(&written.object) {
        return Applied::new(Change::Unchanged);
    }
    let (unknown, warnings): (Vec<String>, Vec<String>) =
        written.warnings.into_iter().partition(|warning| warning.starts_with(UNKNOWN));
    let mut applied = Applied { warnings, validated: true, ..Applied::new(change) };
    match rehearsal.options.field_validation {
        FieldValidation::Strict if !unknown.is_empty() => {
            applied.refusal = Some(not_strict(&pair.identity.kind, &unknown));
            return applied;
        }
        FieldValidation::Strict | FieldValidation::Ignore => {}
        FieldValidation::Warn => applied.warnings.splice(0..0, unknown).for_each(drop),
    }
    let stored = old.clone().map(Arc::new);
    let request = rehearsal.request(pair, written.object, stored.clone());
    let (request, errors) = match rehearsal.mutate(&request, &mut applied, recording) {
        None => (request, written.errors),
        // A field that a policy adds and the schema does not have is dropped without a warning.
        Some(mutated) => {
            let again = Write { crd, version, old: old.as_ref(), status, eval }.decide(&mutated);
            if applied.mutated.is_some() {
                applied.mutated = Some(again.object.clone());
            }
            (rehearsal.request(pair, again.object, stored), again.errors)
        }
    };
    match applied.refusal {
        Some(_) => {}
        None if errors.is_empty() => rehearsal.decide(&request, &mut applied, recording),
        None => applied.refusal = Some(invalid(&pair.identity, &errors)),
    }
    applied
}

/// Returns the new object with what others write, taken from the old one: the server's metadata, kubectl's own annotation, and a status
/// that the manifest does not have. If the old object is from a server, all fields that the manifest leaves out are kept, too.
pub(super) fn carried_over(new: &Value, old: Option<&Value>, builtins: Option<&dyn Builtins>) -> Value {
    const SERVERS: [&str; 8] = [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    ];
    let Some(old) = old else { return new.clone() };
    let mut new = if merge::is_live(old) { merge::applied(new, old, builtins) } else { new.clone() };
    if let (Some(fields), Some(status)) = (new.as_object_mut(), old.get("status")) {
        fields.entry("status").or_insert_with(|| status.clone());
    }
    let (Some(metadata), Some(old)) =
        (new.get_mut("metadata").and_then(Value::as_object_mut), old.get("metadata"))
    else {
        return new;
    };
    for field in SERVERS {
        if let Some(value) = old.get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(applied) = old.pointer(LAST_APPLIED)
        && let Some(annotations) =
            metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new())).as_object_mut()
    {
        annotations.insert(LAST_APPLIED_KEY.to_owned(), applied.clone());
    }
    new
}

/// Builds the error 400 of strict decoding.
pub(crate) fn not_strict(kind: &GroupVersionKind, unknown: &[String]) -> Status {
    let message = format!(
        "{0} in version \"{1}\" cannot be handled as a {0}: strict decoding error: {2}",
        kind.kind,
        kind.version,
        unknown.join(", ")
    );
    Status::new(Reason::BadRequest, message)
}
