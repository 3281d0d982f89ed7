//! Reads typed fields from parsed JSON, and names the path of the first field of a wrong type.
//!
//! `null` reads as absent, as Go's decoder has it. Unknown fields are not an error here; [`Fields::unknown`] lists
//! them for callers that warn.

use serde_json::{Map, Value};
use thiserror::Error;

/// A field of the wrong JSON type.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{}must be {expected}, not {found}", place(path))]
pub struct DecodeError {
    /// Dotted path from the document's root, list positions in brackets.
    pub path: String,
    /// The type that the field must have, such as `a string`.
    pub expected: &'static str,
    /// The type that was found.
    pub found: &'static str,
}

/// Returns the prefix of a message that names the field; empty for the document itself.
fn place(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}: ") }
}

/// A document that cannot be used: a field of the wrong type, or of a value that means nothing.
///
/// ```
/// use admit_policy::AccessAnswers;
/// use serde_json::json;
///
/// let error = AccessAnswers::read(&json!([{"verb": 1, "allowed": true}])).unwrap_err();
/// assert!(error.path().ends_with("verb"), "{error}");
/// ```
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum FieldsError {
    #[error("{0}")]
    Field(#[from] DecodeError),
    #[error("{path}: {problem}")]
    Value { path: String, problem: String },
}

impl FieldsError {
    /// The field that is wrong.
    pub fn path(&self) -> &str {
        match self {
            Self::Field(error) => &error.path,
            Self::Value { path, .. } => path,
        }
    }
}

/// The fields of one JSON object, with its path.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    map: Option<&'a Map<String, Value>>,
    path: String,
}

impl<'a> Fields<'a> {
    pub(crate) fn of(value: &'a Value, path: impl Into<String>) -> Result<Self, DecodeError> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map: Some(map), path }),
            Value::Null => Ok(Self { map: None, path }),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(DecodeError { path, expected: "an object", found: type_name(value) })
            }
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        self.map.and_then(|map| map.get(key)).filter(|value| !value.is_null())
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The string at `key`; empty when absent, as Go's zero value.
    pub(crate) fn string(&self, key: &str) -> Result<String, DecodeError> {
        Ok(self.optional_string(key)?.unwrap_or_default())
    }

    pub(crate) fn optional_string(&self, key: &str) -> Result<Option<String>, DecodeError> {
        self.get(key).map(|value| as_string(value, || self.path_of(key))).transpose()
    }

    pub(crate) fn bool(&self, key: &str) -> Result<bool, DecodeError> {
        match self.get(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong(key, "a boolean", other)),
        }
    }

    pub(crate) fn optional_integer(&self, key: &str) -> Result<Option<i64>, DecodeError> {
        let integer = |value: &Value| value.as_i64().ok_or_else(|| self.wrong(key, "an integer", value));
        self.get(key).map(integer).transpose()
    }

    /// The object at `key`, empty when absent.
    pub(crate) fn object(&self, key: &str) -> Result<Self, DecodeError> {
        Self::of(self.get(key).unwrap_or(&Value::Null), self.path_of(key))
    }

    pub(crate) fn optional_object(&self, key: &str) -> Result<Option<Self>, DecodeError> {
        self.get(key).map(|value| Self::of(value, self.path_of(key))).transpose()
    }

    /// The items at `key` with their paths.
    pub(crate) fn list(&self, key: &str) -> Result<Vec<(String, &'a Value)>, DecodeError> {
        let items = self.items(key)?.iter().enumerate();
        Ok(items.map(|(index, item)| (self.path_of_item(key, index), item)).collect())
    }

    pub(crate) fn objects(&self, key: &str) -> Result<Vec<Self>, DecodeError> {
        self.list(key)?.into_iter().map(|(path, item)| Self::of(item, path)).collect()
    }

    pub(crate) fn strings(&self, key: &str) -> Result<Vec<String>, DecodeError> {
        let items = self.items(key)?.iter().enumerate();
        items.map(|(index, item)| as_string(item, || self.path_of_item(key, index))).collect()
    }

    fn items(&self, key: &str) -> Result<&'a [Value], DecodeError> {
        match self.get(key) {
            None => Ok(&[]),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.wrong(key, "a list", other)),
        }
    }

    fn path_of_item(&self, key: &str, index: usize) -> String {
        format!("{}[{index}]", self.path_of(key))
    }

    /// A map of strings at `key`, in document order.
    pub(crate) fn string_map(&self, key: &str) -> Result<Vec<(String, String)>, DecodeError> {
        let inner = self.object(key)?;
        inner.map.into_iter().flatten().map(|(name, _)| Ok((name.clone(), inner.string(name)?))).collect()
    }

    /// The keys present, in document order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a String> + use<'a> {
        self.map.into_iter().flat_map(Map::keys)
    }

    /// Returns the paths of fields that are not in `known`.
    pub(crate) fn unknown<'k>(&'k self, known: &'k [&str]) -> impl Iterator<Item = String> + 'k {
        self.keys().filter(|key| !known.contains(&key.as_str())).map(|key| self.path_of(key))
    }

    fn wrong(&self, key: &str, expected: &'static str, found: &Value) -> DecodeError {
        DecodeError { path: self.path_of(key), expected, found: type_name(found) }
    }
}

/// Rejects the first field that is not in `known`.
pub(crate) fn known(fields: &Fields<'_>, known: &[&str]) -> Result<(), FieldsError> {
    match fields.unknown(known).next() {
        Some(path) => Err(wrong(path, format!("is not a field here; these are: {}", known.join(", ")))),
        None => Ok(()),
    }
}

pub(crate) fn wrong(path: impl Into<String>, problem: impl Into<String>) -> FieldsError {
    FieldsError::Value { path: path.into(), problem: problem.into() }
}

fn as_string(value: &Value, path: impl FnOnce() -> String) -> Result<String, DecodeError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Null => Ok(String::new()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Err(DecodeError { path: path(), expected: "a string", found: type_name(value) })
        }
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
