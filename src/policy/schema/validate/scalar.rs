//! Validates types, enums, strings and their formats.

use serde_json::Value;

use super::{Node, Outcome, SchemaType, format};
use crate::schema::numeric;

impl<'r> Node<'_, 'r> {
    pub(super) fn null_type(&self) -> Outcome<'r> {
        let mut outcome = self.clean();
        if self.has_type() && !self.schema.nullable {
            outcome.invalid_type(self.path, self.type_names(), "null");
        } else {
            outcome.step();
        }
        outcome
    }

    pub(super) fn value_type(&self, value: &Value) -> Outcome<'r> {
        let (found, value_format) = type_of(value);
        let whole_float = value.as_i64().is_none()
            && value.as_f64().is_some_and(numeric::is_json_integer)
            && self.allows(&SchemaType::Integer);
        let fits = self.allows(&found)
            || whole_float
            || (found == SchemaType::Integer && self.allows(&SchemaType::Number));
        let mut outcome = self.clean();
        if let Some(format) = self.format() {
            let textual = matches!(found, SchemaType::String | SchemaType::Array);
            if !textual && !fits && value_format != format {
                outcome.invalid_type(self.path, format, value_format);
                return outcome;
            }
            // A format without a numeric type is left to the format's own check.
            if textual && !self.allows(&SchemaType::Number) && !self.allows(&SchemaType::Integer) {
                outcome.step();
                return outcome;
            }
        }
        if fits {
            outcome.step();
        } else {
            outcome.invalid_type(self.path, self.type_names(), found.as_str());
        }
        outcome
    }

    pub(super) fn enumeration(&self, value: &Value) -> Outcome<'r> {
        let allowed = &self.schema.checks.enumeration;
        let mut outcome = self.clean();
        if !allowed.is_empty() && !allowed.has(value) {
            outcome.not_supported(self.path, value, allowed);
        }
        outcome
    }

    /// Only the first failure is reported.
    pub(super) fn string(&self, text: &str) -> Outcome<'r> {
        let checks = &self.schema.checks;
        let mut outcome = self.clean();
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(max) = checks.max_length.filter(|max| length() > *max) {
            outcome.too_long(self.path, max);
        } else if let Some(min) = checks.min_length.filter(|min| length() < *min) {
            outcome.invalid(self.path, text, || format!("should be at least {min} chars long"));
        } else if let Some(pattern) = checks.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
            outcome.invalid(self.path, text, || {
                let reason = pattern.error().map(|error| format!(", but pattern is invalid: {error}"));
                format!("should match '{}{}'", pattern.text(), reason.unwrap_or_default())
            });
        }
        outcome
    }

    pub(super) fn string_format(&self, format: &str, text: &str) -> Outcome<'r> {
        let mut outcome = self.clean();
        if !format::matches(format, text) {
            outcome.invalid_type(self.path, format, text);
        }
        outcome
    }
}

/// The type of a value and the format that Go's type implies.
fn type_of(value: &Value) -> (SchemaType, &'static str) {
    match value {
        Value::Bool(_) => (SchemaType::Boolean, ""),
        Value::String(_) => (SchemaType::String, ""),
        Value::Number(number) if number.as_i64().is_some() => (SchemaType::Integer, "int64"),
        Value::Number(_) => (SchemaType::Number, "float64"),
        Value::Array(_) => (SchemaType::Array, ""),
        Value::Object(_) => (SchemaType::Object, ""),
        Value::Null => (SchemaType::Other("null".into()), ""),
    }
}
