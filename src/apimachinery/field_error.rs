//! What is wrong with one field, as Kubernetes' `field.Error`: its kind, its path, the value, a detail. The text and
//! the cause of a `Status` are read from it; who is answered how is left to the callers.

use std::collections::HashSet;
use std::fmt;

use serde_json::Value;

use crate::go;

/// What kind of mistake a [`FieldError`] tells; the counterpart of `field.ErrorType`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldErrorKind {
    /// What it refers to is not there.
    NotFound,
    /// It is absent or empty.
    Required,
    /// It is there twice.
    Duplicate,
    /// Its value breaks a rule.
    Invalid,
    /// Its value is none of those that there are.
    NotSupported,
    /// It may not be there, or not change.
    Forbidden,
    /// More bytes than it may have.
    TooLong,
    /// More items than it may have.
    TooMany,
    /// Fewer items than it must have.
    TooFew,
    /// Fewer bytes than it must have.
    TooShort,
    /// A fault of the server.
    Internal,
    /// Its value is of another type.
    TypeInvalid,
    /// No mistake of its own: stands for so many that are not told.
    More,
}

impl FieldErrorKind {
    /// Every kind but the last, which stands for others.
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

    /// The `reason` of a cause in a `Status`.
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

    /// The kind that a cause's `reason` tells; none for reasons of other mistakes.
    #[must_use]
    pub fn of_reason(reason: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.reason() == reason)
    }

    /// How a message begins.
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

    /// Whether rules are left unchecked when such an error was found: the object has not the shape they were
    /// compiled for, or is larger than their cost was estimated for.
    #[must_use]
    pub const fn blocks_rules(self) -> bool {
        match self {
            // Those that are not told may be of any kind.
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

/// The value that a message shows.
#[derive(Clone, Debug, PartialEq)]
pub enum BadValue {
    /// Nothing is shown.
    Omitted,
    /// A text is quoted, all else is JSON.
    Json(Value),
    /// Text shown as it stands: an internal form of Kubernetes, already written out.
    Verbatim(String),
}

impl BadValue {
    /// A text that Go does not hold as a plain string: it is printed as JSON, with JSON's escapes.
    #[must_use]
    pub fn marshalled(text: &str) -> Self {
        Self::Verbatim(go::json::text(&Value::from(text)))
    }

    /// The value, where it is one of JSON.
    #[must_use]
    pub const fn as_json(&self) -> Option<&Value> {
        match self {
            Self::Json(value) => Some(value),
            Self::Omitted | Self::Verbatim(_) => None,
        }
    }

    /// About how many bytes it is when shown.
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

/// One mistake in one field. `Display` is Kubernetes' whole line: `spec.a: Invalid value: 3: must be even`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What kind of mistake it is.
    pub kind: FieldErrorKind,
    /// `spec.items[0].name`; `<nil>` where the mistake belongs to no field.
    pub field: String,
    /// What stands there.
    pub bad_value: BadValue,
    /// May be empty.
    pub detail: String,
}

impl FieldError {
    /// A mistake of that kind.
    #[must_use]
    pub fn new(
        kind: FieldErrorKind,
        field: impl fmt::Display,
        bad_value: impl Into<BadValue>,
        detail: impl Into<String>,
    ) -> Self {
        Self { kind, field: field.to_string(), bad_value: bad_value.into(), detail: detail.into() }
    }

    /// The value breaks a rule, which `detail` tells.
    #[must_use]
    pub fn invalid(field: impl fmt::Display, value: impl Into<BadValue>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, value, detail)
    }

    /// The field is absent or empty.
    #[must_use]
    pub fn required(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, "", detail)
    }

    /// The field may not be there, or not change.
    #[must_use]
    pub fn forbidden(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, "", detail)
    }

    /// The value is there twice.
    #[must_use]
    pub fn duplicate(field: impl fmt::Display, value: impl Into<BadValue>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, value, "")
    }

    /// A fault of the server.
    #[must_use]
    pub fn internal(field: impl fmt::Display, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Internal, field, BadValue::Omitted, detail)
    }

    /// `supported` as Kubernetes lists them, each quoted.
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

    /// `max` in what Kubernetes calls bytes, whatever was counted.
    #[must_use]
    pub fn too_long(field: impl fmt::Display, max: i64) -> Self {
        let detail = match max {
            1 => "may not be more than 1 byte".to_owned(),
            0.. => format!("may not be more than {max} bytes"),
            _ => "value is too long".to_owned(),
        };
        Self::new(FieldErrorKind::TooLong, field, "<value omitted>", detail)
    }

    /// `actual` items where there may be `max`.
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

    /// The message without the field, as a `Status` cause holds it.
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

/// The errors in one line as a `Status` message ends: one alone as it is, several in brackets, equal ones once. Of too
/// many the last part says how many more there are.
#[must_use]
pub fn aggregate(errors: &[FieldError]) -> String {
    together(errors.iter().map(ToString::to_string))
}

/// Texts of errors as Go's aggregates print them: one alone as it is, several in brackets, equal ones once. They were
/// bounded before.
#[must_use]
pub fn together(texts: impl Iterator<Item = String>) -> String {
    match distinct(texts).as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

/// Each text once, where it stood first.
#[must_use]
pub fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}
