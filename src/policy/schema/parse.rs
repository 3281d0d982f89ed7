//! Parses an `openAPIV3Schema` from JSON to a [`Schema`]. Unknown keywords are dropped, as the API server's decoder
//! drops them; a keyword with a value of the wrong type is an error that names its path. Every error is reported.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use serde_json::{Map, Value};

use super::structural::{
    AdditionalProperties, Annotations, Checks, ListType, MapType, Reason, Rule, Schema, SchemaType,
    Unsupported,
};
use super::{Enumeration, Pattern, numeric};
use crate::read::path::Path;

/// The maximum nesting of schemas: far beyond a registered definition, well within any thread's stack.
const MAX_DEPTH: usize = 128;

/// Reads a schema; the errors are of keywords whose values have the wrong JSON type.
///
/// # Errors
/// One [`FieldError`] for each keyword that cannot be read.
///
/// ```
/// use admit_policy::schema::{parse, prune, validate};
/// use admit_policy::{Pace, Path};
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}});
/// let schema = parse(&schema, &Path::Nil).unwrap();
/// let mut object = json!({"size": 0, "colour": "red"});
/// assert_eq!(prune(&mut object, &schema, &Pace::default()), ["colour"]);
/// let errors = validate(&object, &schema, None, &Path::Nil, &Pace::default());
/// assert_eq!(
///     errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
///     ["size: Invalid value: 0: size in body should be greater than or equal to 1"],
/// );
/// ```
pub fn parse(value: &Value, path: &Path<'_>) -> Result<Schema, Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    let schema = Reader { errors: &mut errors, depth: 0 }.schema(value, path);
    if errors.is_empty() { Ok(schema) } else { Err(errors.into_vec()) }
}

struct Reader<'e> {
    errors: &'e mut FieldErrors,
    depth: usize,
}

/// An object of the document, with its path.
#[derive(Clone, Copy)]
struct Entry<'v, 'p> {
    map: &'v Map<String, Value>,
    path: &'p Path<'p>,
}

