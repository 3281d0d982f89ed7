//! Validates custom resources by the loaded CRDs: rejects what an API server with the same schema and rules would
//! reject, with the same messages.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::pointer;
use admit_policy::crd::{CompiledCrd, CrdVersion, Unread, Write, Written};
use admit_policy::schema::Malformed;
use admit_policy::{Deadline, Denial, Documents, EvalOptions, Operation, Reason, Request, Status};
use serde_json::Value;

/// The result of validating a request.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) denial: Option<Denial>,
    /// Unknown fields, and errors that were tolerated because the values did not change (ratcheting).
    pub(super) warnings: Vec<String>,
    /// The time was over before validation was complete.
    pub(super) interrupted: bool,
}

/// Validates the object of `request` if a loaded CRD serves its kind. Deletions have no object to validate, and kinds of
/// subresources such as scale are not defined by CRDs.
pub(super) fn check(documents: &Documents, request: &Request<'_>, deadline: Deadline<'_>) -> Checked {
    let written = matches!(request.operation, Operation::Create | Operation::Update);
    let (Some(object), true) = (&request.object, written) else { return Checked::default() };
    let Some(definition) = documents.crd_of(&request.kind) else { return Checked::default() };
    let Some(version) = definition.version(&request.kind.version) else { return Checked::default() };
    let written = write((definition, version), request, &object.value(), deadline);
    let interrupted = written.interrupted;
    if written.errors.is_empty() {
        return Checked { denial: None, warnings: written.warnings, interrupted };
    }
    Checked { denial: Some(denial(definition, &written)), warnings: Vec::new(), interrupted }
}

fn write(
    (definition, version): (&CompiledCrd, &CrdVersion),
    request: &Request<'_>,
    object: &Value,
    deadline: Deadline<'_>,
) -> Written {
    // Only updates ratchet, even if the review of a creation has an old object.
    let old = request.old_object.as_ref().filter(|_| request.operation == Operation::Update);
    let old = match old.map(|old| stored(version, old.value().into_owned(), deadline)).transpose() {
        Ok(old) => old,
        Err(unread) => return Written::unread(object.clone(), unread),
    };
    let write = Write {
        crd: definition,
        version,
        old: old.as_ref(),
        status: request.subresource == "status",
        eval: EvalOptions { deadline: Some(deadline), ..EvalOptions::default() },
    };
    write.decide(object)
}

/// Prunes and defaults the old object by this CRD: the API server did that by its own CRD, which may differ.
fn stored(version: &CrdVersion, mut object: Value, deadline: Deadline<'_>) -> Result<Value, Unread> {
    version.read(&mut object, Malformed::Refuse, Some(deadline))?;
    Ok(object)
}

/// Creates a denial with the whole `Status`, with a cause for each error.
fn denial(definition: &CompiledCrd, written: &Written) -> Denial {
    let (group, kind) = (&definition.definition().group, &definition.definition().names.kind);
    let name = pointer::text(&written.object, "/metadata/name");
    let causes = written.errors.iter().map(FieldError::cause).collect();
    let status = Status::invalid(group, kind, name, causes);
    Denial { message: status.message.clone(), reason: Reason::Invalid, status }
}
