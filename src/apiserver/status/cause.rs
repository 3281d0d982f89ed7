//! What is wrong with single fields: causes, and how values stand in their texts.

use std::fmt;
use std::ops::Deref;

use admit_apimachinery::go;
use admit_policy::findings::{Room, and_more};
use indexmap::IndexSet;
use serde_json::{Value, json};

/// One field that is wrong: a `StatusCause`, and one part of the message of an `Invalid` status.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
        let supported = go::quote::quote_all(supported, ", ");
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

    /// Stands for `count` causes that are not told; has neither field nor reason.
    fn and_more(count: usize) -> Self {
        Self { reason: String::new(), field: String::new(), message: and_more(count) }
    }

    /// How many causes it stands for that are not told; none for a cause proper.
    fn more(&self) -> Option<usize> {
        let is_none = self.reason.is_empty() && self.field.is_empty();
        let count = self.message.strip_prefix("and ")?.strip_suffix(" more")?;
        count.parse().ok().filter(|_| is_none)
    }

    fn to_value(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.more().is_some() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A value as it stands in a field error's text.
#[must_use]
pub fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => go::quote(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// The cause as details list it: without the parts that it does not have.
pub(super) fn cause_value(cause: &Cause) -> Value {
    match (cause.reason.as_str(), cause.field.as_str()) {
        ("", "") => json!({"message": cause.message}),
        (reason, "") => json!({"reason": reason, "message": cause.message}),
        _ => cause.to_value(),
    }
}

/// Causes as they are found: those that there is room for, and how many more. Reads as the list of the former.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    told: Vec<Cause>,
    room: Room,
    more: usize,
}

impl Causes {
    /// Adds a cause; where there is no room, it is only counted.
    pub fn push(&mut self, cause: Cause) {
        if let Some(more) = cause.more() {
            self.more = self.more.saturating_add(more);
        } else if self.room.is_full() {
            self.more = self.more.saturating_add(1);
        } else {
            self.room.take(cause.reason.len() + cause.field.len() + cause.message.len());
            self.told.push(cause);
        }
    }

    /// Those that are told; a cause of its own says how many more there are.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<Cause> {
        if self.more > 0 {
            self.told.push(Cause::and_more(self.more));
        }
        self.told
    }
}

impl Deref for Causes {
    type Target = [Cause];

    fn deref(&self) -> &[Cause] {
        &self.told
    }
}

impl From<Cause> for Causes {
    fn from(cause: Cause) -> Self {
        [cause].into_iter().collect()
    }
}

impl From<Vec<Cause>> for Causes {
    fn from(causes: Vec<Cause>) -> Self {
        causes.into_iter().collect()
    }
}

impl Extend<Cause> for Causes {
    fn extend<I: IntoIterator<Item = Cause>>(&mut self, causes: I) {
        causes.into_iter().for_each(|cause| self.push(cause));
    }
}

impl FromIterator<Cause> for Causes {
    fn from_iter<I: IntoIterator<Item = Cause>>(causes: I) -> Self {
        let mut all = Self::default();
        all.extend(causes);
        all
    }
}

impl IntoIterator for Causes {
    type Item = Cause;
    type IntoIter = std::vec::IntoIter<Cause>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

/// The message names each distinct error once, while the causes keep every one of them.
pub(super) fn distinct(causes: &[Cause]) -> Vec<String> {
    let texts: IndexSet<String> = causes.iter().map(ToString::to_string).collect();
    texts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_told_once_and_not_without_end() {
        let many = |count: usize| (0..count).map(|at| Cause::required(format!("a[{at}]"), ""));
        let mut causes: Causes = many(60_000).collect();
        causes.extend(many(10).collect::<Causes>());
        causes.extend(many(2_000).collect::<Causes>());
        let causes = causes.into_vec();
        assert_eq!(causes.len(), 1_001);
        assert_eq!(causes.last().map(ToString::to_string).as_deref(), Some("and 61010 more"));
        let texts = distinct(&[&causes[..], &causes[..]].concat());
        assert_eq!(texts.len(), 1_001);
        assert_eq!(texts.last().map(String::as_str), Some("and 61010 more"));
    }
}
