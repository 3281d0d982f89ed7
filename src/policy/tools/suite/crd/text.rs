//! Compares a rejection with the text that a suite expects: the text must be part of the message, apart from how bad
//! values are printed.
//!
//! Releases of Kubernetes print an invalid value differently: v1.36 prints the value that a rule rejected, or none for objects and
//! lists. Older ones print the type, a duplicate map in Go's syntax, and `number` instead of `float64` where an integer with a format
//! is required. Suites are written for many releases, so a value matches in any of these forms; all other words must agree.

use admit_apimachinery::field_error::{BadValue, FieldError, FieldErrorKind};
use admit_apimachinery::go;
use serde_json::Value;

use crate::crd::{CompiledCrd, Written};

/// How an expected text matches a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Agreement {
    /// It is part of it.
    Whole,
    /// It is, but for the way bad values are printed.
    ButForValues,
    None,
}

/// Compares `expected` with the rejection of `written`.
pub(super) fn agreement(expected: &str, written: &Written, crd: &CompiledCrd) -> Agreement {
    if written.refusal(crd).is_some_and(|message| message.contains(expected)) {
        return Agreement::Whole;
    }
    let parts = parts(written, crd);
    let begins = |from: usize| {
        let part = parts.get(from)?;
        let found = part.iter().any(|form| {
            form.char_indices().any(|(at, _)| {
                form.get(at..)
                    .is_some_and(|rest| continues(expected, rest, parts.get(from.saturating_add(1)..)))
            })
        });
        found.then_some(())
    };
    if (0..parts.len()).any(|from| begins(from).is_some()) {
        Agreement::ButForValues
    } else {
        Agreement::None
    }
}

/// Whether `expected` is a prefix of `form` and of what may follow it.
fn continues(expected: &str, form: &str, following: Option<&[Vec<String>]>) -> bool {
    if form.starts_with(expected) {
        return true;
    }
    let (Some(rest), Some((next, following))) =
        (expected.strip_prefix(form), following.and_then(<[_]>::split_first))
    else {
        return false;
    };
    next.iter().any(|form| continues(rest, form, Some(following)))
}

/// The message in parts, each with the forms that it may have.
fn parts(written: &Written, crd: &CompiledCrd) -> Vec<Vec<String>> {
    let mut errors: Vec<&FieldError> = Vec::with_capacity(written.errors.len());
    for error in &written.errors {
        if !errors.iter().any(|known| known.to_string() == error.to_string()) {
            errors.push(error);
        }
    }
    let bracket = |text: &str| vec![if errors.len() > 1 { text.to_owned() } else { String::new() }];
    let mut parts = vec![vec![written.subject(crd)], bracket("[")];
    for (index, error) in errors.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        parts.push(vec![format!("{separator}{}: {}", error.field, error.kind.title())]);
        parts.push(values(error));
        let detail = if error.detail.is_empty() { String::new() } else { format!(": {}", error.detail) };
        let older = older_type(error, &detail);
        parts.push(std::iter::once(detail).chain(older).collect());
    }
    parts.push(bracket("]"));
    parts
}

/// The forms of the bad value, each with its colon.
fn values(error: &FieldError) -> Vec<String> {
    let mut bare = error.clone();
    bare.detail.clear();
    let body = bare.body();
    let mut forms = vec![body.strip_prefix(error.kind.title()).unwrap_or_default().to_owned()];
    match (error.kind, &error.bad_value) {
        (FieldErrorKind::Invalid, BadValue::Json(value)) => {
            forms.push(format!(": \"{}\"", type_name(value)));
            // A field that accepts integers and strings has no type.
            forms.push(": \"\"".to_owned());
        }
        (FieldErrorKind::Invalid, BadValue::Omitted) => {
            forms.extend([": \"object\"".to_owned(), ": \"array\"".to_owned()]);
        }
        (FieldErrorKind::TypeInvalid, BadValue::Json(value)) if value == "float64" => {
            forms.push(": \"number\"".to_owned());
        }
        (FieldErrorKind::Duplicate, BadValue::Json(value)) => forms.push(format!(": {}", go_syntax(value))),
        _ => {}
    }
    forms
}

/// Returns the same detail as older servers wrote it, which did not know the format of a schema when they reported its type.
fn older_type(error: &FieldError, detail: &str) -> Option<String> {
    if error.kind != FieldErrorKind::TypeInvalid {
        return None;
    }
    let older = detail
        .replace("of type int32: ", "of type integer: ")
        .replace("of type int64: ", "of type integer: ");
    Some(older.replace(": \"float64\"", ": \"number\""))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as Go's `%#v` prints it, maps in order of their keys.
fn go_syntax(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            let entry = |(key, value): (&String, &Value)| format!("{}:{}", go::quote(key), go_syntax(value));
            let entries: Vec<String> = entries.into_iter().map(entry).collect();
            format!("map[string]interface {{}}{{{}}}", entries.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => BadValue::from(value).to_string(),
    }
}
