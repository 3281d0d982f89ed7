//! Removes fields that the schema does not have, and reports them in the form of strict field validation:
//! `spec.items[0].colour`. `apiVersion`, `kind` and `metadata` of the root and of embedded resources are left to
//! [`super::metadata`].

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{AdditionalProperties, Schema};
use crate::deadline::Pace;
use admit_apimachinery::bounded::Paths;

/// Prunes a document whose root is a resource. Returns the removed paths, sorted and up to a limit. Ends when its
/// time is over.
pub fn prune(document: &mut Value, schema: &Schema, pace: &Pace<'_>) -> Vec<String> {
    prune_as(document, schema, true, pace)
}

/// Prunes a value that is a resource or not.
pub(crate) fn prune_as(value: &mut Value, schema: &Schema, resource: bool, pace: &Pace<'_>) -> Vec<String> {
    let mut pruner = Pruner { path: String::new(), unknown: Paths::new(), pace };
    pruner.node(value, Some(schema), schema.preserves_unknown_fields(), resource);
    let mut unknown = pruner.unknown.into_told();
    unknown.sort_unstable();
    unknown
}

pub(crate) fn is_meta_field(key: &str) -> bool {
    matches!(key, "apiVersion" | "kind" | "metadata")
}

struct Pruner<'p> {
    path: String,
    unknown: Paths,
    pace: &'p Pace<'p>,
}

impl Pruner<'_> {
    /// `keep` is true below a node that preserves unknown fields, until a declared property ends that.
    fn node(&mut self, value: &mut Value, schema: Option<&Schema>, keep: bool, resource: bool) {
        if self.pace.is_over() {
            return;
        }
        match value {
            Value::Object(map) => self.object(map, schema, keep, resource),
            Value::Array(items) => {
                let item_schema = schema.and_then(|schema| schema.items.as_deref());
                for (i, item) in items.iter_mut().enumerate() {
                    self.item(i, item, item_schema, keep);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn object(&mut self, map: &mut Map<String, Value>, schema: Option<&Schema>, keep: bool, resource: bool) {
        map.retain(|key, value| {
            if resource && is_meta_field(key) {
                return true;
            }
            let length = self.enter(key);
            let known = schema.and_then(|schema| known_child(schema, key));
            if let Some(schema) = known {
                self.child(value, schema);
            } else if !(keep || (is_meta_field(key) && length == 0)) {
                self.unknown.note(|| self.path.clone());
            }
            self.path.truncate(length);
            keep || known.is_some()
        });
    }

    fn item(&mut self, index: usize, item: &mut Value, schema: Option<&Schema>, keep: bool) {
        let length = self.path.len();
        // Writing to a String cannot fail.
        let _ = write!(self.path, "[{index}]");
        match schema {
            // Items stay in their list's mode: only properties end the keeping.
            Some(schema) if keep => self.node(item, Some(schema), true, schema.embedded_resource),
            None if keep => {}
            schema => self.child(item, schema),
        }
        self.path.truncate(length);
    }

    fn child(&mut self, value: &mut Value, schema: Option<&Schema>) {
        let keep = schema.is_some_and(Schema::preserves_unknown_fields);
        self.node(value, schema, keep, schema.is_some_and(|schema| schema.embedded_resource));
    }

    fn enter(&mut self, key: &str) -> usize {
        let length = self.path.len();
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(key);
        length
    }
}

/// Returns the schema of a known key; the inner None means that the key is allowed without one.
fn known_child<'s>(schema: &'s Schema, key: &str) -> Option<Option<&'s Schema>> {
    if let Some(property) = schema.properties.get(key) {
        return Some(Some(property));
    }
    match &schema.additional_properties {
        Some(AdditionalProperties::Schema(schema)) => Some(Some(schema)),
        Some(AdditionalProperties::Allowed(_)) => Some(None),
        None => None,
    }
}
