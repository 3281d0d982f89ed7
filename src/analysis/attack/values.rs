//! Chooses values to try for a field: by its type, from constants that rules compare it with, and from given objects.

use admit_policy::{FieldType, GroupVersionKind};
use serde_json::{Value, json};

use super::path::{Path, Step};
use super::rules::Rules;
use super::types::{Kind, Types};
use crate::reads::EACH;

/// The maximum number of values per field.
const MOST_VALUES: usize = 40;

/// The sources of values.
#[derive(Debug)]
pub(super) struct Values<'a> {
    pub(super) types: &'a Types<'a>,
    pub(super) rules: &'a Rules,
    /// The given objects.
    pub(super) given: &'a [Value],
}

impl Values<'_> {
    /// Returns values to try instead of the current one, the likeliest first.
    pub(super) fn at(&self, kind: &GroupVersionKind, path: &Path, now: Option<&Value>) -> Vec<Value> {
        let pattern = path.pattern();
        let known = self.types.kind(kind).and_then(|kind| kind.at(&pattern)).map(|(of, _)| of);
        let mut values: Vec<Value> = self.rules.compared_anywhere(&pattern);
        for object in self.given.iter().filter(|object| GroupVersionKind::of(object) == *kind) {
            values.extend(
                super::path::expand(&pattern, object).iter().filter_map(|path| path.get(object)).cloned(),
            );
        }
        self.by_type(known, now, &mut values);
        let mut distinct: Vec<Value> = Vec::new();
        for value in values {
            if distinct.len() < MOST_VALUES
                && Some(&value) != now
                && !value.is_null()
                && !distinct.contains(&value)
            {
                distinct.push(value);
            }
        }
        distinct
    }

    fn by_type(&self, known: Option<&FieldType>, now: Option<&Value>, values: &mut Vec<Value>) {
        let guessed = known.cloned().unwrap_or_else(|| guess(now));
        let literals = || self.rules.literals.iter();
        let texts = || literals().filter(|value| value.is_string()).cloned();
        match guessed {
            FieldType::Bool => values.extend([json!(true), json!(false)]),
            FieldType::Int | FieldType::Int32 => {
                let near = |value: i64| [value, value.saturating_add(1), value.saturating_sub(1)];
                values.extend(literals().filter_map(Value::as_i64).flat_map(near).map(Value::from));
                values.extend([0, 1, 2, 65_536].map(Value::from));
            }
            FieldType::Float => values.extend([json!(0), json!(1)]),
            FieldType::OneOf(members) => values.extend(members.into_iter().map(Value::from)),
            FieldType::Quantity => {
                values.extend(texts());
                values.extend(["1", "100Gi", "1m"].map(Value::from));
            }
            FieldType::Text | FieldType::IntOrText => {
                values.extend(texts());
                // Strings that begin or end with a constant of the rules.
                let around = texts()
                    .filter_map(|text| text.as_str().map(|text| [format!("{text}x"), format!("x{text}")]));
                values.extend(around.flatten().map(Value::from));
                values.extend(["x", ""].map(Value::from));
            }
            FieldType::List(of) => {
                values.push(json!([]));
                if matches!(*of, FieldType::Text | FieldType::OneOf(_)) {
                    values.extend(texts().map(|text| json!([text])));
                    values.push(json!(["x"]));
                }
            }
            FieldType::Map(_) => {
                values.push(json!({}));
                values.push(json!({"x": "x"}));
            }
            FieldType::Shape(_) => values.push(json!({})),
            FieldType::Time | FieldType::Bytes | FieldType::Other => {
                values.extend([json!({}), json!(true), json!("x"), json!(1)]);
            }
        }
    }
}

fn guess(now: Option<&Value>) -> FieldType {
    match now {
        Some(Value::Bool(_)) => FieldType::Bool,
        Some(Value::Number(_)) => FieldType::Int,
        Some(Value::Array(_)) => FieldType::List(Box::new(FieldType::Other)),
        Some(Value::Object(_)) => FieldType::Map(Box::new(FieldType::Other)),
        Some(Value::String(_)) | None => FieldType::Text,
        Some(Value::Null) => FieldType::Other,
    }
}

/// Returns the paths of a pattern in an object; a missing list counts as one with a first item.
pub(super) fn instances(pattern: &[String], object: &Value) -> Vec<Path> {
    let found = super::path::expand(pattern, object);
    if !found.is_empty() || !pattern.iter().any(|name| name == EACH) {
        return found;
    }
    let step = |name: &String| if name == EACH { Step::At(0) } else { Step::Name(name.clone()) };
    vec![Path(pattern.iter().map(step).collect())]
}

/// Returns some value of a type.
pub(super) fn sample(of: &FieldType) -> Value {
    match of {
        FieldType::Text | FieldType::IntOrText | FieldType::Quantity => json!("x"),
        FieldType::OneOf(members) => json!(members.first()),
        FieldType::Int | FieldType::Int32 | FieldType::Float => json!(1),
        FieldType::Bool => json!(true),
        FieldType::List(of) => json!([sample(of)]),
        FieldType::Map(_) | FieldType::Shape(_) => json!({}),
        FieldType::Time | FieldType::Bytes | FieldType::Other => Value::Null,
    }
}

/// Adds the required fields to the objects along a path.
pub(super) fn complete(kind: Kind<'_>, path: &Path, object: &mut Value) {
    for length in 1..path.0.len() {
        let around = path.prefix(length);
        let Some(shape) = kind.shape_at(&around.pattern()) else { continue };
        for field in kind.fields(shape).iter().filter(|field| field.required) {
            let own = around.child(Step::Name(field.name.clone()));
            if own.get(object).is_some() {
                continue;
            }
            let sample = match &field.of {
                FieldType::List(_) => json!([]),
                FieldType::Time | FieldType::Bytes | FieldType::Other => continue,
                of => sample(of),
            };
            own.set(object, sample);
        }
        // Containers are identified by name, and need an image.
        let image = around.child(Step::Name("image".to_owned()));
        let has_image = kind.fields(shape).iter().any(|field| field.name == "imagePullPolicy");
        if has_image && image.get(object).is_none() {
            image.set(object, json!("registry.example/app:1.0"));
        }
    }
}
