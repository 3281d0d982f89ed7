//! JSON patches (RFC 6902) and merge patches (RFC 7386) that suites write.

use serde_json::Value;

/// Reads a JSON patch.
///
/// # Errors
/// What is wrong with the first operation that is none.
pub(super) fn decode(operations: &Value) -> Result<json_patch::Patch, String> {
    let Value::Array(list) = operations else {
        return Err("must be a list of operations, each with `op` and `path`".to_owned());
    };
    let operation = |(index, operation): (usize, &Value)| {
        serde_json::from_value(operation.clone()).map_err(|error| format!("operation {index}: {error}"))
    };
    Ok(json_patch::Patch(list.iter().enumerate().map(operation).collect::<Result<_, _>>()?))
}

/// Applies a JSON patch.
///
/// # Errors
/// Why it does not apply.
pub(super) fn apply(target: &mut Value, patch: &json_patch::Patch) -> Result<(), String> {
    json_patch::patch(target, patch).map_err(|error| error.to_string())
}

/// Applies a merge patch: maps are merged, null removes, anything else replaces.
pub(super) fn merge(target: &mut Value, patch: &Value) {
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
