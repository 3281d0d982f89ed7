//! Defines the path of a field in objects: reads, sets and removes its value.
//!
//! `status.phase`, `metadata.annotations[example.com/channel]`, `status.conditions[type=Ready].status`: names are separated by dots, or
//! in brackets if they are no identifiers; list entries are selected by their key field.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};
use thiserror::Error;

/// One segment of a path.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Step {
    /// A field, or the key of a map.
    Name(String),
    /// The entry of a list in which `key` is `value`.
    Entry {
        /// The field that identifies entries.
        key: String,
        /// Its value.
        value: String,
    },
}

/// The path of a field, from the root of an object.
///
/// ```
/// use admit_analysis::states::FieldPath;
/// use serde_json::json;
///
/// let path: FieldPath = "status.conditions[type=Ready].status".parse()?;
/// let object = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
/// assert_eq!(path.get(&object), Some(&json!("True")));
/// assert_eq!(path.to_string(), "status.conditions[type=Ready].status");
/// # Ok::<(), admit_analysis::states::FieldPathError>(())
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FieldPath(pub(super) Vec<Step>);

/// Why a text is not a valid path.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum FieldPathError {
    /// A step has no name.
    #[error("`{0}` has a step without a name; write status.phase, or status.conditions[type=Ready].status")]
    Malformed(String),
    /// A bracket is not closed.
    #[error("`{0}` has a bracket that is not closed")]
    Unclosed(String),
}

impl FromStr for FieldPath {
    type Err = FieldPathError;

    fn from_str(text: &str) -> Result<Self, FieldPathError> {
        let malformed = || FieldPathError::Malformed(text.to_owned());
        let (mut steps, mut rest) = (Vec::new(), text.strip_prefix('.').unwrap_or(text));
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (inside, behind) =
                    inside.split_once(']').ok_or_else(|| FieldPathError::Unclosed(text.to_owned()))?;
                let inside = inside.trim_matches(['\'', '"']);
                steps.push(match inside.split_once('=') {
                    Some((key, value)) => Step::Entry { key: key.to_owned(), value: value.to_owned() },
                    None if inside.is_empty() => return Err(malformed()),
                    None => Step::Name(inside.to_owned()),
                });
                rest = behind.strip_prefix('.').unwrap_or(behind);
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                let (name, behind) = rest.split_at(end);
                if name.is_empty() {
                    return Err(malformed());
                }
                steps.push(Step::Name(name.to_owned()));
                rest = behind.strip_prefix('.').unwrap_or(behind);
            }
        }
        if steps.is_empty() { Err(malformed()) } else { Ok(Self(steps)) }
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Name(name) if is_plain(name) => {
                    write!(f, "{}{name}", if at == 0 { "" } else { "." })?;
                }
                Step::Name(name) => write!(f, "[{name}]")?,
                Step::Entry { key, value } => write!(f, "[{key}={value}]")?,
            }
        }
        Ok(())
    }
}

fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Creates the missing object at a path.
pub(super) type Filler<'f> = &'f dyn Fn(&[Step]) -> Value;

impl FieldPath {
    /// Returns the value of the field.
    #[must_use]
    pub fn get<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        reached(object, &self.0).filter(|value| !value.is_null())
    }

    /// Reports whether the field is `other` or a descendant of it.
    pub(super) fn is_within(&self, other: &[Step]) -> bool {
        self.0.starts_with(other)
    }

    /// Sets the field; `filler` creates missing parents.
    pub(super) fn set(&self, object: &mut Value, value: Value, filler: Filler<'_>) {
        let Some((last, parents)) = self.0.split_last() else { return };
        let mut at = object;
        for (depth, _) in parents.iter().enumerate() {
            let so_far = self.0.get(..=depth).unwrap_or_default();
            let Some(step) = so_far.last() else { return };
            match entered(at, step, || filler(so_far)) {
                Some(below) => at = below,
                None => return,
            }
        }
        if let Some(place) = entered(at, last, || Value::Null) {
            *place = value;
        }
    }

    /// Removes the field, or the entry.
    pub(super) fn remove(&self, object: &mut Value) {
        let Some((last, parents)) = self.0.split_last() else { return };
        let mut at = object;
        for step in parents {
            match inside(at, step) {
                Some(below) => at = below,
                None => return,
            }
        }
        match (at, last) {
            (Value::Object(fields), Step::Name(name)) => {
                fields.shift_remove(name);
            }
            (Value::Array(items), Step::Entry { key, value }) => {
                items.retain(|item| item.get(key).and_then(Value::as_str) != Some(value));
            }
            _ => {}
        }
    }
}

pub(super) fn reached<'v>(object: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(object, |at, step| match step {
        Step::Name(name) => at.get(name),
        Step::Entry { key, value } => {
            at.as_array()?.iter().find(|item| item.get(key).and_then(Value::as_str) == Some(value))
        }
    })
}

fn inside<'v>(at: &'v mut Value, step: &Step) -> Option<&'v mut Value> {
    match step {
        Step::Name(name) => at.get_mut(name),
        Step::Entry { key, value } => at
            .as_array_mut()?
            .iter_mut()
            .find(|item| item.get(key).and_then(Value::as_str) == Some(value.as_str())),
    }
}

/// Returns the child at a segment, created if missing; `None` if the parent has another type.
fn entered<'v>(at: &'v mut Value, step: &Step, made: impl FnOnce() -> Value) -> Option<&'v mut Value> {
    match step {
        Step::Name(name) => {
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
            Some(at.as_object_mut()?.entry(name.clone()).or_insert_with(made))
        }
        Step::Entry { key, value } => {
            if at.is_null() {
                *at = Value::Array(Vec::new());
            }
            let items = at.as_array_mut()?;
            let is_it = |item: &Value| item.get(key).and_then(Value::as_str) == Some(value.as_str());
            let place = items.iter().position(is_it).unwrap_or_else(|| {
                let mut entry =
                    Some(made()).filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()));
                if let Some(fields) = entry.as_object_mut() {
                    fields.insert(key.clone(), Value::from(value.as_str()));
                }
                items.push(entry);
                items.len().saturating_sub(1)
            });
            items.get_mut(place)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> FieldPath {
        text.parse().unwrap()
    }

    #[test]
    fn paths_are_written_as_they_are_read() {
        for text in ["spec.mode", "metadata.annotations[a.example/b]", "status.conditions[type=Ready].status"]
        {
            assert_eq!(path(text).to_string(), text);
        }
        for wrong in ["", ".", "a..b", "a[b", "a[]"] {
            assert!(wrong.parse::<FieldPath>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_missing_on_the_way_is_made() {
        let filler = |steps: &[Step]| match steps.last() {
            Some(Step::Entry { .. }) => json!({"reason": "Made"}),
            _ if steps.len() == 1 => json!({"count": 0}),
            _ => Value::Null,
        };
        let mut object = json!({});
        path("status.conditions[type=Ready].status").set(&mut object, json!("True"), &filler);
        let entry = json!({"reason": "Made", "type": "Ready", "status": "True"});
        assert_eq!(object, json!({"status": {"count": 0, "conditions": [entry]}}));
        path("status.conditions[type=Ready]").remove(&mut object);
        assert_eq!(object, json!({"status": {"count": 0, "conditions": []}}));
        path("status.count").remove(&mut object);
        assert_eq!(path("status.count").get(&object), None);
    }
}
