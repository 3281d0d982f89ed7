//! Represents a part of an object during validation, with its path for error messages.
//!
//! Reading never fails: a part that is absent or of another type reads as Go's zero value, because
//! decoding has refused wrong types before validation.

use std::borrow::Cow;
use std::fmt;
use std::rc::Rc;

use admit_apimachinery::field_error::{BadValue, FieldError, FieldErrorKind};
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::{self, NameRule};
use serde_json::{Map, Value};

use crate::emptied::{self, Step as SentStep};
use crate::interrupt;

static NULL: Value = Value::Null;

/// A part of an object, and its path from the object's root.
#[derive(Clone, Debug)]
pub(crate) struct Field<'o> {
    value: &'o Value,
    path: Option<Rc<Node>>,
}

#[derive(Debug)]
struct Node {
    parent: Option<Rc<Self>>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Name(&'static str),
    Member(String),
    Key(String),
    Index(usize),
}

impl Step {
    fn sent(&self) -> SentStep {
        match self {
            Self::Name(name) => SentStep::Name((*name).into()),
            Self::Member(name) | Self::Key(name) => SentStep::Name(name.clone().into()),
            Self::Index(index) => SentStep::Index(*index),
        }
    }
}

impl<'o> Field<'o> {
    /// The object itself, which has an empty path.
    pub(crate) const fn root(object: &'o Value) -> Self {
        Self { value: object, path: None }
    }

    fn child(&self, step: Step, value: &'o Value) -> Self {
        interrupt::checkpoint();
        Self { value, path: Some(Rc::new(Node { parent: self.path.clone(), step })) }
    }

    /// Returns the member `name`.
    pub(crate) fn get(&self, name: &'static str) -> Self {
        self.child(Step::Name(name), self.value.get(name).unwrap_or(&NULL))
    }

    /// Returns the member `name`, for names that are not constants.
    pub(crate) fn member(&self, name: &str) -> Self {
        self.child(Step::Member(name.to_owned()), self.value.get(name).unwrap_or(&NULL))
    }

    /// Returns the value of a map under `key`, with the path `[key]`.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.child(Step::Key(key.to_owned()), self.value.get(key).unwrap_or(&NULL))
    }

    /// Returns the item at `index`.
    pub(crate) fn index(&self, index: usize) -> Self {
        self.child(Step::Index(index), self.value.get(index).unwrap_or(&NULL))
    }

    /// Returns the same path with another value: that of the old object, or one that was computed.
    pub(crate) fn with<'v>(&self, value: &'v Value) -> Field<'v> {
        Field { value, path: self.path.clone() }
    }

    /// Returns the items of a list; none if it is absent.
    pub(crate) fn items(&self) -> impl Iterator<Item = Self> + use<'o> {
        let parent = self.clone();
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().enumerate().map(move |(index, item)| parent.child(Step::Index(index), item))
    }

    /// Returns the members of a map, in the order of their keys, each with the path `[key]`.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'o str, Self)> + use<'o> {
        let parent = self.clone();
        let mut members: Vec<(&'o String, &'o Value)> = self.map().into_iter().flatten().collect();
        members.sort_by_key(|(key, _)| *key);
        members
            .into_iter()
            .map(move |(key, value)| (key.as_str(), parent.child(Step::Key(key.clone()), value)))
    }

    /// Returns the value; null if it is absent.
    pub(crate) const fn value(&self) -> &'o Value {
        self.value
    }

    /// Whether it is present and not null.
    pub(crate) fn is_set(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns the string; empty if there is none.
    pub(crate) fn text(&self) -> &'o str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the strings of a list, as Go reads them: null is empty.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'o str> + use<'o> {
        let items = self.value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| item.as_str().unwrap_or_default())
    }

    /// Returns a list of strings for error messages; null if it is absent.
    pub(crate) fn shown_texts(&self) -> Value {
        if self.as_sent().is_array() { self.texts().collect() } else { Value::Null }
    }

    /// Returns the integer, if there is one.
    pub(crate) fn integer(&self) -> Option<i64> {
        self.value.as_i64()
    }

    /// Returns the boolean; false if there is none.
    pub(crate) fn flag(&self) -> bool {
        self.value.as_bool().unwrap_or_default()
    }

    /// Returns the members, if it is a map.
    pub(crate) fn map(&self) -> Option<&'o Map<String, Value>> {
        self.value.as_object()
    }

    /// Returns the number of items or members.
    pub(crate) fn len(&self) -> usize {
        match self.value {
            Value::Array(items) => items.len(),
            Value::Object(members) => members.len(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
        }
    }

    /// Whether it is an empty string, list or map, or absent.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.text().is_empty()
    }
}

