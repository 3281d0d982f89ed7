//! Defines an error about one field, like Kubernetes' `field.Error`: its kind, its path, the value, a detail. The message and
//! the cause of a `Status` are derived from it; callers create the response.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use crate::go;

/// The kind of a [`FieldError`]; the counterpart of `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// What the value refers to does not exist.
    NotFound,
    /// The field is absent or empty.
    Required,
    /// The value occurs twice.
    Duplicate,
    /// The value violates a rule.
    Invalid,
    /// The value is not among the supported ones.
    NotSupported,
    /// The field must be absent, or must not change.
    Forbidden,
    /// The value has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
    /// The list has too few items.
    TooFew,
    /// The value has too few bytes.
    TooShort,
    /// An error of the server.
    Internal,
    /// The value has the wrong type.
    TypeInvalid,
    /// Not an error itself: stands for a number of errors that are left out.
    More,
}

impl FieldErrorKind {
    /// All kinds except the last, which stands for others.
    pub const ALL: [Self; 12] = [
        Self::NotFound,
        Self::Required,
        Self::Duplicate,
        Self::Invalid,
        Self::NotSupported,
        Self::Forbidden,
        Self::TooLong,
        Self::TooMany,
        Self::TooFew,
        Self::TooShort,
        Self::Internal,
        Self::TypeInvalid,
    ];

    /// Returns the `reason` of a cause in a `Status`.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::TooFew => "FieldValueTooFew",
            Self::TooShort => "FieldValueTooShort",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::More => "",
        }
    }

    /// Returns the kind for a cause's `reason`; None for reasons of other errors.
    #[must_use]
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// Returns the beginning of a message.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::TooFew => "Too few",
            Self::TooShort => "Too short",
            Self::Internal => "Internal error",
            Self::More => "",
        }
    }

    /// Whether the value is part of the message.
    const fn shows_value(self) -> bool {
        match self {
            Self::Required
            | Self::Forbidden
            | Self::TooLong
            | Self::TooShort
            | Self::Internal
            | Self::More => false,
            Self::NotFound
            | Self::Duplicate
            | Self::Invalid
            | Self::NotSupported
            | Self::TooMany
            | Self::TooFew
            | Self::TypeInvalid => true,
        }
    }

    /// Whether rules are not evaluated after such an error: the object does not have the structure that they were
    /// compiled for, or is larger than their cost was estimated for.
    #[must_use]
    pub const fn blocks_rules(self) -> bool {
        match self {
            // Errors that were left out may be of any kind.
            Self::NotSupported
            | Self::Required
            | Self::TooLong
            | Self::TooMany
            | Self::TypeInvalid
            | Self::More => true,
            Self::NotFound
            | Self::Duplicate
            | Self::Invalid
            | Self::Forbidden
            | Self::TooFew
            | Self::TooShort
            | Self::Internal => false,
        }
    }
}

/// The value in a message.
#[derive(Clone, Debug, PartialEq)]
pub enum BadValue {
    /// No value is shown.
    Omitted,
    /// A string is quoted, other values are shown as JSON.
    Json(Value),
    /// A text that is shown unchanged, for internal types of Kubernetes that are formatted already.
    Verbatim(String),
}

impl BadValue {
    /// Creates the value for a string that Go does not store as a plain string: it is shown as JSON, with JSON's escapes.
    #[must_use]
    pub fn marshalled(text: &str) -> Self {
        Self::Verbatim(go::json::text(&Value::from(text)))
    }

    /// Returns the value if it is JSON.
    #[must_use]
    pub const fn as_json(&self) -> Option<&Value> {
        match self {
            Self::Json(value) => Some(value),
            Self::Omitted | Self::Verbatim(_) => None,
        }
    }

    /// Returns the approximate number of bytes of the shown value.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::Omitted => 0,
            Self::Json(value) => size(value),
            Self::Verbatim(text) => text.len(),
        }
    }
}

fn size(value: &Value) -> usize {
    const SCALAR: usize = 8;
    let of_key = |key: &String| key.len().saturating_add(SCALAR);
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => SCALAR,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().fold(0, |sum, item| size(item).saturating_add(sum)),
        Value::Object(map) => {
            map.iter().fold(0, |sum, (key, item)| of_key(key).saturating_add(size(item)).saturating_add(sum))
        }
    }
}

