//! Lists the values that a field may have: those of its schema, and those that rules distinguish.

use admit_policy::schema::{Schema, SchemaType};
use serde_json::{Value, json};

use super::field::{FieldPath, Step};
use super::rules::Rule;
use crate::reads::EACH;

/// A value of the field, or values that represent it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct State {
    pub(super) name: String,
    pub(super) value: StateValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum StateValue {
    /// The field is absent.
    Absent,
    Is(Value),
    /// Any other string; two of them, so that one may follow the other.
    Other([Value; 2]),
    /// The expression fails.
    Failed,
}

/// Returns the path with [`EACH`] for list entries.
pub(super) fn pattern(path: &FieldPath) -> Vec<String> {
    pattern_of(&path.0)
}

pub(super) fn pattern_of(steps: &[Step]) -> Vec<String> {
    let name = |step: &Step| match step {
        Step::Name(name) => name.clone(),
        Step::Entry { .. } => EACH.to_owned(),
    };
    steps.iter().map(name).collect()
}

/// Returns the schema at a pattern.
pub(super) fn at<'s>(schema: &'s Schema, pattern: &[String]) -> Option<&'s Schema> {
    pattern.iter().try_fold(schema, |schema, name| match name.as_str() {
        EACH => schema.items.as_deref().or_else(|| schema.additional_schema()),
        name => schema.properties.get(name).or_else(|| schema.additional_schema()),
    })
}

/// Returns the constants that rules compare with the value at a pattern.
pub(super) fn compared(rules: &[Rule], pattern: &[String]) -> Vec<Value> {
    let mut constants: Vec<Value> = Vec::new();
    for value in rules.iter().filter_map(|rule| rule.reads.compared.get(pattern)).flatten() {
        if !constants.contains(value) {
            constants.push(value.clone());
        }
    }
    constants
}

/// Returns all values of a schema, if they are few.
pub(super) fn listed(schema: &Schema) -> Vec<Value> {
    if schema.is_type(&SchemaType::Boolean) {
        return vec![json!(true), json!(false)];
    }
    schema.checks.enumeration.iter().filter(|member| !member.is_null()).cloned().collect()
}

pub(super) fn fits(schema: Option<&Schema>, value: &Value) -> bool {
    let Some(schema) = schema else { return !value.is_null() };
    match value {
        Value::String(_) => schema.is_type(&SchemaType::String) || schema.int_or_string,
        Value::Number(number) => {
            schema.is_type(&SchemaType::Number)
                || number.is_i64() && (schema.is_type(&SchemaType::Integer) || schema.int_or_string)
        }
        Value::Bool(_) => schema.is_type(&SchemaType::Boolean),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Returns the states of a field; empty if there are too many to draw.
pub(super) fn states(
    schema: Option<&Schema>,
    rules: &[Rule],
    pattern: &[String],
    subject: &FieldPath,
    bases: &[Value],
) -> Vec<State> {
    let mut values = schema.map(listed).unwrap_or_default();
    let is_open = values.is_empty();
    if is_open {
        let is_text =
            schema.is_none_or(|schema| schema.is_type(&SchemaType::String) && !schema.int_or_string);
        let is_free = schema.is_none_or(|schema| schema.checks.format.is_none());
        if !is_text || !is_free {
            return Vec::new();
        }
        values = compared(rules, pattern).into_iter().filter(Value::is_string).collect();
        if values.is_empty() {
            return Vec::new();
        }
    }
    let named = |value: Value| State { name: name_of(&value), value: StateValue::Is(value) };
    let mut states = vec![State { name: ABSENT.to_owned(), value: StateValue::Absent }];
    let others = is_open.then(|| others(&values, subject, bases.iter()));
    states.extend(values.into_iter().map(named));
    states.extend(others.map(|two| State { name: OTHER.to_owned(), value: StateValue::Other(two) }));
    states
}

/// The name of the state in which the field is not there.
pub(super) const ABSENT: &str = "absent";
/// The name of the state that represents all values that rules do not distinguish.
pub(super) const OTHER: &str = "other";

/// Returns two strings that rules do not name: from given objects, or made up.
pub(super) fn others<'v>(
    named: &[Value],
    subject: &FieldPath,
    bases: impl Iterator<Item = &'v Value>,
) -> [Value; 2] {
    let of_bases = bases.filter_map(|base| subject.get(base));
    let unnamed = of_bases.filter(|value| value.is_string() && !named.contains(value)).cloned();
    let mut two: Vec<Value> = Vec::new();
    for value in unnamed.chain([json!("SomethingElse"), json!("AnotherThing"), json!("AThirdThing")]) {
        if !two.contains(&value) && !named.contains(&value) {
            two.push(value);
        }
    }
    let mut two = two.into_iter();
    [two.next().unwrap_or_default(), two.next().unwrap_or_default()]
}

pub(super) fn name_of(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "''".to_owned(),
        Value::String(text) if text == ABSENT || text == OTHER => format!("'{text}'"),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Reports whether the value or a parent may be null: then it is present, but has no value.
pub(super) fn may_be_null(schema: Option<&Schema>, pattern: &[String]) -> bool {
    (1..=pattern.len()).any(|depth| {
        let so_far = pattern.get(..depth).unwrap_or_default();
        schema.and_then(|schema| at(schema, so_far)).is_some_and(|schema| schema.nullable)
    })
}

/// Converts patterns without lists to paths.
pub(super) fn plain_path(pattern: &[String]) -> Option<FieldPath> {
    let is_plain = !pattern.is_empty() && pattern.iter().all(|name| name != EACH);
    is_plain.then(|| FieldPath(pattern.iter().cloned().map(Step::Name).collect()))
}
