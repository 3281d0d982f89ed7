//! Reads the bodies of patches, with the errors of kube-apiserver's readers.
//!
//! Field validation decides which reader a body meets: one that knows the fields of an operation, or for `Ignore` one that takes any.

use std::sync::{Mutex, PoisonError};

use admit_apimachinery::bounded::{MAX_PATHS, push_step};
use admit_apimachinery::go;
use admit_policy::json::{self, Document, JsonError};
use admit_policy::patch::understood;
use json_patch::PatchOperation;
use serde_json::{Map, Value};

use crate::call::FieldValidation;
use crate::codec::Unread;
use crate::status::Refusal;

/// The most operations of one JSON patch.
const MAX_OPERATIONS: usize = 10_000;
/// The fields of an operation.
const MEMBERS: [&str; 4] = ["op", "path", "from", "value"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchFormat {
    Json,
    Merge,
    Strategic,
    /// A configuration for server-side apply, which [`Registry::apply`] takes.
    Apply,
}

/// A parsed patch document.
pub(super) struct Patch<'b> {
    pub(super) kind: Parsed<'b>,
    /// The unknown and duplicate fields that strict field validation refuses.
    pub(super) strict: Vec<String>,
}

pub(super) enum Parsed<'b> {
    Json(Vec<PatchOperation>),
    Merge(Value),
    Strategic(Strategic<'b>),
    /// Operations that cannot be applied to any object.
    Impossible,
}

/// A strategic merge patch, which is used up when it is applied: it is parsed again for another attempt, so that there are never two.
pub(super) struct Strategic<'b> {
    body: &'b [u8],
    parsed: Mutex<Option<Map<String, Value>>>,
}

impl<'b> Strategic<'b> {
    const fn new(body: &'b [u8], parsed: Map<String, Value>) -> Self {
        Self { body, parsed: Mutex::new(Some(parsed)) }
    }

    pub(super) fn take(&self) -> Map<String, Value> {
        let parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).take();
        parsed.unwrap_or_else(|| match json::parse(self.body) {
            Ok(Document { value: Value::Object(patch), .. }) => patch,
            // It was read once.
            Ok(_) | Err(_) => Map::new(),
        })
    }
}

/// Reads a patch.
///
/// # Errors
/// 400 for what is no patch of the format, 413 for too many operations.
pub(super) fn read(
    format: PatchFormat,
    body: &[u8],
    validation: FieldValidation,
) -> Result<Patch<'_>, Refusal> {
    let is_lenient = validation == FieldValidation::Ignore;
    let undecodable = |why: &str| match format {
        PatchFormat::Merge if is_lenient => Refusal::bad_request("Invalid JSON Patch"),
        PatchFormat::Json if is_lenient => Refusal::bad_request(why),
        PatchFormat::Strategic => Refusal::bad_request(why),
        PatchFormat::Json | PatchFormat::Merge | PatchFormat::Apply => {
            Refusal::bad_request(format!("error decoding patch: {why}"))
        }
    };
    let unread = |why: JsonError| Unread::from(why).refusal(|why| undecodable(&why));
    let document = json::parse(body).map_err(unread)?;
    let duplicates = document.duplicates.paths().map(|path| format!("duplicate field \"{path}\""));
    let mut strict: Vec<String> = Vec::new();
    let kind = match (format, document.value) {
        (PatchFormat::Json, Value::Array(operations)) => {
            if let Some(why) = operations.iter().find_map(|operation| mistyped(operation, is_lenient)) {
                return Err(undecodable(&why));
            }
            strict = objections(&operations, document.duplicates.paths());
            operations_of(operations)?
        }
        (PatchFormat::Json, Value::Null) => Parsed::Json(Vec::new()),
        (PatchFormat::Json, other) => {
            let list = if is_lenient { "jsonpatch.Patch" } else { "[]handlers.jsonPatchOp" };
            let found = go::json::kind(&other);
            return Err(undecodable(&format!("json: cannot unmarshal {found} into Go value of type {list}")));
        }
        (PatchFormat::Merge, Value::Null) => return Err(Refusal::bad_request("Invalid JSON Patch")),
        (PatchFormat::Merge, patch @ Value::Object(_)) => {
            strict.extend(duplicates);
            Parsed::Merge(patch)
        }
        // It is the result then.
        (PatchFormat::Merge, list @ Value::Array(_)) if is_lenient => Parsed::Merge(list),
        (PatchFormat::Strategic, Value::Object(patch)) => {
            strict.extend(duplicates);
            Parsed::Strategic(Strategic::new(body, patch))
        }
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

/// Returns Go's error for an operation, or a member of it, of another type.
fn mistyped(operation: &Value, is_lenient: bool) -> Option<String> {
    let members = match operation {
        Value::Object(members) => members,
        Value::Null => return None,
        other => {
            let item = if is_lenient { "jsonpatch.Operation" } else { "handlers.jsonPatchOp" };
            let found = go::json::kind(other);
            return Some(format!("json: cannot unmarshal {found} into Go value of type {item}"));
        }
    };
    let is_text = |name: &str| matches!(name, "op" | "path" | "from");
    let mut texts = members.iter().filter(|(name, _)| !is_lenient && is_text(name));
    let (name, other) = texts.find(|(_, value)| !value.is_string() && !value.is_null())?;
    let found = go::json::kind(other);
    Some(format!("json: cannot unmarshal {found} into Go struct field jsonPatchOp.{name} of type string"))
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

/// Returns the duplicate and unknown members of the operations, one operation after the other.
fn objections<'d>(operations: &[Value], duplicates: impl Iterator<Item = &'d str>) -> Vec<String> {
    let mut duplicates = duplicates.peekable();
    let mut found: Vec<String> = Vec::new();
    for (index, operation) in operations.iter().enumerate() {
        let place = format!("[{index}]");
        while let Some(path) = duplicates.next_if(|path| path.starts_with(&place)) {
            found.push(format!("json patch duplicate field \"{path}\""));
        }
        let members = operation.as_object().into_iter().flatten();
        for (name, _) in members.filter(|(name, _)| !MEMBERS.contains(&name.as_str())) {
            let mut shown = String::new();
            push_step(&mut shown, name);
            found.push(format!("json patch unknown field \"{place}.{shown}\""));
        }
        if found.len() >= MAX_PATHS {
            break;
        }
    }
    found.truncate(MAX_PATHS);
    found
}
