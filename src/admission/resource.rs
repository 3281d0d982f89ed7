//! Custom resources against the definitions that were loaded: what an API server whose installed definition has the same
//! schema and rules would refuse, in its words.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::pointer;
use admit_policy::crd::{CompiledCrd, CrdVersion, Unread, Write, Written};
use admit_policy::schema::Malformed;
use admit_policy::{Deadline, Denial, Documents, EvalOptions, Operation, Reason, Request, Status};
use serde_json::Value;

/// What a definition says about a request.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) denial: Option<Denial>,
    /// Unknown fields, and failures that were let pass because what they speak of did not change.
    pub(super) warnings: Vec<String>,
    /// The time was over before it was decided.
    pub(super) interrupted: bool,
}

/// Checks the object of `request` where a loaded definition serves its kind. Deletions have no object to check, and the
/// kinds of subresources such as scale are not the definition's.
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
    // Only updates ratchet; a creation whose review brings an old object is no reason to.
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

/// The old object as this definition reads it: the API server read it by its own, which may be another one.
fn stored(version: &CrdVersion, mut object: Value, deadline: Deadline<'_>) -> Result<Value, Unread> {
    version.read(&mut object, Malformed::Refuse, Some(deadline))?;
    Ok(object)
}

/// The whole `Status`, with a cause for each mistake.
fn denial(definition: &CompiledCrd, written: &Written) -> Denial {
    let (group, kind) = (&definition.definition().group, &definition.definition().names.kind);
    let name = pointer::text(&written.object, "/metadata/name");
    let causes = written.errors.iter().map(FieldError::cause).collect();
    let status = Status::invalid(group, kind, name, causes);
    Denial { message: status.message.clone(), reason: Reason::Invalid, status }
}
