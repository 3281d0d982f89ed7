//! Finds atomic values in a configuration. A policy may set none, since members that it leaves out would be lost.

use serde_json::Value;

use super::super::path::Element;
use super::super::schema::{Form, ListRelation, Schema, TypeId};
use super::Typing;

impl Typing<'_> {
    /// Returns the paths of the lists, maps and structs in `value` that are owned as a whole, outer ones first.
    #[must_use]
    pub fn atomics(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        walk(self.schema, self.root, value, &mut String::new(), &mut found);
        found
    }
}

fn walk(schema: &Schema, kind: TypeId, value: &Value, at: &mut String, found: &mut Vec<String>) {
    crate::interrupt::checkpoint();
    let length = at.len();
    match (schema.form(kind, Some(value)), value) {
        (Some(Form::Map(map)), Value::Object(members)) => {
            if map.atomic {
                found.push(at.clone());
            }
            for (name, member) in members {
                // Map members that are no declared fields are not checked, as upstream.
                let Some(field) = map.fields.get(name) else { continue };
                at.push_str(&Element::Field(name.clone()).to_string());
                walk(schema, field.kind, member, at, found);
                at.truncate(length);
            }
        }
        (Some(Form::List(list)), Value::Array(items)) => {
            if list.relation == ListRelation::Atomic {
                found.push(at.clone());
            }
            for (index, item) in items.iter().enumerate() {
                at.push_str(&Element::Index(index).to_string());
                walk(schema, list.element, item, at, found);
                at.truncate(length);
            }
        }
        _ => {}
    }
}