impl Reader<'_> {
    fn schema(&mut self, value: &Value, path: &Path<'_>) -> Schema {
        if self.depth >= MAX_DEPTH {
            self.errors.push(FieldError::invalid(path, "", "schema nests too deeply"));
            return Schema::default();
        }
        let map = match value {
            Value::Object(map) => map,
            Value::Null => return Schema::default(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                self.wrong::<()>(path, value, "an object");
                return Schema::default();
            }
        };
        self.depth = self.depth.saturating_add(1);
        let schema = self.node(Entry { map, path });
        self.depth = self.depth.saturating_sub(1);
        schema
    }

    fn node(&mut self, at: Entry<'_, '_>) -> Schema {
        let mut unsupported = self.unsupported_keywords(at);
        let items = match at.map.get("items") {
            Some(value @ Value::Array(items)) if !items.is_empty() => {
                unsupported.push(Unsupported::ItemsList(self.schemas(at, "items"), value.clone()));
                None
            }
            // What is neither a schema nor a list of some is not read.
            None
            | Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                None
            }
            Some(value @ Value::Object(_)) => Some(Box::new(self.schema(value, &at.path.child("items")))),
        };
        Schema {
            schema_type: self.text(at, "type").map(|text| SchemaType::parse(&text)),
            nullable: self.flag(at, "nullable"),
            default: at.map.get("default").filter(|value| !value.is_null()).cloned(),
            items,
            properties: self.properties(at),
            additional_properties: self.additional(at),
            int_or_string: self.flag(at, "x-kubernetes-int-or-string"),
            preserve_unknown_fields: self.optional_flag(at, "x-kubernetes-preserve-unknown-fields"),
            embedded_resource: self.flag(at, "x-kubernetes-embedded-resource"),
            list_type: self.optional_text(at, "x-kubernetes-list-type").map(|text| match text.as_str() {
                "atomic" => ListType::Atomic,
                "set" => ListType::Set,
                "map" => ListType::Map,
                other => ListType::Other(other.into()),
            }),
            list_map_keys: self.texts(at, "x-kubernetes-list-map-keys"),
            map_type: self.optional_text(at, "x-kubernetes-map-type").map(|text| match text.as_str() {
                "granular" => MapType::Granular,
                "atomic" => MapType::Atomic,
                other => MapType::Other(other.into()),
            }),
            checks: self.checks(at).into(),
            rules: self.rules(at),
            annotations: Annotations {
                description: self.text(at, "description").is_some(),
                title: self.text(at, "title").is_some(),
                example: at.map.get("example").is_some_and(|value| !value.is_null()),
                external_docs: at.map.get("externalDocs").is_some_and(|value| !value.is_null()),
            },
            unsupported,
        }
    }

    fn unsupported_keywords(&mut self, at: Entry<'_, '_>) -> Vec<Unsupported> {
        let present = |key: &str| at.map.get(key).is_some_and(|value| !value.is_null());
        let filled = |key: &str| match at.map.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => !text.is_empty(),
            Some(Value::Object(map)) => !map.is_empty(),
            Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => true,
        };
        // Some keywords count even if they are empty. In the order in which they are reported.
        let mut found = Vec::new();
        let mut note = |is_set: bool, keyword: Unsupported| {
            if is_set {
                found.push(keyword);
            }
        };
        note(filled("id"), Unsupported::Id);
        note(filled("$schema"), Unsupported::MetaSchema);
        note(present("additionalItems"), Unsupported::AdditionalItems);
        note(filled("patternProperties"), Unsupported::PatternProperties);
        note(filled("definitions"), Unsupported::Definitions(self.named(at, "definitions")));
        note(present("dependencies"), Unsupported::Dependencies(self.named(at, "dependencies")));
        note(present("$ref"), Unsupported::Ref);
        found
    }

    /// The members of a keyword that are schemas.
    fn named(&mut self, at: Entry<'_, '_>, key: &str) -> Vec<(Box<str>, Schema)> {
        let Some(map) = self.object(at, key) else { return Vec::new() };
        let path = at.path.child(key);
        let schemas = map.iter().filter(|(_, value)| value.is_object());
        schemas.map(|(name, value)| (name.as_str().into(), self.schema(value, &path.key(name)))).collect()
    }

    fn properties(&mut self, at: Entry<'_, '_>) -> indexmap::IndexMap<Box<str>, Schema> {
        let Some(map) = self.object(at, "properties") else { return indexmap::IndexMap::new() };
        let path = at.path.child("properties");
        map.iter().map(|(name, value)| (name.as_str().into(), self.schema(value, &path.key(name)))).collect()
    }

    fn additional(&mut self, at: Entry<'_, '_>) -> Option<AdditionalProperties> {
        match at.map.get("additionalProperties")? {
            Value::Null => None,
            Value::Bool(allowed) => Some(AdditionalProperties::Allowed(*allowed)),
            value => {
                let schema = self.schema(value, &at.path.child("additionalProperties"));
                Some(AdditionalProperties::Schema(Box::new(schema)))
            }
        }
    }

    fn checks(&mut self, at: Entry<'_, '_>) -> Checks {
        Checks {
            format: self.text(at, "format").map(Into::into),
            maximum: self.float(at, "maximum"),
            exclusive_maximum: self.flag(at, "exclusiveMaximum"),
            minimum: self.float(at, "minimum"),
            exclusive_minimum: self.flag(at, "exclusiveMinimum"),
            multiple_of: self.float(at, "multipleOf"),
            max_length: self.integer(at, "maxLength"),
            min_length: self.integer(at, "minLength"),
            pattern: self.text(at, "pattern").map(|text| Pattern::new(&text)),
            max_items: self.integer(at, "maxItems"),
            min_items: self.integer(at, "minItems"),
            unique_items: self.flag(at, "uniqueItems"),
            max_properties: self.integer(at, "maxProperties"),
            min_properties: self.integer(at, "minProperties"),
            required: self.texts(at, "required"),
            enumeration: self
                .array(at, "enum")
                .map(|members| Enumeration::new(members.to_vec()))
                .unwrap_or_default(),
            all_of: self.schemas(at, "allOf"),
            any_of: self.schemas(at, "anyOf"),
            one_of: self.schemas(at, "oneOf"),
            not: at
                .map
                .get("not")
                .filter(|value| !value.is_null())
                .map(|value| Box::new(self.schema(value, &at.path.child("not")))),
        }
    }

    fn schemas(&mut self, at: Entry<'_, '_>, key: &str) -> Vec<Schema> {
        let Some(items) = self.array(at, key) else { return Vec::new() };
        let path = at.path.child(key);
        items.iter().enumerate().map(|(i, value)| self.schema(value, &path.index(i))).collect()
    }

    fn rules(&mut self, at: Entry<'_, '_>) -> Vec<Rule> {
        const KEY: &str = "x-kubernetes-validations";
        let Some(items) = self.array(at, KEY) else { return Vec::new() };
        let path = at.path.child(KEY);
        items.iter().enumerate().filter_map(|(i, value)| self.rule(value, &path.index(i))).collect()
    }

    fn rule(&mut self, value: &Value, path: &Path<'_>) -> Option<Rule> {
        let Value::Object(map) = value else {
            return self.wrong(path, value, "an object");
        };
        let at = Entry { map, path };
        Some(Rule {
            rule: self.text(at, "rule").unwrap_or_default(),
            message: self.text(at, "message").unwrap_or_default(),
            message_expression: self.text(at, "messageExpression").unwrap_or_default(),
            reason: self.optional_text(at, "reason").map(|text| match text.as_str() {
                "FieldValueInvalid" => Reason::Invalid,
                "FieldValueForbidden" => Reason::Forbidden,
                "FieldValueRequired" => Reason::Required,
                "FieldValueDuplicate" => Reason::Duplicate,
                other => Reason::Other(other.into()),
            }),
            field_path: self.text(at, "fieldPath").unwrap_or_default(),
            optional_old_self: self.optional_flag(at, "optionalOldSelf"),
        })
    }

    /// Reads a string; None if it is absent or empty.
    fn text(&mut self, at: Entry<'_, '_>, key: &str) -> Option<String> {
        self.optional_text(at, key).filter(|text| !text.is_empty())
    }

    /// A string that counts even when it is empty.
    fn optional_text(&mut self, at: Entry<'_, '_>, key: &str) -> Option<String> {
        match at.map.get(key)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            value => self.wrong(&at.path.child(key), value, "a string"),
        }
    }

    fn texts(&mut self, at: Entry<'_, '_>, key: &str) -> Vec<Box<str>> {
        let Some(items) = self.array(at, key) else { return Vec::new() };
        let path = at.path.child(key);
        let text = |(i, value): (usize, &Value)| match value {
            Value::String(text) => Some(Box::from(text.as_str())),
            _ => self.wrong(&path.index(i), value, "a string"),
        };
        items.iter().enumerate().filter_map(text).collect()
    }

    fn flag(&mut self, at: Entry<'_, '_>, key: &str) -> bool {
        self.optional_flag(at, key).unwrap_or(false)
    }

    fn optional_flag(&mut self, at: Entry<'_, '_>, key: &str) -> Option<bool> {
        match at.map.get(key)? {
            Value::Bool(flag) => Some(*flag),
            Value::Null => None,
            value => self.wrong(&at.path.child(key), value, "a boolean"),
        }
    }

    fn integer(&mut self, at: Entry<'_, '_>, key: &str) -> Option<i64> {
        match at.map.get(key)? {
            Value::Null => None,
            value => {
                let whole = value.as_i64().or_else(|| value.as_f64().and_then(numeric::whole));
                if whole.is_none() { self.wrong(&at.path.child(key), value, "an integer") } else { whole }
            }
        }
    }

    fn float(&mut self, at: Entry<'_, '_>, key: &str) -> Option<f64> {
        match at.map.get(key)? {
            Value::Number(number) => number.as_f64(),
            Value::Null => None,
            value => self.wrong(&at.path.child(key), value, "a number"),
        }
    }

    fn array<'v>(&mut self, at: Entry<'v, '_>, key: &str) -> Option<&'v [Value]> {
        match at.map.get(key)? {
            Value::Array(items) => Some(items),
            Value::Null => None,
            value => self.wrong(&at.path.child(key), value, "an array"),
        }
    }

    fn object<'v>(&mut self, at: Entry<'v, '_>, key: &str) -> Option<&'v Map<String, Value>> {
        match at.map.get(key)? {
            Value::Object(map) => Some(map),
            Value::Null => None,
            value => self.wrong(&at.path.child(key), value, "an object"),
        }
    }

    /// Records a value of the wrong kind and yields nothing in its place.
    fn wrong<T>(&mut self, path: &Path<'_>, value: &Value, expected: &str) -> Option<T> {
        self.errors.push(FieldError::invalid(path, value, format!("must be {expected}")));
        None
    }
}
