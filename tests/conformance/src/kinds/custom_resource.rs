//! Compares recorded answers to writes of custom resources with our decisions.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::go;
use serde_json::Value;

use crate::report::{Aspect, Check};

/// The causes of a refusal: their fields, then their whole texts, as sets.
pub(super) fn causes(answer: &Value, errors: &[FieldError]) -> Vec<Check> {
    let Some(expected) = answer.pointer("/status/details/causes").and_then(Value::as_array) else {
        return Vec::new();
    };
    let text =
        |cause: &Value, key: &str| cause.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let fields = sorted(expected.iter().map(|cause| text(cause, "field")));
    let lines = sorted(expected.iter().map(|cause| {
        format!("{} {}: {}", text(cause, "reason"), text(cause, "field"), text(cause, "message"))
    }));
    let ours = |line: &dyn Fn(&FieldError) -> String| sorted(errors.iter().map(line));
    vec![
        Check::new(Aspect::Path, fields, ours(&|error| error.field.clone())),
        Check::new(
            Aspect::Text,
            lines,
            ours(&|error| {
                let cause = error.cause();
                format!("{} {}: {}", cause.reason, cause.field, cause.message)
            }),
        ),
    ]
}

fn sorted(lines: impl Iterator<Item = String>) -> Vec<String> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort();
    lines
}

/// The warnings of an accepted request: those about its fields, as a set.
pub(super) fn warnings(step: &Value, actual: &[String]) -> Option<Check> {
    // Other parameters change what is warned of, and a refusal warns of nothing that was let pass.
    if step.get("params").is_some()
        || step.get("outcome").and_then(Value::as_u64).is_none_or(|code| code >= 300)
    {
        return None;
    }
    let about_fields = |text: &&str| text.starts_with("unknown field ") || text.contains(": Invalid value: ");
    let recorded = step.get("warnings").and_then(Value::as_array);
    let expected = recorded.into_iter().flatten().filter_map(Value::as_str).filter(about_fields);
    let expected = sorted(expected.map(ToOwned::to_owned));
    Some(Check::new(Aspect::Text, expected, sorted(actual.iter().cloned())))
}

/// An accepted object beside the recorded one, without metadata, as Go writes it: a whole float has no fraction.
pub(super) fn same_object(expected: &Value, actual: &Value) -> Check {
    let text = |object: &Value| go::json::text(&without_metadata(object));
    Check::new(Aspect::Text, text(expected), text(actual))
}

fn without_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.shift_remove("metadata");
    }
    object
}
