//! Validates a value against its type.

use std::collections::BTreeSet;
use std::fmt;

use admit_apimachinery::go;
use admit_apimachinery::go::json::type_name;
use serde_json::Value;

use super::super::path::Element;
use super::super::schema::{Form, List, ListRelation, Map, ScalarKind, Schema, TypeId};
use super::{Typing, item};
use crate::interrupt;

/// Whether a list may have duplicate items. Stored objects may: older validation allowed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    Allowed,
    Refused,
}

/// The type errors of a value, in the API server's words; empty when it fits the schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems {
    told: Vec<String>,
    /// The number of errors beyond the limit.
    more: usize,
}

/// Most bytes of errors that are listed: each has a path, and a body could have millions with a long one.
const MOST_TOLD: usize = 256 << 10;

impl Problems {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told.is_empty() && self.more == 0
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.told.as_slice() {
            [only] if self.more == 0 => f.write_str(only),
            several => {
                f.write_str("errors:")?;
                several.iter().try_for_each(|problem| write!(f, "\n  {problem}"))?;
                match self.more {
                    0 => Ok(()),
                    more => write!(f, "\n  and {more} more"),
                }
            }
        }
    }
}

impl Typing<'_> {
    #[must_use]
    pub fn problems(&self, value: &Value, duplicates: Duplicates) -> Problems {
        let found = Problems::default();
        let mut walk = Walk { schema: self.schema, duplicates, at: String::new(), found, bytes: 0 };
        walk.value(self.root, value);
        walk.found
    }
}

struct Walk<'s> {
    schema: &'s Schema,
    duplicates: Duplicates,
    at: String,
    found: Problems,
    /// The length of the listed errors.
    bytes: usize,
}

impl Walk<'_> {
    fn value(&mut self, kind: TypeId, value: &Value) {
        interrupt::checkpoint();
        let schema = self.schema;
        match schema.form(kind, Some(value)) {
            _ if value.is_null() => {}
            Some(Form::Map(map)) => self.map(map, value),
            Some(Form::List(list)) => self.list(list, value),
            Some(Form::Scalar(scalar)) => self.scalar(scalar, value),
            None => self.report("schema error: invalid atom"),
        }
    }

    fn map(&mut self, map: &Map, value: &Value) {
        let Value::Object(members) = value else {
            self.report(&format!("expected map, got &{{{}}}", go::value::plain(value)));
            return;
        };
        for (name, member) in members {
            let length = self.enter(&Element::Field(name.clone()));
            match map.member(name) {
                Some((kind, _)) => self.value(kind, member),
                // Members after an undeclared one are not checked.
                None => {
                    self.report("field not declared in schema");
                    self.at.truncate(length);
                    return;
                }
            }
            self.at.truncate(length);
        }
    }

    fn list(&mut self, list: &List, value: &Value) {
        let Value::Array(items) = value else {
            self.report(&format!("expected list, got &{{{}}}", go::value::plain(value)));
            return;
        };
        let mut seen = BTreeSet::new();
        for (index, found) in items.iter().enumerate() {
            let element = if list.relation == ListRelation::Atomic {
                Element::Index(index)
            } else {
                match item::element(self.schema, list, found) {
                    Ok(element) => element,
                    Err(why) => {
                        self.report(&format!("element {index}: {why}"));
                        return;
                    }
                }
            };
            // Indices are unique, and where duplicates are allowed they are not tracked.
            let looked_at = list.relation != ListRelation::Atomic && self.duplicates == Duplicates::Refused;
            if looked_at && !seen.insert(element.clone()) {
                self.report(&format!("duplicate entries for key {element}"));
            }
            let length = self.enter(&element);
            self.value(list.element, found);
            self.at.truncate(length);
        }
    }

    fn scalar(&mut self, kind: ScalarKind, value: &Value) {
        let value_text = || format!("&{{{}}}", go::value::plain(value));
        match (kind, value) {
            (ScalarKind::Numeric, Value::Number(_))
            | (ScalarKind::String, Value::String(_))
            | (ScalarKind::Boolean, Value::Bool(_))
            | (ScalarKind::Untyped, Value::Number(_) | Value::String(_) | Value::Bool(_)) => {}
            (ScalarKind::Numeric, _) => {
                self.report(&format!("expected numeric (int or float), got {}", type_name(value)));
            }
            (ScalarKind::String, _) => {
                let source = go::value::source(value);
                self.report(&format!("expected string, got &value.valueUnstructured{{Value:{source}}}"));
            }
            (ScalarKind::Boolean, _) => self.report(&format!("expected boolean, got {}", value_text())),
            (ScalarKind::Untyped, _) => self.report(&format!("expected any scalar, got {}", value_text())),
        }
    }

    fn enter(&mut self, element: &Element) -> usize {
        let length = self.at.len();
        self.at.push_str(&element.to_string());
        length
    }

    fn report(&mut self, why: &str) {
        // The first is always listed, whatever its length.
        self.bytes += self.at.len() + why.len();
        if self.bytes > MOST_TOLD && !self.found.is_empty() {
            self.found.more += 1;
            return;
        }
        let problem = if self.at.is_empty() { why.to_owned() } else { format!("{}: {why}", self.at) };
        self.found.told.push(problem);
    }
}
