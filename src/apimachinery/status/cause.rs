//! Defines the causes of a failure: errors about single fields.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::written;
use crate::field_error::{BadValue, FieldError, FieldErrorKind};
use crate::findings::{Finding, and_more};
use crate::go;

/// An entry of `status.details.causes`: an error about one field, which is also a part of the message of an `Invalid` status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusCause {
    /// `FieldValueInvalid`, `FieldValueRequired`, …
    pub reason: Cow<'static, str>,
    /// The message without the field: `Invalid value: "x": must be lower case`.
    pub message: String,
    /// The field's path, `spec.containers[0].image`; `<nil>` if Kubernetes names no field.
    pub field: String,
}

/// Formats a value for the message of a field error; the members of objects keep their order.
#[must_use]
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

fn as_shown(value: &Value) -> BadValue {
    BadValue::Verbatim(shown(value))
}

/// Creates causes for field errors about values of a document.
impl StatusCause {
    /// Creates the cause for a value that violates a rule, which `detail` explains.
    #[must_use]
    pub fn invalid(field: impl fmt::Display, value: &Value, detail: &str) -> Self {
        FieldError::invalid(field, as_shown(value), detail).cause()
    }

    /// Creates the cause for a field that is absent or empty.
    #[must_use]
    pub fn required(field: impl fmt::Display, detail: &str) -> Self {
        FieldError::required(field, detail).cause()
    }

    /// Creates the cause for a field that must be absent, or must not change.
    #[must_use]
    pub fn forbidden(field: impl fmt::Display, detail: &str) -> Self {
        FieldError::forbidden(field, detail).cause()
    }

    /// Creates the cause for a value that is not supported.
    #[must_use]
    pub fn unsupported(field: impl fmt::Display, value: &Value, supported: &[&str]) -> Self {
        FieldError::not_supported(field, as_shown(value), supported.iter().copied()).cause()
    }

    /// Creates the cause for a reference to something that does not exist.
    #[must_use]
    pub fn not_found(field: impl fmt::Display, value: &Value) -> Self {
        FieldError::new(FieldErrorKind::NotFound, field, as_shown(value), "").cause()
    }

    /// Creates the cause for a value that is too long.
    #[must_use]
    pub fn too_long(field: impl fmt::Display, limit: usize) -> Self {
        FieldError::too_long(field, i64::try_from(limit).unwrap_or(i64::MAX)).cause()
    }

    /// Creates the cause for `count` items if `limit` are allowed.
    #[must_use]
    pub fn too_many(field: impl fmt::Display, count: usize, limit: usize) -> Self {
        let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
        FieldError::too_many(field, number(count), number(limit)).cause()
    }

    /// Creates the cause for a value that occurs twice.
    #[must_use]
    pub fn duplicate(field: impl fmt::Display, value: &Value) -> Self {
        FieldError::duplicate(field, as_shown(value)).cause()
    }

    /// Whether rules are not evaluated after this error, by [`FieldErrorKind::blocks_rules`].
    #[must_use]
    pub fn blocks_rules(&self) -> bool {
        self.more().is_some()
            || FieldErrorKind::of_reason(&self.reason).is_some_and(FieldErrorKind::blocks_rules)
    }

    /// Returns the entry of the details, without empty members.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let Self { reason, message, field } = self;
        Value::Object(written([("reason", reason), ("message", message), ("field", field)]))
    }
}

impl Finding for StatusCause {
    fn size(&self) -> usize {
        self.reason.len().saturating_add(self.field.len()).saturating_add(self.message.len())
    }

    /// Creates a cause with neither field nor reason.
    fn and_more(count: usize) -> Self {
        Self { reason: "".into(), field: String::new(), message: and_more(count) }
    }

    fn more(&self) -> Option<usize> {
        let is_none = self.reason.is_empty() && self.field.is_empty();
        let count = self.message.strip_prefix("and ")?.strip_suffix(" more")?;
        count.parse().ok().filter(|_| is_none)
    }
}

impl FieldError {
    /// Returns the cause in a `Status` for this error.
    #[must_use]
    pub fn cause(&self) -> StatusCause {
        StatusCause { reason: self.kind.reason().into(), message: self.body(), field: self.field.clone() }
    }
}

impl fmt::Display for StatusCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.more() {
            Some(_) => f.write_str(&self.message),
            None => write!(f, "{}: {}", self.field, self.message),
        }
    }
}
