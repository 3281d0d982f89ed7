//! Defines one step of a path into an object, its order, and its form in error messages.

use std::cmp::Ordering;
use std::fmt;

use admit_apimachinery::go;
use serde_json::{Number, Value};

/// A step from a value to one inside it. The order of the variants is their order in field sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Element {
    /// A member of a map or struct.
    Field(String),
    /// The item of a list that has these values in its key fields, which are sorted by name.
    Key(Vec<(String, Scalar)>),
    /// The item of a set that has this value.
    Item(Scalar),
    /// The item of a list at this index.
    Index(usize),
}

impl Element {
    /// Estimates the length of its text.
    pub(super) fn len(&self) -> usize {
        let scalar = |value: &Scalar| match value {
            Scalar::String(text) | Scalar::Other(text) => text.len() + 2,
            Scalar::Number(_) | Scalar::Bool(_) => 8,
        };
        match self {
            Self::Field(name) => name.len() + 1,
            Self::Key(fields) => {
                fields.iter().map(|(name, value)| name.len() + 2 + scalar(value)).sum::<usize>() + 1
            }
            Self::Item(value) => scalar(value) + 3,
            Self::Index(_) => 8,
        }
    }
}

/// A path from the object's root; the root itself is the empty path.
pub type Path = Vec<Element>;

/// A value that identifies an item. Numbers are equal when they mean the same number, however they are written.
#[derive(Clone, Debug)]
pub enum Scalar {
    Number(Number),
    String(String),
    Bool(bool),
    /// Lists, maps and null identify no item in a valid object, but stored field sets may contain them.
    Other(String),
}

impl Scalar {
    #[must_use]
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Number(number) => Self::Number(number.clone()),
            Value::String(text) => Self::String(text.clone()),
            Value::Bool(flag) => Self::Bool(*flag),
            other => Self::Other(other.to_string()),
        }
    }

    /// Formats the value as compact JSON, escaped as Go's encoder escapes it.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Self::Number(number) => match number.as_i64() {
                Some(integer) => integer.to_string(),
                None => go::float::json_iterator(float(number)),
            },
            Self::String(text) => json_text(text),
            Self::Bool(flag) => flag.to_string(),
            Self::Other(json) => json.clone(),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Number(_) => 0,
            Self::String(_) => 1,
            Self::Bool(_) => 2,
            Self::Other(_) => 3,
        }
    }
}

/// Formats a string as a JSON literal in which `<`, `>` and `&` are escaped.
pub(super) fn json_text(text: &str) -> String {
    let literal = Value::from(text).to_string();
    literal.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(two)) => match (one.as_i64(), two.as_i64()) {
                (Some(one), Some(two)) => one.cmp(&two),
                _ => float(one).total_cmp(&float(two)),
            },
            (Self::String(one), Self::String(two)) | (Self::Other(one), Self::Other(two)) => one.cmp(two),
            (Self::Bool(one), Self::Bool(two)) => one.cmp(two),
            (one, two) => one.rank().cmp(&two.rank()),
        }
    }
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or_default()
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Key(fields) => {
                let pairs: Vec<String> =
                    fields.iter().map(|(name, value)| format!("{name}={}", shown(value))).collect();
                write!(f, "[{}]", pairs.join(","))
            }
            Self::Item(value) => write!(f, "[={}]", shown(value)),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

fn shown(value: &Scalar) -> String {
    match value {
        Scalar::String(text) => go::quote(text),
        Scalar::Other(json) => match serde_json::from_str(json) {
            Ok(value) => shown_whole(&value),
            Err(_) => json.clone(),
        },
        Scalar::Number(number) => go::json::number(number),
        Scalar::Bool(flag) => flag.to_string(),
    }
}

/// Formats lists and maps as structured-merge-diff does: maps without braces.
fn shown_whole(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(shown_whole).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(members) => {
            members.iter().map(|(name, member)| format!("{name}={}", shown_whole(member))).collect()
        }
        Value::String(text) => go::quote(text),
        Value::Number(number) => go::json::number(number),
        other => other.to_string(),
    }
}

/// Formats the path: `.spec.containers[name="main"].image`.
#[must_use]
pub fn path_text(path: &[Element]) -> String {
    path.iter().map(Element::to_string).collect()
}
