//! Applies a server's defaults and checks to objects of built-in kinds in test cases, before policies see them.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldErrorKind;
use admit_apimachinery::status::Status;
use serde_json::Value;

use super::Outcome;
use super::expect::{Answer, Told};
use crate::read::object::Object;
use crate::report::decision::{Reason, reason_named};
use crate::request::host::Scope;
use crate::request::{Operation, Request};
use crate::set::builtins::{Builtins, Prepared};
use crate::set::documents::Documents;
use crate::tools::apply::not_strict;

/// An object that a server does not take.
pub(super) struct Refused {
    pub(super) answer: Answer,
    /// Whether policies cannot change that.
    pub(super) is_final: bool,
}

/// Processes the objects of a request as a server does before policies run, if it knows the kind and would store the object. Returns
/// why it would reject it.
pub(super) fn prepare(request: &mut Request<'_>, host: &Documents) -> Result<(), Box<Refused>> {
    let Some(builtins) = host.builtins().filter(|_| is_written(request, host)) else { return Ok(()) };
    let Some(Prepared { object, old, strict, refusal, .. }) = prepared(request, host, builtins) else {
        return Ok(());
    };
    let refusal = if strict.is_empty() { refusal } else { Some(not_strict(&request.kind, &strict)) };
    request.object = Some(object.into());
    request.old_object = old.map(|old| Object::from(Arc::new(old)));
    match refusal {
        None => Ok(()),
        // What cannot be decoded no policy sees.
        Some(status) => Err(Box::new(Refused {
            is_final: status.code == Reason::BadRequest.code(),
            answer: of_status(&status),
        })),
    }
}

/// Whether the object would be stored: those sent to most subresources, and those that represent another resource, are not.
fn is_written(request: &Request<'_>, host: &Documents) -> bool {
    matches!(request.operation, Operation::Create | Operation::Update)
        && matches!(request.subresource.as_str(), "" | "status")
        && request.resource == host.resource_of(&request.kind)
}

fn prepared(request: &Request<'_>, host: &Documents, builtins: &dyn Builtins) -> Option<Prepared> {
    let is_namespaced = host.scope_of(&request.kind) == Scope::Namespaced;
    let whole = |object: &Object<'_>| {
        let mut object = object.value().into_owned();
        let named = is_namespaced && place(&mut object, &request.namespace);
        (object, named)
    };
    let (new, named) = whole(request.object.as_ref()?);
    let old = request.old_object.as_ref().map(|old| whole(old).0);
    let mut prepared = builtins.prepare(&new, old.as_ref(), request.subresource == "status")?;
    if named {
        displace(&mut prepared.object);
        prepared.old.iter_mut().for_each(displace);
    }
    Some(prepared)
}

/// Sets the namespace of a namespaced object, which cases omit. Returns whether it was omitted.
fn place(object: &mut Value, namespace: &str) -> bool {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return false };
    let is_left_out = !metadata.contains_key("namespace");
    if is_left_out {
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    is_left_out
}

fn displace(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("namespace");
    }
}

pub(super) fn of_status(status: &Status) -> Answer {
    let told = |message: &str, field: &str, reason: &str| Told {
        message: message.to_owned(),
        field: field.to_owned(),
        cause: FieldErrorKind::of_reason(reason),
    };
    let causes = status.causes().iter();
    let mut causes: Vec<Told> =
        causes.map(|cause| told(&cause.message, &cause.field, &cause.reason)).collect();
    // Users see the whole message, and may expect it.
    causes.push(told(&status.message, "", ""));
    Answer {
        outcome: Some(Outcome::Deny),
        told: causes,
        reason: reason_named(&status.reason),
        refusal: Some(status.message.clone()),
        ..Answer::default()
    }
}
