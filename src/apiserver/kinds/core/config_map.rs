//! Defines the strategy of ConfigMaps. Read from pkg/apis/core/validation and pkg/registry/core/configmap of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::frozen::{self, SIZE_LIMIT};
use crate::kinds::field::Field;
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ConfigMap",
    habits: &[Habit::ObjectAgain],
    validate: Some(validate),
    validate_update: Some(validate_update),
    ..Strategy::PLAIN
};

fn validate(map: &Value, errors: &mut FieldErrors) {
    let root = Field::root(map);
    let mut size = 0_usize;
    for (field, other) in [("data", "binaryData"), ("binaryData", "data")] {
        let others = root.get(other);
        for (key, value) in root.get(field).entries() {
            frozen::key(key, &value, errors);
            // A duplicate is reported once, for `data`.
            if field == "data" && others.map().is_some_and(|others| others.contains_key(key)) {
                errors.add(|| value.invalid_as(key, "duplicate of key present in binaryData"));
            }
            let text = value.text();
            let length = if field == "data" { text.len() } else { frozen::decoded_length(text) };
            size = size.saturating_add(length);
        }
    }
    if i64::try_from(size).is_ok_and(|size| size > SIZE_LIMIT) {
        errors.add(|| root.too_long(SIZE_LIMIT));
    }
}

fn validate_update(map: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(map, errors);
    frozen::unchanged(&Field::root(map), &Field::root(old), &["data", "binaryData"], errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_file_names() {
        let texts = |object: &Value| {
            let mut errors = FieldErrors::default();
            validate(object, &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&json!({"data": {"a.b": ""}})), Vec::<String>::new());
        assert_eq!(
            texts(&json!({"data": {"..": ""}})),
            ["data[..]: Invalid value: \"..\": must not be '..'"]
        );
        assert_eq!(
            texts(&json!({"data": {"k": "1"}, "binaryData": {"k": ""}})),
            ["data[k]: Invalid value: \"k\": duplicate of key present in binaryData"]
        );
    }
}
