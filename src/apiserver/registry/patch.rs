//! Implements PATCH: JSON patch, JSON merge patch and strategic merge patch, applied to the live object.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use admit_apimachinery::bounded::{MAX_PATHS, push_step};
use admit_apimachinery::go;
use admit_policy::json::{self, Document, JsonError};
use admit_policy::patch::{Replacing, patched, text_len, understood};
use json_patch::PatchOperation;
use serde_json::{Map, Value};

use super::field_ownership::Ownership;
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
use crate::status::{Cause, Refusal, shown};

/// The most operations of one JSON patch.
const MAX_OPERATIONS: usize = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchFormat {
    Json,
    Merge,
    Strategic,
    /// A configuration for server-side apply, which [`Registry::apply`] takes.
    Apply,
}

/// A parsed patch document.
struct Patch<'b> {
    kind: Parsed<'b>,
    /// The unknown and duplicate fields that strict field validation refuses.
    strict: Vec<String>,
}

enum Parsed<'b> {
    Json(Vec<PatchOperation>),
    Merge(Value),
    Strategic(Strategic<'b>),
    /// Operations that cannot be applied to any object.
    Impossible,
}

/// A strategic merge patch, which is used up when it is applied: it is parsed again for another attempt, so that there are never two.
struct Strategic<'b> {
    body: &'b [u8],
    parsed: Mutex<Option<Map<String, Value>>>,
}

impl<'b> Strategic<'b> {
    const fn new(body: &'b [u8], parsed: Map<String, Value>) -> Self {
        Self { body, parsed: Mutex::new(Some(parsed)) }
    }

    fn take(&self) -> Map<String, Value> {
        let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).take();
        parsed.unwrap_or_else(|| match json::parse(self.body) {
            Ok(Document { value: Value::Object(patch), .. }) => patch,
            // It was read once.
            Ok(_) | Err(_) => Map::new(),
        })
    }
}

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
            let patch = read_once.get_or_init(|| read(format, body)).as_ref().map_err(Clone::clone)?;
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

fn read(format: PatchFormat, body: &[u8]) -> Result<Patch<'_>, Refusal> {
    let undecodable = |why: &str| match format {
        PatchFormat::Strategic => Refusal::bad_request(why),
        _ => Refusal::bad_request(format!("error decoding patch: {why}")),
    };
    let unread = |why: JsonError| Unread::from(why).refusal(|why| undecodable(&why));
    let document = json::parse(body).map_err(unread)?;
    let mut strict: Vec<String> =
        document.duplicates.paths().map(|path| format!("duplicate field \"{path}\"")).collect();
    let kind = match (format, document.value) {
        (PatchFormat::Json, Value::Array(operations)) => {
            strict = operations.iter().enumerate().flat_map(unknown_members).take(MAX_PATHS).collect();
            operations_of(operations)?
        }
        (PatchFormat::Json, Value::Null) => Parsed::Json(Vec::new()),
        (PatchFormat::Json, other) => {
            let found = go::json::kind(&other);
            let why = format!("json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp");
            return Err(undecodable(&why));
        }
        (PatchFormat::Merge, Value::Null) => return Err(Refusal::bad_request("Invalid JSON Patch")),
        (PatchFormat::Merge, patch @ Value::Object(_)) => Parsed::Merge(patch),
        (PatchFormat::Strategic, Value::Object(patch)) => Parsed::Strategic(Strategic::new(body, patch)),
        (PatchFormat::Strategic, Value::Null) => Parsed::Strategic(Strategic::new(body, Map::new())),
        (PatchFormat::Merge | PatchFormat::Strategic | PatchFormat::Apply, other) => {
            let found = go::json::kind(&other);
            return Err(undecodable(&format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )));
        }
    };
    Ok(Patch { kind, strict })
}

fn operations_of<'b>(operations: Vec<Value>) -> Result<Parsed<'b>, Refusal> {
    if operations.len() > MAX_OPERATIONS {
        let count = operations.len();
        return Err(Refusal::too_large_because(format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {count}"
        )));
    }
    // As upstream, an invalid operation is reported only when it is applied.
    Ok(understood(operations).map_or(Parsed::Impossible, Parsed::Json))
}

fn unknown_members((index, operation): (usize, &Value)) -> impl Iterator<Item = String> {
    let members = operation.as_object().into_iter().flatten();
    members.filter(|(name, _)| !["op", "path", "from", "value"].contains(&name.as_str())).map(
        move |(name, _)| {
            let mut shown = String::new();
            push_step(&mut shown, name);
            format!("json patch unknown field \"[{index}].{shown}\"")
        },
    )
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

/// Builds the refusal of a patched object that cannot be decoded.
fn refused(patched: &Value, why: &str) -> Refusal {
    refused_as(patched.to_string(), why)
}

fn refused_as(what: String, why: &str) -> Refusal {
    let text = shown(&Value::String(what));
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        field: "patch".to_owned(),
        message: format!("Invalid value: {text}: {why}"),
    };
    Refusal::invalid_kind("", "", "", vec![cause])
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
    let patched = patch.made(call, live)?;
    same_kind(call, name, &patched)?;
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
    let objections: Vec<String> = patch.strict.iter().cloned().chain(unknown).collect();
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

fn same_kind(call: &Call, name: &str, patched: &Value) -> Result<(), Refusal> {
    let text = |field: &str| patched.get(field).and_then(Value::as_str).unwrap_or_default();
    if let Some(why) = codec::unnamed(patched) {
        return Err(refused(patched, &why));
    }
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    if kind.is_empty() && !call.info.builtin {
        return Err(refused(patched, &format!("Object 'Kind' is missing in '{patched}'")));
    }
    let expected = call.info.api_version();
    // A built-in object without a kind keeps its kind.
    let unnamed = kind.is_empty() && call.info.builtin;
    if (kind == call.info.kind || unnamed) && api_version == expected {
        return Ok(());
    }
    if call.info.builtin {
        let scheme = "k8s.io/kubernetes/pkg/api/legacyscheme/scheme.go:30";
        let why =
            format!("no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"{scheme}\"");
        return Err(refused(patched, &why));
    }
    let mut causes = Vec::new();
    if kind != call.info.kind {
        causes.push(Cause::invalid("kind", &kind.into(), &format!("must be {}", call.info.kind)));
    }
    if api_version != expected {
        causes.push(Cause::invalid("apiVersion", &api_version.into(), &format!("must be {expected}")));
    }
    Err(Refusal::invalid_kind(object::group_of(api_version), kind, name, causes))
}
