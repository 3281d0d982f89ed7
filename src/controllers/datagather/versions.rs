//! Converts DataGathers and InsightsDataGathers between API versions. v1alpha1 has words where v1alpha2 and v1, which
//! are alike, have lists and modes; the result of a run is a word there and the condition `Progressing` here.
//!
//! These are pure functions of an object as JSON; they change only `spec` and `status`. Data for which the other
//! version has no field is lost, as listed in `deploy/README.md`: fractions of a second of a duration, whether
//! somebody ignores a finding, and which of its two names a list had. If something would be lost that must not be (that
//! data is obfuscated, or not gathered), the conversion fails.

mod configuration;
mod spec;
mod status;

use serde_json::{Map, Value};

/// A kind with its versions, and the conversion between them.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub group: &'static str,
    pub kind: &'static str,
    pub convert: Convert,
}

/// Converts an object between versions; the caller sets `apiVersion`.
pub type Convert = fn(&mut Value, Shape, Shape) -> Result<(), Inconvertible>;

pub const VERSIONS: [(&str, Shape); 3] =
    [("v1alpha1", Shape::Words), ("v1alpha2", Shape::Lists), ("v1", Shape::Lists)];

pub const DATA_GATHER: Kind =
    Kind { group: "insights.openshift.io", kind: "DataGather", convert: data_gather };

pub const INSIGHTS_DATA_GATHER: Kind =
    Kind { group: "config.openshift.io", kind: "InsightsDataGather", convert: configuration::convert };

/// The form of a version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// v1alpha1
    Words,
    /// v1alpha2 and v1
    Lists,
}

/// Why an object cannot be converted to the other version.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct Inconvertible {
    path: String,
    why: String,
}

impl Inconvertible {
    fn new(path: &str, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into() }
    }
}

/// Returns the form of a version; None for an unknown one.
pub fn shape_of(version: &str) -> Option<Shape> {
    VERSIONS.into_iter().find_map(|(known, shape)| (known == version).then_some(shape))
}

fn data_gather(object: &mut Value, from: Shape, to: Shape) -> Result<(), Inconvertible> {
    if from == to {
        return Ok(());
    }
    let made = text(object.pointer("/metadata/creationTimestamp")).to_owned();
    if let Some(spec) = member(object, "spec")? {
        match to {
            Shape::Lists => spec::to_lists(spec, "spec")?,
            Shape::Words => spec::to_words(spec, "spec")?,
        }
    }
    let Some(status) = member(object, "status")? else { return Ok(()) };
    match to {
        Shape::Lists => status::to_lists(status, &made)?,
        Shape::Words => status::to_words(status)?,
    }
    if status.is_empty()
        && to == Shape::Lists
        && let Value::Object(members) = object
    {
        // An empty status becomes a missing one.
        members.shift_remove("status");
    }
    Ok(())
}

/// Returns the object `name`; None if it is absent or null.
fn member<'v>(
    object: &'v mut Value,
    name: &str,
) -> Result<Option<&'v mut Map<String, Value>>, Inconvertible> {
    match object.get_mut(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Object(members)) => Ok(Some(members)),
        Some(_) => Err(Inconvertible::new(name, "it is no object")),
    }
}

/// The most items of a list: a hundred times what the CRDs allow, to limit the work for malicious requests.
const MOST_ITEMS: usize = 10_000;

/// Removes the list `name` from `members`; empty if it is absent or null.
fn taken_list(members: &mut Map<String, Value>, name: &str, path: &str) -> Result<Vec<Value>, Inconvertible> {
    match members.shift_remove(name) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) if items.len() <= MOST_ITEMS => Ok(items),
        Some(Value::Array(_)) => {
            let why = format!("it has more than {MOST_ITEMS} items");
            Err(Inconvertible::new(&format!("{path}.{name}"), why))
        }
        Some(_) => Err(Inconvertible::new(&format!("{path}.{name}"), "it is no list")),
    }
}

/// Returns the string; empty if there is none.
fn text(value: Option<&Value>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}

fn put_unless_empty(members: &mut Map<String, Value>, name: &str, items: Vec<Value>) {
    if !items.is_empty() {
        members.insert(name.to_owned(), Value::Array(items));
    }
}

#[cfg(test)]
mod tests;
