//! Implements PATCH: JSON patch, JSON merge patch and strategic merge patch, applied to the live object.

use std::sync::{Arc, OnceLock};

use admit_apimachinery::go;
use admit_policy::patch::{Replacing, patched, text_len};
use serde_json::Value;

use super::field_ownership::Ownership;
use super::patch_body::{Parsed, Patch, PatchFormat, read};
use super::patch_kind::{refused, refused_as, same_kind};
use super::update::{Change, named};
use super::written::belongs_to_path;
use super::{Answer, Registry};
use crate::builtin::{TypeId, restore, tables};
use crate::call::{Call, FieldValidation, WriteOptions};
use crate::codec::{self, Unread, recheck, recheck_kind};
use crate::object;
use crate::patch::merge;
use crate::patch::merge_key::PatchError;
use crate::patch::strategic;
use crate::patch::touched;
use crate::resources::SCALE;
use crate::status::Refusal;

impl Registry {
    /// # Errors
    /// 400 for an invalid document, 404, 409, 422 for one that cannot be applied.
    pub(crate) async fn patch(
        &self,
        call: &Call,
        name: &str,
        format: PatchFormat,
        body: &[u8],
        options: &WriteOptions,
    ) -> Result<Answer, Refusal> {
        call.check_name(name)?;
        // Parsed once the object exists: a patch of a missing object is a 404, whatever it holds.
        let read_once: OnceLock<Result<Patch<'_>, Refusal>> = OnceLock::new();
        let replicas = call.scale().map(|_| self.replicas(call)).unwrap_or_default();
        let make = |live: &mut Arc<Value>| {
            let patch = read_once
                .get_or_init(|| read(format, body, options.field_validation))
                .as_ref()
                .map_err(Clone::clone)?;
            if let Some(paths) = call.scale() {
                let old = paths.managed_scale_of(live, &replicas);
                let scale = scaled(call, name, (patch, old), options)?;
                return Ok(paths.with_scale(live, &scale));
            }
            accepted(call, name, (patch, &**live), options)
        };
        let change = Change { make: &make, uid_is_precondition: false, ownership: Ownership::Tracked };
        self.change(call, name, &change, options).await
    }
}

impl Patch<'_> {
    fn apply(&self, call: &Call, mut target: Value) -> Result<Value, Refusal> {
        match &self.kind {
            Parsed::Json(operations) => {
                patched(target, operations, Replacing::OrAdding).map_err(|_| Refusal::unprocessable())
            }
            Parsed::Merge(patch) => {
                merge::apply(&mut target, patch);
                touched::sort_merged(&mut target, patch);
                Ok(target)
            }
            Parsed::Strategic(patch) => {
                let target = std::mem::take(object::map_of(&mut target));
                strategic::apply(tables(), strategic_kind(call)?, target, &mut patch.take())
                    .map(Value::Object)
                    .map_err(|error| match error {
                        PatchError::DirectiveFormat(_) => Refusal::bad_request(error.to_string()),
                        PatchError::ListOfLists => Refusal::unprocessable(),
                        error => Refusal::unclassified(error.to_string()),
                    })
            }
            Parsed::Impossible => Err(Refusal::unprocessable()),
        }
    }

    /// Applies the patch to the object.
    fn made(&self, call: &Call, live: &Value) -> Result<Value, Refusal> {
        let patched = self.apply(call, object::copied(live))?;
        bounded(&patched)?;
        self.restored(call, live, patched)
    }

    /// Decodes the patched object: that of a strategic merge patch without serialization, keeping the object's
    /// kind.
    fn restored(&self, call: &Call, live: &Value, mut patched: Value) -> Result<Value, Refusal> {
        let info = &call.info;
        let kind = tables().kind(&info.group, &info.version, &info.kind);
        let (Parsed::Strategic(_), Some(id)) = (&self.kind, kind) else { return Ok(patched) };
        for field in ["kind", "apiVersion"] {
            if let Some(why) = patched.get(field).and_then(not_a_text) {
                return Err(refused_as(self.shown(call, live, &patched), why));
            }
            object::set_field(&mut patched, field, live.get(field).cloned());
        }
        restore(tables(), id, patched)
            .map_err(|why| refused_as(self.shown(call, live, &Value::Null), &why.to_string()))
    }

    /// Returns what refusals show: a strategic merge patch itself, or the result of another patch.
    fn shown(&self, call: &Call, live: &Value, patched: &Value) -> String {
        match (&self.kind, live, strategic_kind(call)) {
            (Parsed::Strategic(patch), Value::Object(live), Ok(kind)) => {
                let mut patch = patch.take();
                // What is left of it is shown, also where it cannot be applied.
                let _ = strategic::apply(tables(), kind, live.clone(), &mut patch);
                go::value::plain(&Value::Object(patch))
            }
            _ => patched.to_string(),
        }
    }
}

