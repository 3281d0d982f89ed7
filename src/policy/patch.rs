//! JSON patches (RFC 6902) and merge patches (RFC 7386), as authors write them and as the API server applies them.
//!
//! Strategic merge patches follow the fields of built-in kinds, which a [`Builtins`](crate::apply::Builtins) knows.

use json_patch::{AddOperation, PatchOperation, ReplaceOperation};
use serde_json::Value;

/// Reads a JSON patch.
///
/// # Errors
/// What is wrong with the first operation that is none.
pub(crate) fn decode(operations: &Value) -> Result<json_patch::Patch, String> {
    let Value::Array(list) = operations else {
        return Err("must be a list of operations, each with `op` and `path`".to_owned());
    };
    let operation = |(index, operation): (usize, &Value)| {
        serde_json::from_value(operation.clone()).map_err(|error| format!("operation {index}: {error}"))
    };
    Ok(json_patch::Patch(list.iter().enumerate().map(operation).collect::<Result<_, _>>()?))
}

/// Applies a JSON patch to the letter: what is replaced must be there.
///
/// # Errors
/// Why it does not apply.
pub(crate) fn apply(target: &mut Value, patch: &json_patch::Patch) -> Result<(), String> {
    json_patch::patch(target, patch).map_err(|error| error.to_string())
}

/// Applies a JSON patch as the API server does.
///
/// # Errors
/// Why it does not apply.
pub(crate) fn apply_as_server(target: &mut Value, patch: &json_patch::Patch) -> Result<(), String> {
    for (index, operation) in patch.0.iter().enumerate() {
        let operation = upserting(target, operation);
        // A patch of one operation would be told as operation 0, whichever it is.
        json_patch::patch(target, &[operation])
            .map_err(|error| format!("operation {index} at {}: {}", error.path, error.kind))?;
    }
    Ok(())
}

/// What the API server makes of `operation`: its library replaces members that are not there as well.
#[must_use]
pub fn upserting(target: &Value, operation: &PatchOperation) -> PatchOperation {
    let PatchOperation::Replace(ReplaceOperation { path, value }) = operation else {
        return operation.clone();
    };
    let parent = path.parent().and_then(|parent| parent.resolve(target).ok());
    if parent.is_some_and(Value::is_object) {
        PatchOperation::Add(AddOperation { path: path.clone(), value: value.clone() })
    } else {
        operation.clone()
    }
}

/// Applies a merge patch: maps are merged, null removes, anything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.shift_remove(key);
                } else {
                    merge(target.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (target, patch) => *target = patch.clone(),
    }
}
