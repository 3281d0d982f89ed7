//! Validates defaults at registration: each must be pruned, have valid metadata, and satisfy its schema and the rules
//! of its node.

use admit_apimachinery::field_error::{FieldError, aggregate};
use admit_apimachinery::findings::FieldErrors;
use serde_json::{Map, Value};

use crate::crd::rules::{Limits, RuleTree, Subject};
use crate::deadline::Pace;
use crate::read::path::Path;
use crate::schema::metadata::{self, Malformed};
use crate::schema::prune::{is_meta_field, prune_as};
use crate::schema::validate::validate_default;
use crate::schema::{AdditionalProperties, Schema};

/// All mistakes; unknown fields count only where defaults have to be `pruned`.
pub(super) fn validate(schema: &Schema, pruned: bool, path: &Path<'_>) -> FieldErrors {
    let mut walk = Walk { errors: FieldErrors::default(), pruned, budget: Limits::default().budget };
    walk.node(schema, path, &At { resource: schema, inside_metadata: false, steps: Vec::new() }, true);
    walk.errors
}

/// Whether no default of a node and its descendants has unknown fields.
pub(super) fn are_pruned(schema: &Schema, is_resource: bool) -> bool {
    let known = schema.default.as_ref().is_none_or(|default| is_pruned(default, schema, is_resource));
    // Metadata is read by its own types.
    let properties = schema
        .properties
        .iter()
        .filter(|(name, _)| !((is_resource || schema.embedded_resource) && is_meta_field(name)));
    let below = properties.map(|(_, property)| property).chain(schema.items.as_deref());
    known && below.into_iter().all(|child| are_pruned(child, child.embedded_resource))
}

fn is_pruned(default: &Value, schema: &Schema, is_resource: bool) -> bool {
    let mut pruned = default.clone();
    prune_as(&mut pruned, schema, is_resource, &Pace::default());
    pruned == *default
}

struct Walk {
    errors: FieldErrors,
    pruned: bool,
    /// What the rules of the nodes may still cost together; negative when they cost more, which ends the walk.
    budget: i64,
}

/// The position of a node in the enclosing resource.
struct At<'s> {
    resource: &'s Schema,
    inside_metadata: bool,
    /// The path from the resource's root: a property name, or `None` for an item.
    steps: Vec<Option<&'s str>>,
}

impl Walk {
    fn node<'s>(&mut self, schema: &'s Schema, path: &Path<'_>, at: &At<'s>, root: bool) {
        if self.budget < 0 {
            return;
        }
        let own = At { resource: schema, inside_metadata: false, steps: Vec::new() };
        let at = if schema.embedded_resource { &own } else { at };
        if let Some(default) = &schema.default {
            let is_resource = root || schema.embedded_resource;
            self.default(default, schema, is_resource, &path.child("default"), at);
        }
        let below = |step: Option<&'s str>| {
            let inside = (root || schema.embedded_resource) && step.is_some_and(is_meta_field);
            let mut steps = at.steps.clone();
            steps.push(step);
            At { resource: at.resource, inside_metadata: at.inside_metadata || inside, steps }
        };
        if let Some(items) = &schema.items {
            self.node(items, &path.child("items"), &below(None), false);
        }
        let properties = path.child("properties");
        for (name, property) in &schema.properties {
            self.node(property, &properties.key(name), &below(Some(name)), false);
        }
    }

    fn default(&mut self, default: &Value, schema: &Schema, is_resource: bool, path: &Path<'_>, at: &At<'_>) {
        if self.pruned && !at.inside_metadata && !is_pruned(default, schema, is_resource) {
            self.errors.push(FieldError::invalid(path, default, "must not have unknown fields"));
        }
        let before = self.errors.count();
        if at.inside_metadata {
            self.inside_metadata(default, path, at);
        } else {
            self.outside_metadata(default, schema, is_resource, path);
        }
        if self.errors.count() == before {
            let schema = without_int_or_string(schema);
            self.errors.extend(validate_default(default, &schema, path));
        }
        if self.errors.count() == before {
            self.rules(default, schema, is_resource, path);
        }
    }

    /// A default may be there from the beginning as well as come in place of itself; the dearer of the two is paid.
    fn rules(&mut self, default: &Value, schema: &Schema, is_resource: bool, path: &Path<'_>) {
        let rules = RuleTree::compile(schema, is_resource);
        if rules.is_empty() {
            return;
        }
        let limits = Limits { budget: self.budget, ..Limits::default() };
        let subject =
            Subject { schema, path, new: default, old: Some(default), ratchet: false, recorder: None };
        let updated = rules.evaluate(&subject, &limits);
        self.budget = updated.remaining;
        if updated.errors.is_empty() {
            let created = rules.evaluate(&Subject { old: None, ..subject }, &limits);
            self.errors.extend(created.errors);
            self.budget = self.budget.min(created.remaining);
        }
        self.errors.extend(updated.errors);
    }

    /// The metadata that the default would make is checked as a whole.
    fn inside_metadata(&mut self, default: &Value, path: &Path<'_>, at: &At<'_>) {
        let mut object = at.steps.iter().rev().fold(default.clone(), |inner, step| match step {
            Some(name) => Value::Object(Map::from_iter([((*name).to_owned(), inner)])),
            None => Value::Array(vec![inner]),
        });
        if let Value::Object(map) = &mut object {
            for (key, value) in [("kind", "Validation"), ("apiVersion", "validation/v1")] {
                map.entry(key).or_insert_with(|| value.into());
            }
        }
        let pace = Pace::default();
        let problem = match metadata::coerce(&mut object, at.resource, true, Malformed::Refuse, &pace) {
            Err(error) => Some(error.to_string()),
            Ok(_) => {
                let mut errors = FieldErrors::default();
                metadata::validate(&object, at.resource, &Path::Nil, true, &mut errors, &pace);
                (!errors.is_empty()).then(|| aggregate(&errors.into_vec()))
            }
        };
        if let Some(problem) = problem {
            self.errors.push(FieldError::invalid(
                path,
                default,
                format!("must result in valid metadata: {problem}"),
            ));
        }
    }

    fn outside_metadata(&mut self, default: &Value, schema: &Schema, is_resource: bool, path: &Path<'_>) {
        let mut coerced = default.clone();
        let pace = Pace::default();
        match metadata::coerce(&mut coerced, schema, is_resource, Malformed::Refuse, &pace) {
            Err(error) => {
                let field =
                    if error.field == "<nil>" { path.to_string() } else { format!("{path}.{}", error.field) };
                self.errors.push(FieldError { field, ..*error });
            }
            Ok(_) => metadata::validate(&coerced, schema, path, is_resource, &mut self.errors, &pace),
        }
    }
}

/// The schema as defaults are checked against it: the two types of an int-or-string are not enforced.
fn without_int_or_string(schema: &Schema) -> Schema {
    let mut schema = schema.clone();
    loosen(&mut schema);
    schema
}

fn loosen(schema: &mut Schema) {
    schema.int_or_string = false;
    schema.properties.values_mut().for_each(loosen);
    if let Some(items) = &mut schema.items {
        loosen(items);
    }
    if let Some(AdditionalProperties::Schema(entry)) = &mut schema.additional_properties {
        loosen(entry);
    }
}
