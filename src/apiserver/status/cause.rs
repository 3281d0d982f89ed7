//! What is wrong with single fields: causes, and how values stand in their texts.

use std::fmt;

use serde_json::{Value, json};

/// One field that is wrong: a `StatusCause`, and one part of the message of an `Invalid` status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid`, `FieldValueRequired`, …
    pub reason: String,
    /// `spec.containers[0].image`; `<nil>` where Kubernetes names no field.
    pub field: String,
    /// The text after the field: `Invalid value: "x": must be lower case`.
    pub message: String,
}

impl Cause {
    fn new(reason: &str, field: impl Into<String>, message: String) -> Self {
        Self { reason: reason.to_owned(), field: field.into(), message }
    }

    /// `value` is printed as Go prints it in such messages: strings quoted, other scalars bare, the rest as JSON.
    #[must_use]
    pub fn invalid(field: impl Into<String>, value: &Value, detail: &str) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {}: {detail}", shown(value)))
    }

    #[must_use]
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message =
            if detail.is_empty() { "Required value".to_owned() } else { format!("Required value: {detail}") };
        Self::new("FieldValueRequired", field, message)
    }

    #[must_use]
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {detail}"))
    }

    #[must_use]
    pub fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let supported = supported.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
        let message = format!("Unsupported value: {}: supported values: {supported}", shown(value));
        Self::new("FieldValueNotSupported", field, message)
    }

    #[must_use]
    pub fn not_found(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueNotFound", field, format!("Not found: {}", shown(value)))
    }

    #[must_use]
    pub fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {limit} bytes"))
    }

    #[must_use]
    pub fn too_many(field: impl Into<String>, count: usize, limit: usize) -> Self {
        Self::new("FieldValueTooMany", field, format!("Too many: {count}: must have at most {limit} items"))
    }

    #[must_use]
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {}", shown(value)))
    }

    fn to_value(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A value as it stands in a field error's text.
#[must_use]
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => go_quoted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// Go's `%q`: control characters as `\x00`, everything printable as it is.
#[must_use]
pub fn go_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if u32::from(c) < 0x20 || c == '\u{7f}' => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The cause as details list it: without the parts that it does not have.
pub(super) fn cause_value(cause: &Cause) -> Value {
    match (cause.reason.as_str(), cause.field.as_str()) {
        ("", "") => json!({"message": cause.message}),
        (reason, "") => json!({"reason": reason, "message": cause.message}),
        _ => cause.to_value(),
    }
}

/// The message names each distinct error once, while the causes keep every one of them.
pub(super) fn distinct(causes: &[Cause]) -> Vec<String> {
    let mut seen = Vec::with_capacity(causes.len());
    for cause in causes {
        let text = cause.to_string();
        if !seen.contains(&text) {
            seen.push(text);
        }
    }
    seen
}
