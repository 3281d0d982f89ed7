//! What single fields have to do with a failure.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use super::written;
use crate::field_error::{BadValue, FieldError, FieldErrorKind};
use crate::findings::{Finding, and_more};
use crate::go;

/// An entry of `status.details.causes`: one field that is wrong, and one part of the message of an `Invalid` status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusCause {
    /// `FieldValueInvalid`, `FieldValueRequired`, …
    pub reason: Cow<'static, str>,
    /// The text after the field: `Invalid value: "x": must be lower case`.
    pub message: String,
    /// `spec.containers[0].image`; `<nil>` where Kubernetes names no field.
    pub field: String,
}

/// A document's value as it stands in a field error's text: the members of an object in their order.
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

/// The causes of field errors about a document's values.
impl StatusCause {
    /// The value breaks a rule, which `detail` tells.
    #[must_use]
    pub fn invalid(field: impl fmt::Display, value: &Value, detail: &str) -> Self {
        FieldError::invalid(field, as_shown(value), detail).cause()
    }

    /// The field is absent or empty.
    #[must_use]
    pub fn required(field: impl fmt::Display, detail: &str) -> Self {
        FieldError::required(field, detail).cause()
    }

    /// The field may not be there, or not change.
    #[must_use]
    pub fn forbidden(field: impl fmt::Display, detail: &str) -> Self {
        FieldError::forbidden(field, detail).cause()
    }

    /// The value is none of those that there are.
    #[must_use]
    pub fn unsupported(field: impl fmt::Display, value: &Value, supported: &[&str]) -> Self {
        FieldError::not_supported(field, as_shown(value), supported.iter().copied()).cause()
    }

    /// What the value refers to is not there.
    #[must_use]
    pub fn not_found(field: impl fmt::Display, value: &Value) -> Self {
        FieldError::new(FieldErrorKind::NotFound, field, as_shown(value), "").cause()
    }

    /// More bytes than there may be.
    #[must_use]
    pub fn too_long(field: impl fmt::Display, limit: usize) -> Self {
        FieldError::too_long(field, i64::try_from(limit).unwrap_or(i64::MAX)).cause()
    }

    /// `count` items where there may be `limit`.
    #[must_use]
    pub fn too_many(field: impl fmt::Display, count: usize, limit: usize) -> Self {
        let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
        FieldError::too_many(field, number(count), number(limit)).cause()
    }

    /// The value is there twice.
    #[must_use]
    pub fn duplicate(field: impl fmt::Display, value: &Value) -> Self {
        FieldError::duplicate(field, as_shown(value)).cause()
    }

    /// Whether rules are left unchecked where it was found, as [`FieldErrorKind::blocks_rules`] has it.
    #[must_use]
    pub fn blocks_rules(&self) -> bool {
        self.more().is_some()
            || FieldErrorKind::of_reason(&self.reason).is_some_and(FieldErrorKind::blocks_rules)
    }

    /// As details list it: without the parts that it does not have.
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

    /// Has neither field nor reason.
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
    /// The cause that a `Status` lists for this error.
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
