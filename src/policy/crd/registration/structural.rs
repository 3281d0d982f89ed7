//! Checks that a schema is structural: every field has one type, given outside of `allOf`/`anyOf`/`oneOf`/`not`, and inside of these
//! are only value validations (apiextensions `pkg/apiserver/schema/{validation,complete}.go`).

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;

use crate::read::path::Path;
use crate::schema::{AdditionalProperties, Checks, Schema, SchemaType};

/// Returns all violations, sorted by their text.
pub(super) fn validate(schema: &Schema, path: &Path<'_>) -> FieldErrors {
    let mut walk = Walk { errors: FieldErrors::default() };
    walk.invariants(schema, Level::Root, path);
    walk.checks_complete(&schema.checks, schema, path, path);
    walk.errors.sort();
    walk.errors
}

/// Whether a schema is structural.
pub(super) fn holds(schema: &Schema) -> bool {
    !has_unsupported(schema) && validate(schema, &Path::Nil).is_empty()
}

pub(super) fn has_unsupported(schema: &Schema) -> bool {
    !schema.unsupported.is_empty()
        || schema.preserve_unknown_fields == Some(false)
        || schema.children().any(has_unsupported)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

struct Walk {
    errors: FieldErrors,
}

impl Walk {
    fn invariants(&mut self, schema: &Schema, level: Level, path: &Path<'_>) {
        if let Some(items) = &schema.items {
            self.invariants(items, Level::Item, &path.child("items"));
        } else if schema.is_type(&SchemaType::Array) {
            self.required(&path.child("items"), "must be specified");
        }
        let properties = path.child("properties");
        for (name, property) in &schema.properties {
            self.invariants(property, Level::Field, &properties.key(name));
        }
        if let Some(additional) = &schema.additional_properties {
            let at = path.child("additionalProperties");
            if level == Level::Root {
                self.forbidden(&at, "must not be used at the root");
            }
            if let AdditionalProperties::Schema(entry) = additional {
                self.invariants(entry, Level::Field, &at);
            }
            if schema.embedded_resource {
                self.forbidden(&at, "must not be used if x-kubernetes-embedded-resource is set");
            }
        }
        self.extensions(schema, path);
        self.value_checks(&schema.checks, IntOrStringForm::of(schema), path);
        self.node_type(schema, level, path);
        self.resource(schema, level, path);
    }

    fn extensions(&mut self, schema: &Schema, path: &Path<'_>) {
        const DETAIL: &str = "must be false if x-kubernetes-int-or-string is true";
        if schema.int_or_string && schema.preserves_unknown_fields() {
            self.errors.push(FieldError::invalid(
                path.child("x-kubernetes-preserve-unknown-fields"),
                true,
                DETAIL,
            ));
        }
        if schema.int_or_string && schema.embedded_resource {
            self.errors.push(FieldError::invalid(path.child("x-kubernetes-embedded-resource"), true, DETAIL));
        }
    }

    fn node_type(&mut self, schema: &Schema, level: Level, path: &Path<'_>) {
        const EMBEDDED: &str = "must be object if x-kubernetes-embedded-resource is true";
        let at = path.child("type");
        match &schema.schema_type {
            Some(SchemaType::Object) => {}
            Some(other) => {
                if schema.embedded_resource {
                    self.errors.push(FieldError::invalid(at, other.as_str(), EMBEDDED));
                }
                if level == Level::Root {
                    self.errors.push(FieldError::invalid(at, other.as_str(), "must be object at the root"));
                }
            }
            None if schema.embedded_resource => self.required(&at, EMBEDDED),
            None if schema.int_or_string || schema.preserves_unknown_fields() => {}
            None => self.required(
                &at,
                match level {
                    Level::Root => "must not be empty at the root",
                    Level::Item => "must not be empty for specified array items",
                    Level::Field => "must not be empty for specified object fields",
                },
            ),
        }
    }

    fn resource(&mut self, schema: &Schema, level: Level, path: &Path<'_>) {
        let is_resource = level == Level::Root || schema.embedded_resource;
        let properties = path.child("properties");
        for name in ["kind", "apiVersion"] {
            if let Some(property) = schema.properties.get(name).filter(|_| is_resource)
                && !property.is_type(&SchemaType::String)
            {
                let at = properties.key(name);
                self.errors.push(FieldError::invalid(
                    at.child("type"),
                    property.type_text(),
                    "must be string",
                ));
            }
        }
        if let Some(metadata) = schema.properties.get("metadata") {
            let at = properties.key("metadata");
            if is_resource && !metadata.is_type(&SchemaType::Object) {
                self.errors.push(FieldError::invalid(
                    at.child("type"),
                    metadata.type_text(),
                    "must be object",
                ));
            }
            if level == Level::Root && !restricts_names_only(metadata) {
                self.forbidden(
                    &at,
                    "must not specify anything other than name and generateName, but metadata is implicitly specified",
                );
            }
        }
        if schema.embedded_resource && !schema.preserves_unknown_fields() && schema.properties.is_empty() {
            self.required(
                &properties,
                "must not be empty if x-kubernetes-embedded-resource is true without \
                 x-kubernetes-preserve-unknown-fields",
            );
        }
    }

    fn value_checks(&mut self, checks: &Checks, form: IntOrStringForm, path: &Path<'_>) {
        let groups = [("anyOf", &checks.any_of), ("allOf", &checks.all_of), ("oneOf", &checks.one_of)];
        for (keyword, parts) in groups {
            if keyword == "anyOf" && form == IntOrStringForm::AnyOf {
                continue;
            }
            let at = path.child(keyword);
            for (i, part) in parts.iter().enumerate() {
                let spared = keyword == "allOf" && i == 0 && form == IntOrStringForm::FirstOfAllOf;
                let inner = if spared { IntOrStringForm::AnyOf } else { IntOrStringForm::None };
                self.nested(part, inner, &at.index(i));
            }
        }
        if let Some(not) = &checks.not {
            self.nested(not, IntOrStringForm::None, &path.child("not"));
        }
        if let Some(pattern) = &checks.pattern
            && let Some(error) = pattern.error()
        {
            let detail = format!("must be a valid regular expression, but isn't: {error}");
            self.errors.push(FieldError::invalid(path.child("pattern"), pattern.text(), detail));
        }
    }

    /// A schema under a logical keyword: it may check values and nothing else.
    fn nested(&mut self, schema: &Schema, form: IntOrStringForm, path: &Path<'_>) {
        self.value_checks(&schema.checks, form, path);
        if let Some(items) = &schema.items {
            self.nested(items, IntOrStringForm::None, &path.child("items"));
        }
        let properties = path.child("properties");
        for (name, property) in &schema.properties {
            self.nested(property, IntOrStringForm::None, &properties.key(name));
        }
        let additional = match &schema.additional_properties {
            None | Some(AdditionalProperties::Allowed(false)) => false,
            Some(AdditionalProperties::Allowed(true) | AdditionalProperties::Schema(_)) => true,
        };
        let forbidden = [
            (schema.schema_type.is_some(), "type", "must be empty to be structural"),
            (additional, "additionalProperties", "must be undefined to be structural"),
            (schema.default.is_some(), "default", "must be undefined to be structural"),
            (schema.annotations.title, "title", "must be empty to be structural"),
            (schema.annotations.description, "description", "must be empty to be structural"),
            (schema.nullable, "nullable", "must be false to be structural"),
            (
                schema.preserves_unknown_fields(),
                "x-kubernetes-preserve-unknown-fields",
                "must be false to be structural",
            ),
            (schema.embedded_resource, "x-kubernetes-embedded-resource", "must be false to be structural"),
            (schema.int_or_string, "x-kubernetes-int-or-string", "must be false to be structural"),
            (
                !schema.list_map_keys.is_empty(),
                "x-kubernetes-list-map-keys",
                "must be empty to be structural",
            ),
            (schema.list_type.is_some(), "x-kubernetes-list-type", "must be undefined to be structural"),
            (schema.map_type.is_some(), "x-kubernetes-map-type", "must be undefined to be structural"),
            (!schema.rules.is_empty(), "x-kubernetes-validations", "must be empty to be structural"),
        ];
        for (_, keyword, detail) in forbidden.into_iter().filter(|(set, ..)| *set) {
            self.forbidden(&path.child(keyword), detail);
        }
        // Reasoning about metadata could restrict it in ways that are not wanted.
        if schema.properties.contains_key("metadata") {
            self.forbidden(&properties.key("metadata"), "must not be specified in a nested context");
        }
    }

    /// What is checked under a logical keyword must have a type outside of it.
    fn checks_complete(&mut self, checks: &Checks, schema: &Schema, path: &Path<'_>, checked_at: &Path<'_>) {
        if let Some(not) = &checks.not {
            self.nested_complete(not, Some(schema), path, &checked_at.child("not"));
        }
        let groups = [("allOf", &checks.all_of), ("anyOf", &checks.any_of), ("oneOf", &checks.one_of)];
        for (keyword, parts) in groups {
            let at = checked_at.child(keyword);
            for (i, part) in parts.iter().enumerate() {
                self.nested_complete(part, Some(schema), path, &at.index(i));
            }
        }
    }

    fn nested_complete(
        &mut self,
        part: &Schema,
        schema: Option<&Schema>,
        path: &Path<'_>,
        checked_at: &Path<'_>,
    ) {
        let Some(schema) = schema else {
            return self.required(path, &format!("because it is defined in {checked_at}"));
        };
        self.checks_complete(&part.checks, schema, path, checked_at);
        if let Some(items) = &part.items {
            let (at, checked_at) = (path.child("items"), checked_at.child("items"));
            self.nested_complete(items, schema.items.as_deref(), &at, &checked_at);
        }
        let (properties, checked_properties) = (path.child("properties"), checked_at.child("properties"));
        for (name, property) in &part.properties {
            let (at, checked_at) = (properties.key(name), checked_properties.key(name));
            self.nested_complete(property, schema.properties.get(name), &at, &checked_at);
        }
    }

    fn required(&mut self, path: &Path<'_>, detail: &str) {
        self.errors.push(FieldError::required(path, detail));
    }

    fn forbidden(&mut self, path: &Path<'_>, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }
}

/// Where a schema spells out `x-kubernetes-int-or-string` as two alternatives of one type each, which is allowed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum IntOrStringForm {
    None,
    AnyOf,
    FirstOfAllOf,
}

impl IntOrStringForm {
    fn of(schema: &Schema) -> Self {
        if is_int_or_string(&schema.checks.any_of) {
            Self::AnyOf
        } else if schema.checks.all_of.first().is_some_and(|first| is_int_or_string(&first.checks.any_of)) {
            Self::FirstOfAllOf
        } else {
            Self::None
        }
    }
}

fn is_int_or_string(alternatives: &[Schema]) -> bool {
    let says_only = |schema: &Schema, schema_type: SchemaType| {
        let mut rest = schema.clone();
        // As in the API server, `additionalProperties: false` is ignored here.
        rest.additional_properties.take_if(|more| *more == AdditionalProperties::Allowed(false));
        rest == Schema { schema_type: Some(schema_type), ..Schema::default() }
    };
    let [first, second] = alternatives else { return false };
    says_only(first, SchemaType::Integer) && says_only(second, SchemaType::String)
}

/// Whether metadata at the root constrains only `name` and `generateName`.
fn restricts_names_only(metadata: &Schema) -> bool {
    let mut rest = metadata.clone();
    if rest.properties.keys().all(|name| matches!(&**name, "name" | "generateName")) {
        rest.properties.clear();
    }
    rest.schema_type = None;
    rest.default = None;
    rest == Schema::default()
}
