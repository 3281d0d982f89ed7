//! Reads the scale subresource from an object: replica counts and the selector, at the paths that the CRD names.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use serde_json::Value;

use super::definition::ScalePaths;

/// The replica counts and the selector that the scale subresource reads.
pub(super) fn validate(scale: &ScalePaths, object: &Value, status: bool, errors: &mut FieldErrors) {
    let mut paths = vec![&scale.status_replicas];
    if !status {
        paths.insert(0, &scale.spec_replicas);
    }
    for path in paths {
        if let Some(error) = replicas_error(path, object) {
            errors.push(error);
        }
    }
    if let Some(path) = &scale.label_selector
        && let Err(error) = nested(object, path, "string", Value::is_string)
    {
        errors.push(FieldError::invalid(path, "", error.to_string()));
    }
}

fn replicas_error(path: &str, object: &Value) -> Option<FieldError> {
    const MAX: i64 = 2_147_483_647;
    match nested(object, path, "int64", Value::is_i64) {
        Err(error) => Some(FieldError::invalid(path, 0_i64, error.to_string())),
        Ok(value) => match value.and_then(Value::as_i64) {
            Some(count) if count < 0 => {
                Some(FieldError::invalid(path, count, "should be a non-negative integer"))
            }
            Some(count) if count > MAX => {
                let detail = format!("should be less than or equal to {MAX}");
                Some(FieldError::invalid(path, count, detail))
            }
            _ => None,
        },
    }
}

/// A value of another type on the way to a field, or in it, in the words of Go's accessors.
#[derive(Debug, thiserror::Error)]
#[error(".{path} accessor error: {found} is of the type {found_type}, expected {expected}")]
struct AccessorError {
    path: String,
    found: String,
    found_type: &'static str,
    expected: &'static str,
}

/// The value at a dotted path.
fn nested<'v>(
    object: &'v Value,
    path: &str,
    expected: &'static str,
    fits: impl Fn(&Value) -> bool,
) -> Result<Option<&'v Value>, AccessorError> {
    let steps = path.strip_prefix('.').unwrap_or(path);
    let wrong = |value: &Value, expected: &'static str| AccessorError {
        path: steps.to_owned(),
        found: go::value::plain(value),
        found_type: go::json::type_name(value),
        expected,
    };
    let mut at = object;
    for step in steps.split('.') {
        match at {
            Value::Object(map) => match map.get(step) {
                Some(value) => at = value,
                None => return Ok(None),
            },
            Value::Null => return Ok(None),
            other => return Err(wrong(other, "map[string]interface{}")),
        }
    }
    if fits(at) { Ok(Some(at)) } else { Err(wrong(at, expected)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_other_types_are_shown_as_go_prints_them() {
        let shown = |value: Value| {
            let object = json!({"spec": {"replicas": value}});
            let found = nested(&object, ".spec.replicas", "int64", Value::is_i64);
            found.expect_err("another type").to_string()
        };
        assert_eq!(
            shown(json!([{"a": null}, "b c"])),
            ".spec.replicas accessor error: [map[a:<nil>] b c] is of the type []interface {}, expected int64"
        );
        assert_eq!(
            shown(json!("x")),
            ".spec.replicas accessor error: x is of the type string, expected int64"
        );
    }
}