/// Constructors of errors about this field, in kube-apiserver's words.
impl Field<'_> {
    /// The value breaks a rule, which `detail` states. An absent value is shown as the empty string.
    pub(crate) fn invalid(&self, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self, self.shown(), detail)
    }

    /// As [`Field::invalid`], with another value shown.
    pub(crate) fn invalid_as(&self, shown: impl Into<BadValue>, detail: impl Into<String>) -> FieldError {
        FieldError::invalid(self, in_order(shown.into()), detail)
    }

    /// The field is absent or empty.
    pub(crate) fn required(&self, detail: impl Into<String>) -> FieldError {
        FieldError::required(self, detail)
    }

    /// The field may not be present, or may not change.
    pub(crate) fn forbidden(&self, detail: impl Into<String>) -> FieldError {
        FieldError::forbidden(self, detail)
    }

    /// The value is not a supported one. `supported` is listed in the given order; upstream sorts it in most places.
    pub(crate) fn not_supported(&self, supported: &[&str]) -> FieldError {
        FieldError::not_supported(self, self.shown(), supported.iter().copied())
    }

    /// The value is already in the list.
    pub(crate) fn duplicate(&self) -> FieldError {
        FieldError::duplicate(self, self.shown())
    }

    /// The referenced object does not exist.
    pub(crate) fn not_found(&self) -> FieldError {
        FieldError::new(FieldErrorKind::NotFound, self, self.shown(), "")
    }

    /// The string is longer than `max` bytes.
    pub(crate) fn too_long(&self, max: i64) -> FieldError {
        FieldError::too_long(self, max)
    }

    /// The list is longer than `max` items.
    pub(crate) fn too_many(&self, max: i64) -> FieldError {
        FieldError::too_many(self, i64::try_from(self.len()).unwrap_or(i64::MAX), max)
    }

    /// Returns the value including empty lists and maps that were sent, but which decoding removed.
    pub(crate) fn as_sent(&self) -> Cow<'_, Value> {
        emptied::as_sent(self.value, || self.steps().map(Step::sent).collect())
    }

    fn shown(&self) -> BadValue {
        match &*self.as_sent() {
            Value::Null => BadValue::from(""),
            value => in_order(BadValue::from(value)),
        }
    }

    /// Returns the steps from the root to this field.
    fn steps(&self) -> impl Iterator<Item = &Step> {
        let mut steps = Vec::new();
        let mut next = self.path.as_ref();
        while let Some(node) = next {
            steps.push(&node.step);
            next = node.parent.as_ref();
        }
        steps.into_iter().rev()
    }
}

/// Values of built-in kinds are structs, whose members are shown in declaration order.
fn in_order(shown: BadValue) -> BadValue {
    match shown {
        BadValue::Json(value @ (Value::Array(_) | Value::Object(_))) => BadValue::Verbatim(value.to_string()),
        other => other,
    }
}

/// Checks that many kinds need. Each adds its errors to `errors`.
impl Field<'_> {
    /// A number must not be negative, if present.
    pub(crate) fn not_negative(&self, errors: &mut FieldErrors) {
        if self.integer().is_some_and(|number| number < 0) {
            errors.add(|| self.invalid("must be greater than or equal to 0"));
        }
    }

    /// A number must be between both limits, inclusive, if present.
    pub(crate) fn in_range(&self, min: i64, max: i64, errors: &mut FieldErrors) {
        if self.integer().is_some_and(|number| !(min..=max).contains(&number)) {
            errors.add(|| self.invalid(format!("must be between {min} and {max}, inclusive")));
        }
    }

    /// A string must be one of the supported ones, unless empty.
    pub(crate) fn one_of(&self, supported: &[&str], errors: &mut FieldErrors) {
        if !self.text().is_empty() && !supported.contains(&self.text()) {
            errors.add(|| self.not_supported(supported));
        }
    }

    /// The string must be a name by `rule`.
    pub(crate) fn named(&self, rule: NameRule, errors: &mut FieldErrors) {
        self.problems(rule.problems(self.text(), false), errors);
    }

    /// The string must be a domain and a path.
    pub(crate) fn domain_prefixed_path(&self, errors: &mut FieldErrors) {
        for (part, problem) in names::domain_prefixed_path(self.text()) {
            errors.add(|| self.invalid_as(part, problem));
        }
    }

    /// Adds an error for each of the problems.
    pub(crate) fn problems(&self, problems: Vec<String>, errors: &mut FieldErrors) {
        for problem in problems {
            errors.add(|| self.invalid(problem));
        }
    }

    /// The value must equal the old one; an absent one is shown as null.
    pub(crate) fn immutable_or_null(&self, old: &Field<'_>, errors: &mut FieldErrors) {
        if self.value != old.value {
            errors.add(|| self.invalid_as(&*self.as_sent(), "field is immutable"));
        }
    }

    /// The value must equal the old one.
    pub(crate) fn immutable(&self, old: &Field<'_>, errors: &mut FieldErrors) {
        if self.value != old.value {
            errors.add(|| self.invalid("field is immutable"));
        }
    }
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.steps().enumerate() {
            match step {
                Step::Name(name) if depth == 0 => f.write_str(name)?,
                Step::Name(name) => write!(f, ".{name}")?,
                Step::Member(name) if depth == 0 => f.write_str(name)?,
                Step::Member(name) => write!(f, ".{name}")?,
                Step::Key(key) => write!(f, "[{key}]")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_name_the_path() {
        let object = json!({"spec": {"ports": [{"port": -1}], "labels": {"b": "x", "a": "y"}}});
        let spec = Field::root(&object).get("spec");
        let mut errors = FieldErrors::default();
        for port in spec.get("ports").items() {
            port.get("port").not_negative(&mut errors);
            port.get("name").problems(vec!["is odd".to_owned()], &mut errors);
        }
        for (_, label) in spec.get("labels").entries() {
            errors.add(|| label.forbidden("no labels"));
        }
        errors.add(|| spec.get("labels").key("c").required(""));
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "spec.ports[0].port: Invalid value: -1: must be greater than or equal to 0",
                "spec.ports[0].name: Invalid value: \"\": is odd",
                "spec.labels[a]: Forbidden: no labels",
                "spec.labels[b]: Forbidden: no labels",
                "spec.labels[c]: Required value",
            ]
        );
    }

    #[test]
    fn what_is_not_there_reads_as_zero() {
        let object = json!({"a": null});
        let absent = Field::root(&object).get("a").get("b").index(3);
        assert_eq!((absent.text(), absent.integer(), absent.flag(), absent.len()), ("", None, false, 0));
        assert!(!absent.is_set() && absent.is_empty());
        assert_eq!(absent.to_string(), "a.b[3]");
    }
}
