//! Reads and writes the `fieldsV1` format: a field set as JSON, in which every element of a path is a member name.
//!
//! ```text
//! f:NAME      a field                 k:{"name":"main"}   an item by its key fields
//! v:VALUE     an item by its value    i:INDEX             an item by its place
//! .           the element itself, where something lies below it as well
//! ```

use admit_apimachinery::weight;
use serde_json::{Map, Value};

use super::element::{Element, Scalar, json_text};
use super::parts::Parts;
use super::set::FieldSet;
use crate::interrupt;

/// The member that represents the element itself.
const ITSELF: &str = ".";

/// The prefix of an element, which gives its kind; all have this length.
const KIND: &str = "f:";

/// Why a field set cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    #[error("a field set is an object of objects, not `{0}`")]
    NotAnObject(String),
    #[error("`{0}` is no element of a path: {1}")]
    Element(String, &'static str),
}

/// Writes the set as the value of `fieldsV1`. The set is consumed on the way, so that the two are not in memory at once.
#[must_use]
pub fn to_json(set: FieldSet) -> Value {
    Value::Object(contents(set, false))
}

/// Reads the value of `fieldsV1`. Elements of unknown kinds are skipped, with everything below them.
///
/// # Errors
/// Describes the first part that is not in the format of a field set.
pub fn from_json(fields: &Value) -> Result<FieldSet, CodecError> {
    Ok(read(fields)?.1)
}

/// Writes the members of a set, after the `.` of the element itself if that is a member and has paths below it.
fn contents(set: FieldSet, itself: bool) -> Map<String, Value> {
    let itself = itself && !set.is_empty();
    let entries = set.into_entries();
    let mut written = Map::with_capacity(entries.len() + usize::from(itself));
    if itself {
        written.insert(ITSELF.to_owned(), Value::Object(Map::new()));
    }
    for (element, member, below) in entries {
        interrupt::checkpoint();
        written.insert(element_text(&element), Value::Object(contents(below, member)));
    }
    written
}

/// Estimates the memory of the result of [`to_json`] in bytes.
#[must_use]
pub fn weight(set: &FieldSet) -> usize {
    if set.is_empty() {
        return 0;
    }
    let entry = |(element, member, below): (&Element, bool, &FieldSet)| {
        let itself = if member && !below.is_empty() { weight::of_member(ITSELF) } else { 0 };
        let length = weight::of_text(element.len() + KIND.len());
        weight::of_member("").saturating_add(length).saturating_add(itself).saturating_add(weight(below))
    };
    set.entries().map(entry).fold(weight::of_map(), usize::saturating_add)
}

/// Returns whether the element of this value is a member, and the paths below it.
fn read(fields: &Value) -> Result<(bool, FieldSet), CodecError> {
    let members = match fields {
        Value::Object(members) => members,
        Value::Null => return Ok((true, FieldSet::default())),
        other => return Err(CodecError::NotAnObject(other.to_string())),
    };
    let mut parts = Parts::with_capacity(members.len());
    for (name, value) in members.iter().filter(|(name, _)| *name != ITSELF) {
        if let Some(element) = element(name)? {
            let (member, below) = read(value)?;
            parts.join(element, member, below);
        }
    }
    let set = parts.into_set();
    Ok((members.contains_key(ITSELF) || set.is_empty(), set))
}

fn element_text(element: &Element) -> String {
    match element {
        Element::Field(name) => format!("f:{name}"),
        Element::Key(fields) => {
            let pairs: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}:{}", json_text(name), value.to_json()))
                .collect();
            format!("k:{{{}}}", pairs.join(","))
        }
        Element::Item(value) => format!("v:{}", value.to_json()),
        Element::Index(index) => format!("i:{index}"),
    }
}

fn element(text: &str) -> Result<Option<Element>, CodecError> {
    let wrong = |why| CodecError::Element(text.to_owned(), why);
    let (kind, rest) = text.split_once(':').ok_or_else(|| wrong("missing colon"))?;
    let json = || serde_json::from_str::<Value>(rest).map_err(|_| wrong("no JSON behind the colon"));
    Ok(match kind {
        "f" => Some(Element::Field(rest.to_owned())),
        "v" => Some(Element::Item(Scalar::of(&json()?))),
        "i" => Some(Element::Index(rest.parse().map_err(|_| wrong("no number behind the colon"))?)),
        "k" => {
            let Value::Object(fields) = json()? else { return Err(wrong("keys are an object")) };
            let mut key: Vec<(String, Scalar)> =
                fields.iter().map(|(name, value)| (name.clone(), Scalar::of(value))).collect();
            key.sort();
            Some(Element::Key(key))
        }
        _ if kind.len() == 1 => None,
        _ => return Err(wrong("missing colon")),
    })
}
