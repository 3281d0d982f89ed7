//! Applies objects of built-in kinds. Their defaults and checks come from a
//! [`Builtins`](crate::set::builtins::Builtins); kinds that it does not know
//! are taken as written.

use std::sync::Arc;

use serde_json::Value;

use super::custom::{carried_over, not_strict};
use super::{Applied, Change, FieldValidation, Pair, Rehearsal};
use crate::read::object::Object;
use crate::report::decision::Reason;
use crate::report::recording::Recording;
use crate::request::Request;
use crate::set::builtins::Prepared;

pub(super) fn apply(rehearsal: &Rehearsal<'_>, pair: &Pair, recording: Option<&Recording>) -> Applied {
    let change = if pair.old.is_some() { Change::Update } else { Change::Create };
    let new = carried_over(&pair.new, pair.old.as_deref(), rehearsal.builtins);
    if pair.old.as_deref() == Some(&new) {
        return Applied::new(Change::Unchanged);
    }
    let status = rehearsal.is_of_status();
    let prepared = rehearsal.builtins.and_then(|kinds| kinds.prepare(&new, pair.old.as_deref(), status));
    let Some(prepared) = prepared else { return as_written(rehearsal, pair, new, recording) };
    let Prepared { object, old, strict, refusal, warnings } = prepared;
    if refusal.is_none() && old.as_ref() == Some(&object) && strict.is_empty() {
        return Applied::new(Change::Unchanged);
    }
    let mut applied = Applied { refusal, warnings, ..Applied::new(change) };
    match rehearsal.options.field_validation {
        FieldValidation::Strict if !strict.is_empty() => {
            applied.refusal = Some(not_strict(&pair.identity.kind, &strict))
        }
        FieldValidation::Strict | FieldValidation::Ignore => {}
        FieldValidation::Warn => applied.warnings.splice(0..0, strict).for_each(drop),
    }
    // Policies never see an object that cannot be decoded; they may make an invalid one valid.
    if applied.refusal.as_ref().is_some_and(|status| status.code == Reason::BadRequest.code()) {
        return applied;
    }
    let refusal = applied.refusal.take();
    let request = rehearsal.request(pair, object, old.map(Arc::new));
    match rehearsal.mutate(&request, &mut applied, recording) {
        None if applied.refusal.is_some() => return applied,
        None if refusal.is_some() => applied.refusal = refusal,
        None => rehearsal.decide(&request, &mut applied, recording),
        Some(mutated) => {
            let again =
                rehearsal.builtins.and_then(|kinds| kinds.prepare(&mutated, pair.old.as_deref(), status));
            let Some(Prepared { object, old, refusal, warnings, .. }) = again else { return applied };
            let is_new = |warning: &String| !applied.warnings.contains(warning);
            let warnings: Vec<String> = warnings.into_iter().filter(is_new).collect();
            applied.warnings.extend(warnings);
            if applied.mutated.is_some() {
                applied.mutated = Some(object.clone());
            }
            match refusal {
                Some(refusal) => applied.refusal = Some(refusal),
                None => {
                    let request = rehearsal.request(pair, object, old.map(Arc::new));
                    rehearsal.decide(&request, &mut applied, recording);
                }
            }
        }
    }
    applied
}

fn as_written(rehearsal: &Rehearsal<'_>, pair: &Pair, new: Value, recording: Option<&Recording>) -> Applied {
    let new = match pair.old.as_deref() {
        Some(old) if rehearsal.is_of_status() => with_status_of(&new, old),
        _ => new,
    };
    if pair.old.as_deref() == Some(&new) {
        return Applied::new(Change::Unchanged);
    }
    let change = if pair.old.is_some() { Change::Update } else { Change::Create };
    let mut applied = Applied { as_written: true, ..Applied::new(change) };
    let request = rehearsal.request(pair, new, pair.old.clone());
    let mutated = rehearsal.mutate(&request, &mut applied, recording);
    if applied.refusal.is_none() {
        let object = mutated.map(Object::from).or_else(|| request.object.clone());
        rehearsal.decide(&Request { object, ..request }, &mut applied, recording);
    }
    applied
}

/// A request for the status changes nothing else.
fn with_status_of(new: &Value, old: &Value) -> Value {
    let mut object = old.clone();
    if let (Some(fields), Some(status)) = (object.as_object_mut(), new.get("status")) {
        fields.insert("status".to_owned(), status.clone());
    }
    object
}
