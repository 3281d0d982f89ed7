//! Parses and applies JSON patches (RFC 6902) and merge patches (RFC 7386), as authors write them and as the API server applies them.
//!
//! Strategic merge patches depend on the fields of built-in kinds, which a [`Builtins`](crate::set::builtins::Builtins) knows.

mod difference;
mod document;
mod library;
mod list;
mod node;

use std::fmt;

use json_patch::PatchOperation;
use serde_json::Value;
use thiserror::Error;

use self::document::Document;
pub use self::library::{KeyError, OperationError, Part, applied_values, understood};
pub(crate) use self::library::{Operation, applied};
use crate::deadline::checkpoint;

/// How `replace` treats an absent member, and `test` one that is compared with null.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Replacing {
    /// An error, as the specification has it.
    Existing,
    /// The member, as the API server's library has it.
    OrAdding,
}

/// Why a JSON patch cannot be applied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PatchError {
    /// Which operation failed, from 0.
    pub operation: usize,
    /// The pointer of that operation.
    pub path: String,
    pub kind: PatchErrorKind,
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, path, kind } = self;
        match kind {
            // Upstream's message, which names no operation.
            PatchErrorKind::CopiesTooLarge { .. } => kind.fmt(f),
            _ => write!(f, "operation '/{operation}' failed at path '{path}': {kind}"),
        }
    }
}

impl std::error::Error for PatchError {}

/// What is wrong with an operation of a JSON patch.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum PatchErrorKind {
    #[error("value did not match")]
    TestFailed,
    #[error("\"from\" path is invalid")]
    InvalidFromPointer,
    #[error("path is invalid")]
    InvalidPointer,
    #[error("cannot move the value inside itself")]
    CannotMoveInsideItself,
    /// The whole document becomes a scalar. Go's `%w` prints that there is no error behind it.
    #[error("replace operation value must be object or array: %!w(<nil>)")]
    ScalarDocument,
    /// Everything behind a patch may walk values recursively.
    #[error("the value would be nested deeper than {} levels", crate::read::json::MAX_DEPTH)]
    TooDeep,
    /// In bytes of JSON, for all copies of the patch together.
    #[error(
        "Unable to complete the copy, the accumulated size increase of copy is {copied}, exceeding the limit {limit}"
    )]
    CopiesTooLarge { copied: usize, limit: usize },
}

/// Why a value is not a JSON patch.
#[derive(Debug, Error)]
pub(crate) enum NoPatch {
    #[error("must be a list of operations, each with `op` and `path`")]
    NoList,
    #[error("operation {index}: {error}")]
    Operation { index: usize, error: serde_json::Error },
}

/// Parses a JSON patch.
///
/// # Errors
/// What is wrong with the first invalid operation.
pub(crate) fn decode(operations: &Value) -> Result<json_patch::Patch, NoPatch> {
    let Value::Array(list) = operations else { return Err(NoPatch::NoList) };
    let operation = |(index, operation): (usize, &Value)| {
        serde_json::from_value(operation.clone()).map_err(|error| NoPatch::Operation { index, error })
    };
    Ok(json_patch::Patch(list.iter().enumerate().map(operation).collect::<Result<_, _>>()?))
}

/// Applies `operations` to `target`. Members of objects that they reach into are sorted by name in the result.
///
/// The time is that of as many steps as both have bytes, times a logarithm.
///
/// # Errors
/// The first operation that cannot be applied.
///
/// ```
/// use admit_policy::patch::{Replacing, patched};
/// use serde_json::json;
///
/// let operations: json_patch::Patch = serde_json::from_value(json!([{"op": "replace", "path": "/a", "value": 2}]))?;
/// assert_eq!(patched(json!({"a": 1}), &operations, Replacing::Existing)?, json!({"a": 2}));
/// assert_eq!(patched(json!({}), &operations, Replacing::OrAdding)?, json!({"a": 2}));
/// assert!(patched(json!({}), &operations, Replacing::Existing).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn patched(
    target: Value,
    operations: &[PatchOperation],
    replacing: Replacing,
) -> Result<Value, PatchError> {
    let mut document = Document::new(target);
    for (index, operation) in operations.iter().enumerate() {
        checkpoint();
        document.apply(operation, replacing).map_err(|kind| PatchError {
            operation: index,
            path: operation.path().to_string(),
            kind,
        })?;
    }
    Ok(document.into_value())
}

/// Returns the JSON patch that turns `before` into `after`; None if they are equal. It is at most a few KiB longer than `after`: if
/// precise operations would be longer, top-level members are replaced.
///
/// ```
/// use admit_policy::patch::difference;
/// use serde_json::json;
///
/// let operations = difference(&json!({"a": 1}), &json!({"a": 1, "b": 2}));
/// assert_eq!(operations, Some(json!([{"op": "add", "path": "/b", "value": 2}])));
/// assert_eq!(difference(&json!([1]), &json!([1])), None);
/// ```
#[must_use]
pub fn difference(before: &Value, after: &Value) -> Option<Value> {
    let operations = difference::operations(before, after);
    (!operations.is_empty()).then_some(Value::Array(operations))
}

/// The bytes of a value as compact JSON, with `<`, `>` and `&` escaped as Go escapes them.
///
/// ```
/// assert_eq!(admit_policy::patch::text_len(&serde_json::json!({"a": "<"})), r#"{"a":"\u003c"}"#.len());
/// ```
#[must_use]
pub fn text_len(value: &Value) -> usize {
    node::text_len(value)
}

/// Applies a JSON patch strictly: what is replaced must exist.
///
/// # Errors
/// Why it does not apply. `target` is lost then.
pub(crate) fn apply(target: &mut Value, patch: &json_patch::Patch) -> Result<(), PatchError> {
    *target = patched(target.take(), patch, Replacing::Existing)?;
    Ok(())
}

/// Applies a JSON patch as the API server does.
///
/// # Errors
/// Why it does not apply. `target` is lost then.
pub(crate) fn apply_as_server(target: &mut Value, patch: &json_patch::Patch) -> Result<(), PatchError> {
    *target = patched(target.take(), patch, Replacing::OrAdding)?;
    Ok(())
}

/// Applies a merge patch to a copy.
///
/// ```
/// use admit_policy::patch::merged;
/// use serde_json::json;
///
/// assert_eq!(merged(json!({"a": 1, "b": 2}), &json!({"a": null, "c": 3})), json!({"b": 2, "c": 3}));
/// ```
#[must_use]
pub fn merged(mut target: Value, patch: &Value) -> Value {
    merge(&mut target, patch);
    target
}

/// Applies a merge patch: maps are merged, null removes, anything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            // All at once: taking one member out moves those behind it.
            target.retain(|key, _| patch.get(key).is_none_or(|value| !value.is_null()));
            for (key, value) in patch.iter().filter(|(_, value)| !value.is_null()) {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}

#[cfg(test)]
mod tests;