/// Returns the built-in kind of what is patched: the object, or its scale.
fn strategic_kind(call: &Call) -> Result<TypeId, Refusal> {
    let info = &call.info;
    let kind = if call.scale().is_some() {
        tables().kind(SCALE.0, SCALE.1, SCALE.2)
    } else {
        tables().kind(&info.group, &info.version, &info.kind)
    };
    kind.ok_or_else(|| Refusal::internal(format!("{} has no field table", info.kind)))
}

/// The size limit of a patched object, as JSON without managed fields: that of a body which creates it.
/// Otherwise each patch could add to an object as much as a body holds.
const MAX_OBJECT: usize = 3 << 20;

/// # Errors
/// 413 for an object larger than a body can be.
pub(super) fn bounded(object: &Value) -> Result<(), Refusal> {
    let managers = object::meta(object, "managedFields").map_or(0, text_len);
    if text_len(object).saturating_sub(managers) > MAX_OBJECT {
        return Err(Refusal::too_large(MAX_OBJECT));
    }
    Ok(())
}

fn not_a_text(value: &Value) -> Option<&'static str> {
    match value {
        Value::String(_) | Value::Null => None,
        Value::Number(number) if number.is_i64() => Some("cannot convert int64 to string"),
        _ => Some("unrecognized type: string"),
    }
}

/// Decodes the patched object and checks that it is still the object in the path. It is consumed; a refusal that
/// shows it builds it again.
fn accepted(
    call: &Call,
    name: &str,
    (patch, live): (&Patch<'_>, &Value),
    options: &WriteOptions,
) -> Result<Value, Refusal> {
    let (patched, unlike) = same_kind(call, name, patch.made(call, live)?)?;
    let received = match recheck(&call.info, call.custom.as_deref(), patched) {
        Ok(received) => received,
        // Upstream decodes it first, and ignores the patch after an error.
        Err(Unread::Inconvertible(why)) if matches!(patch.kind, Parsed::Strategic(_)) => {
            return Err(Refusal::unclassified(why));
        }
        Err(why) => {
            let patched = patch.made(call, live)?;
            return Err(why.refusal(|why| refused(&patched, &why)));
        }
    };
    call.emptied.set(received.emptied);
    let mut unknown = received.strict;
    if matches!(patch.kind, Parsed::Strategic(_)) {
        // Its result is converted without a text in between, which upstream tells in this order.
        unknown.sort();
    }
    let objections: Vec<String> = patch.strict.iter().cloned().chain(unlike).chain(unknown).collect();
    if options.field_validation == FieldValidation::Strict && !objections.is_empty() {
        let made = patch.made(call, live)?;
        object_to(call, options, objections, || patch.shown(call, live, &made))?;
    } else {
        object_to(call, options, objections, String::new)?;
    }
    let mut object = received.object;
    named(&object, name)?;
    belongs_to_path(call, &mut object)?;
    Ok(object)
}

/// Applies a patch to the Scale `old`, and checks that it is still that of the object in the path.
fn scaled(
    call: &Call,
    name: &str,
    (patch, old): (&Patch<'_>, Value),
    options: &WriteOptions,
) -> Result<Value, Refusal> {
    let uid = object::uid(&old).to_owned();
    let patched = patch.apply(call, old.clone())?;
    if let Some(why) = codec::unnamed(&patched) {
        return Err(refused(&patched, &why));
    }
    let text = |field: &str| patched.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let api_version = format!("{}/{}", SCALE.0, SCALE.1);
    let (given, version) = (text("kind").unwrap_or(SCALE.2), text("apiVersion").unwrap_or(&api_version));
    if given != SCALE.2 || version != api_version {
        let scheme = match call.info.builtin {
            true => "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30",
            false => "k8s.io/client-go/scale/util.go:146",
        };
        let why =
            format!("no kind \"{given}\" is registered for version \"{version}\" in scheme \"{scheme}\"");
        return Err(refused(&patched, &why));
    }
    let received =
        recheck_kind(SCALE, patched.clone()).map_err(|why| why.refusal(|why| refused(&patched, &why)))?;
    let shown = || patch.shown(call, &old, &patched);
    object_to(call, options, patch.strict.iter().cloned().chain(received.strict).collect(), shown)?;
    let mut scale = received.object;
    named(&scale, name)?;
    belongs_to_path(call, &mut scale)?;
    let meant = object::uid(&scale);
    if call.info.builtin && !meant.is_empty() && meant != uid {
        let why = format!("Precondition failed: UID in precondition: {meant}, UID in object meta: {uid}");
        return Err(Refusal::conflict_below(&call.info, "scale", name, &why));
    }
    Ok(scale)
}

/// Applies the client's field validation to a patch; `shown` is what a refusal shows.
fn object_to(
    call: &Call,
    options: &WriteOptions,
    objections: Vec<String>,
    shown: impl FnOnce() -> String,
) -> Result<(), Refusal> {
    match options.field_validation {
        FieldValidation::Strict if !objections.is_empty() => {
            let why = format!("strict decoding error: {}", objections.join(", "));
            return Err(refused_as(shown(), &why));
        }
        FieldValidation::Warn => objections.into_iter().for_each(|text| call.warnings.add(text)),
        FieldValidation::Strict | FieldValidation::Ignore => {}
    }
    Ok(())
}
