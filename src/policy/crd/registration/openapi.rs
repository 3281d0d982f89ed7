//! Rejects what a custom resource's schema may not contain although OpenAPI allows it, node by node, including
//! logical keywords (apiextensions `ValidateCustomResourceDefinitionOpenAPISchema`).

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;

use super::demands::Demands;
use super::node::{Context, Node};
use super::{lists, rules};
use crate::read::path::Path;
use crate::schema::{AdditionalProperties, ListType, Schema, SchemaType, Unsupported};

/// Mistakes of the schema and mistakes of its rules: while there are some of the first below a node, its rules are not
/// compiled.
#[derive(Default)]
pub(super) struct Found {
    pub(super) schema: FieldErrors,
    pub(super) rules: FieldErrors,
}

impl Found {
    fn append(&mut self, other: Self) {
        self.schema.extend(other.schema);
        self.rules.extend(other.rules);
    }
}

impl Node<'_> {
    pub(super) fn validate(&self, cx: &mut Context<'_>) -> Found {
        let mut found = Found::default();
        self.keywords(cx.demands, &mut found.schema);
        self.additional_properties(&mut found, cx);
        self.properties(&mut found, cx);
        self.logical(&mut found, cx);
        self.within_unsupported(&mut found, cx);
        self.items(&mut found, cx);
        if self.schema.preserve_unknown_fields == Some(false) {
            let at = self.path.child("x-kubernetes-preserve-unknown-fields");
            found.schema.push(FieldError::invalid(at, false, "must be true or undefined"));
        }
        lists::validate(self, cx.demands, &mut found.schema);
        rules::texts(self, &mut found.schema);
        if found.schema.is_empty() {
            found.rules.extend(rules::compile(self, cx));
        }
        found
    }

    fn keywords(&self, demands: &Demands, errors: &mut FieldErrors) {
        const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
        if let Some(SchemaType::Other(text)) = &self.schema.schema_type {
            if demands.types {
                errors.push(FieldError::not_supported(self.path.child("type"), &**text, TYPES));
            }
            if &**text == "null" {
                let detail = "type cannot be set to null, use nullable as an alternative";
                errors.push(FieldError::forbidden(self.path.child("type"), detail));
            }
        }
        if let Some(reason) = self.no_default.filter(|_| self.schema.default.is_some()) {
            errors
                .push(FieldError::forbidden(self.path.child("default"), format!("must not be set {reason}")));
        }
        for keyword in &self.schema.unsupported {
            let (name, detail) = match keyword {
                Unsupported::Id => ("id", "id is not supported"),
                Unsupported::AdditionalItems => ("additionalItems", "additionalItems is not supported"),
                Unsupported::PatternProperties => ("patternProperties", "patternProperties is not supported"),
                Unsupported::Definitions(_) => ("definitions", "definitions is not supported"),
                Unsupported::Dependencies(_) => ("dependencies", "dependencies is not supported"),
                Unsupported::Ref => ("$ref", "$ref is not supported"),
                Unsupported::ItemsList(..) => ("items", "items must be a schema object and not an array"),
                Unsupported::MetaSchema => continue,
            };
            errors.push(FieldError::forbidden(self.path.child(name), detail));
        }
        if self.inside_metadata && self.schema.embedded_resource {
            let at = self.path.child("x-kubernetes-embedded-resource");
            errors.push(FieldError::forbidden(at, "must not be used inside of resource meta"));
        }
        if self.schema.checks.unique_items {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            errors.push(FieldError::forbidden(self.path.child("uniqueItems"), detail));
        }
    }

    fn additional_properties(&self, found: &mut Found, cx: &mut Context<'_>) {
        let Some(additional) = &self.schema.additional_properties else { return };
        let at = self.path.child("additionalProperties");
        if !self.schema.properties.is_empty() && *additional != AdditionalProperties::Allowed(true) {
            found
                .schema
                .push(FieldError::forbidden(at, "additionalProperties and properties are mutual exclusive"));
        }
        if let AdditionalProperties::Schema(schema) = additional {
            let mut child = self.below(schema, &at);
            child.typing = self.typing.of_element(self);
            if self.inside_metadata {
                child.no_default = Some("inside additionalProperties applying to object metadata");
            }
            found.append(child.validate(cx));
        }
    }

    fn properties(&self, found: &mut Found, cx: &mut Context<'_>) {
        let at = self.path.child("properties");
        for (name, property) in &self.schema.properties {
            let path = at.key(name);
            let reason = format!("in top-level {name}");
            let mut child = self.below(property, &path);
            if !self.schema.map_is_correlatable() {
                child.uncorrelatable = self.uncorrelatable.or(Some(self.path));
            }
            if self.is_resource_root() && matches!(&**name, "metadata" | "kind" | "apiVersion") {
                child.inside_metadata = true;
                if self.root {
                    child.no_default = Some(&reason);
                }
            }
            found.append(child.validate(cx));
        }
    }

    /// Rules under logical keywords are rejected elsewhere, so nothing is compiled here.
    fn logical(&self, found: &mut Found, cx: &mut Context<'_>) {
        let checks = &self.schema.checks;
        if let Some(not) = &checks.not {
            let path = self.path.child("not");
            found.append(Node { scope: None, ..self.below(not, &path) }.validate(cx));
        }
        for (keyword, parts) in
            [("allOf", &checks.all_of), ("oneOf", &checks.one_of), ("anyOf", &checks.any_of)]
        {
            let at = self.path.child(keyword);
            for (i, part) in parts.iter().enumerate() {
                let path = at.index(i);
                found.append(Node { scope: None, ..self.below(part, &path) }.validate(cx));
            }
        }
    }

    /// Errors are reported even where a schema is not allowed at all.
    fn within_unsupported(&self, found: &mut Found, cx: &mut Context<'_>) {
        let mut validate = |schema: &Schema, path: &Path<'_>| {
            found.append(Node { scope: None, ..self.below(schema, path) }.validate(cx));
        };
        for keyword in &self.schema.unsupported {
            let (name, schemas) = match keyword {
                Unsupported::Definitions(schemas) => ("definitions", schemas),
                Unsupported::Dependencies(schemas) => ("dependencies", schemas),
                Unsupported::ItemsList(schemas, _) => {
                    let at = self.path.child("items");
                    schemas.iter().enumerate().for_each(|(i, schema)| validate(schema, &at.index(i)));
                    continue;
                }
                _ => continue,
            };
            let at = self.path.child(name);
            schemas.iter().for_each(|(name, schema)| validate(schema, &at.key(name)));
        }
    }

    fn items(&self, found: &mut Found, cx: &mut Context<'_>) {
        let Some(items) = &self.schema.items else { return };
        let path = self.path.child("items");
        let mut child = self.below(items, &path);
        child.typing = self.typing.of_element(self);
        // Items of other lists cannot be correlated.
        if self.schema.list_type != Some(ListType::Map) {
            child.uncorrelatable = self.uncorrelatable.or(Some(self.path));
        }
        found.append(child.validate(cx));
    }
}