impl From<Value> for BadValue {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<&Value> for BadValue {
    fn from(value: &Value) -> Self {
        Self::Json(value.clone())
    }
}

impl From<&str> for BadValue {
    fn from(text: &str) -> Self {
        Self::Json(Value::from(text))
    }
}

impl From<i64> for BadValue {
    fn from(number: i64) -> Self {
        Self::Json(Value::from(number))
    }
}

impl From<bool> for BadValue {
    fn from(flag: bool) -> Self {
        Self::Json(Value::from(flag))
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Omitted => Ok(()),
            Self::Verbatim(text) => f.write_str(text),
            Self::Json(Value::String(text)) => f.write_str(&go::quote(text)),
            Self::Json(Value::Number(number)) => f.write_str(&go::json::number(number)),
            Self::Json(value) => f.write_str(&go::json::text(value)),
        }
    }
}

/// An error about one field. `Display` is Kubernetes' whole line: `spec.a: Invalid value: 3: must be even`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// The kind of the error.
    pub kind: FieldErrorKind,
    /// The field's path, `spec.items[0].name`; `<nil>` if the error belongs to no field.
    pub field: String,
    /// The value of the field.
    pub bad_value: BadValue,
    /// The explanation, which may be empty.
    pub detail: String,
}

impl FieldError {
    /// Creates an error.
    #[must_use]
    pub fn new(
        kind: FieldErrorKind,
        field: impl fmt::Display,
        bad_value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, field: field.to_string(), bad_value: bad_value.into(), detail: detail.into() }
    }

    /// Creates the error for a value that violates a rule, which `detail` explains.
    #[must_use]
    pub fn invalid(field: impl fmt::Display, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, value, detail)
    }

    /// Creates the error for a field that is absent or empty.
    #[must_use]
    pub fn required(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, "", detail)
    }

    /// Creates the error for a field that must be absent, or must not change.
    #[must_use]
    pub fn forbidden(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, "", detail)
    }

    /// Creates the error for a value that occurs twice.
    #[must_use]
    pub fn duplicate(field: impl fmt::Display, value: impl Into<BadValue>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, value, "")
    }

    /// Creates the error for a failure of the server.
    #[must_use]
    pub fn internal(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Internal, field, BadValue::Omitted, detail)
    }

    /// Creates the error for a value that is not in `supported`, which lists the quoted values as Kubernetes does.
    #[must_use]
    pub fn not_supported<'s>(
        field: impl fmt::Display,
        value: impl Into<BadValue>,
        supported: impl IntoIterator<Item = &'s str>,
    ) -> Self {
        let quoted: Vec<_> = supported.into_iter().map(go::quote).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(FieldErrorKind::NotSupported, field, value, detail)
    }

    /// Creates the error for a value that is too long; the message says bytes, as in Kubernetes, whatever was counted.
    #[must_use]
    pub fn too_long(field: impl fmt::Display, max: i64) -> Self {
        let detail = match max {
            1 => "may not be more than 1 byte".to_owned(),
            0.. => format!("may not be more than {max} bytes"),
            _ => "value is too long".to_owned(),
        };
        Self::new(FieldErrorKind::TooLong, field, "<value omitted>", detail)
    }

    /// Creates the error for `actual` items if `max` are allowed.
    #[must_use]
    pub fn too_many(field: impl fmt::Display, actual: i64, max: i64) -> Self {
        let detail = match max {
            1 => "must have at most 1 item".to_owned(),
            0.. => format!("must have at most {max} items"),
            _ => "has too many items".to_owned(),
        };
        let actual = if actual >= 0 { BadValue::from(actual) } else { BadValue::Omitted };
        Self::new(FieldErrorKind::TooMany, field, actual, detail)
    }

    /// Returns the message without the field, as in the cause of a `Status`.
    #[must_use]
    pub fn body(&self) -> String {
        if self.kind == FieldErrorKind::More {
            return self.detail.clone();
        }
        let mut text = self.kind.title().to_owned();
        if self.kind.shows_value() && self.bad_value != BadValue::Omitted {
            text.push_str(": ");
            text.push_str(&self.bad_value.to_string());
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            FieldErrorKind::More => f.write_str(&self.body()),
            _ => write!(f, "{}: {}", self.field, self.body()),
        }
    }
}

impl std::error::Error for FieldError {}

/// Joins the errors on one line for the end of a `Status` message: a single one unchanged, several in brackets, equal ones once. If
/// some were left out, the last part says how many.
#[must_use]
pub fn aggregate(errors: &[FieldError]) -> String {
    together(errors.iter().map(ToString::to_string))
}

/// Joins texts of errors as Go's aggregates do: a single one unchanged, several in brackets, equal ones once. The caller has limited
/// their number.
#[must_use]
pub fn together(texts: impl Iterator<Item = String>) -> String {
    match distinct(texts).as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Removes duplicate texts, keeping the first of each.
#[must_use]
pub fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}
