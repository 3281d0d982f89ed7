//! Renders parts of a CRD in the API server's internal form, as its error messages print them: every field by its Go
//! name, also those that are not set (apiextensions `pkg/apis/apiextensions/types{,_jsonschema}.go`). Input: the
//! manifest's JSON.

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::go;
use admit_apimachinery::pointer;
use serde_json::{Map, Value};

/// How a field is printed.
#[derive(Clone, Copy)]
enum Form {
    /// Empty where it is not set.
    Text,
    /// False where it is not set.
    Flag,
    /// Null where it is not set, and else as it is.
    Any,
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrBool,
    SchemaOrList,
    Dependencies,
    /// A structure of other fields; null where it is not set.
    Structure(&'static [Field]),
    Structures(&'static [Field]),
}

/// The name in Go, the name in JSON, the form.
type Field = (&'static str, &'static str, Form);

const SCHEMA: [Field; 43] = [
    ("ID", "id", Form::Text),
    ("Schema", "$schema", Form::Text),
    ("Ref", "$ref", Form::Any),
    ("Description", "description", Form::Text),
    ("Type", "type", Form::Text),
    ("Nullable", "nullable", Form::Flag),
    ("Format", "format", Form::Text),
    ("Title", "title", Form::Text),
    ("Default", "default", Form::Any),
    ("Maximum", "maximum", Form::Any),
    ("ExclusiveMaximum", "exclusiveMaximum", Form::Flag),
    ("Minimum", "minimum", Form::Any),
    ("ExclusiveMinimum", "exclusiveMinimum", Form::Flag),
    ("MaxLength", "maxLength", Form::Any),
    ("MinLength", "minLength", Form::Any),
    ("Pattern", "pattern", Form::Text),
    ("MaxItems", "maxItems", Form::Any),
    ("MinItems", "minItems", Form::Any),
    ("UniqueItems", "uniqueItems", Form::Flag),
    ("MultipleOf", "multipleOf", Form::Any),
    ("Enum", "enum", Form::Any),
    ("MaxProperties", "maxProperties", Form::Any),
    ("MinProperties", "minProperties", Form::Any),
    ("Required", "required", Form::Any),
    ("Items", "items", Form::SchemaOrList),
    ("AllOf", "allOf", Form::Schemas),
    ("OneOf", "oneOf", Form::Schemas),
    ("AnyOf", "anyOf", Form::Schemas),
    ("Not", "not", Form::Schema),
    ("Properties", "properties", Form::SchemaMap),
    ("AdditionalProperties", "additionalProperties", Form::SchemaOrBool),
    ("PatternProperties", "patternProperties", Form::SchemaMap),
    ("Dependencies", "dependencies", Form::Dependencies),
    ("AdditionalItems", "additionalItems", Form::SchemaOrBool),
    ("Definitions", "definitions", Form::SchemaMap),
    ("ExternalDocs", "externalDocs", Form::Structure(&EXTERNAL_DOCS)),
    ("Example", "example", Form::Any),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Form::Any),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Form::Flag),
    ("XIntOrString", "x-kubernetes-int-or-string", Form::Flag),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Form::Any),
    ("XListType", "x-kubernetes-list-type", Form::Any),
    ("XMapType", "x-kubernetes-map-type", Form::Any),
];

const RULES: Field = ("XValidations", "x-kubernetes-validations", Form::Structures(&RULE));

const RULE: [Field; 6] = [
    ("Rule", "rule", Form::Text),
    ("Message", "message", Form::Text),
    ("MessageExpression", "messageExpression", Form::Text),
    ("Reason", "reason", Form::Any),
    ("FieldPath", "fieldPath", Form::Text),
    ("OptionalOldSelf", "optionalOldSelf", Form::Any),
];

const EXTERNAL_DOCS: [Field; 2] = [("Description", "description", Form::Text), ("URL", "url", Form::Text)];

const SUBRESOURCES: [Field; 2] =
    [("Status", "status", Form::Structure(&[])), ("Scale", "scale", Form::Structure(&SCALE))];

const SCALE: [Field; 3] = [
    ("SpecReplicasPath", "specReplicasPath", Form::Text),
    ("StatusReplicasPath", "statusReplicasPath", Form::Text),
    ("LabelSelectorPath", "labelSelectorPath", Form::Any),
];

const COLUMN: [Field; 6] = [
    ("Name", "name", Form::Text),
    ("Type", "type", Form::Text),
    ("Format", "format", Form::Text),
    ("Description", "description", Form::Text),
    ("Priority", "priority", Form::Any),
    ("JSONPath", "jsonPath", Form::Text),
];

const SELECTABLE_FIELD: [Field; 1] = [("JSONPath", "jsonPath", Form::Text)];

const WARNING: Field = ("DeprecationWarning", "deprecationWarning", Form::Any);

/// What all versions have in common is at another place of the internal form, and is printed as not set here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hoisted {
    pub(super) schema: bool,
    pub(super) subresources: bool,
    pub(super) columns: bool,
    pub(super) selectable_fields: bool,
}

/// The versions of a manifest.
pub(super) fn versions(manifest: &Value, hoisted: Hoisted) -> BadValue {
    let versions = manifest.pointer("/spec/versions").and_then(Value::as_array);
    let printed = versions.map_or("null".to_owned(), |versions| {
        list(versions.iter().map(|version| self::version(version, hoisted)))
    });
    BadValue::Verbatim(printed)
}

/// The schema of the version at this place, as it was sent.
pub(super) fn schema_at(manifest: &Value, place: usize) -> &Value {
    let version = pointer::items(manifest, "/spec/versions").get(place);
    version.and_then(|version| version.pointer("/schema/openAPIV3Schema")).unwrap_or(&Value::Null)
}

/// A schema.
pub(super) fn schema_text(value: &Value) -> BadValue {
    BadValue::Verbatim(schema(value))
}

/// The fields of a schema that are set, by their Go names, in the order of their declaration. Lists and maps are set even if they are empty.
pub(super) fn set_fields(schema: &Value) -> impl Iterator<Item = (&'static str, &Value)> {
    let fields = SCHEMA.iter().chain([&RULES]).map(|(name, key, form)| (*name, *form, field(schema, key)));
    let set = fields.filter(|(_, form, value)| match form {
        Form::Text => value.as_str().is_some_and(|text| !text.is_empty()),
        Form::Flag => **value == true,
        _ => !value.is_null(),
    });
    set.map(|(name, _, value)| (name, value))
}

/// The value of `items`.
pub(super) fn items(value: &Value) -> BadValue {
    BadValue::Verbatim(formatted(value, Form::SchemaOrList))
}

fn version(version: &Value, hoisted: Hoisted) -> String {
    let unless = |hoisted: bool, key: &str| if hoisted { &Value::Null } else { field(version, key) };
    let flag = |key: &str| (*field(version, key) == true).to_string();
    let schema = unless(hoisted.schema, "schema");
    let schema = match schema.as_object() {
        None => "null".to_owned(),
        Some(map) => {
            let schema = map.get("openAPIV3Schema").unwrap_or(&Value::Null);
            object([("OpenAPIV3Schema", formatted(schema, Form::Schema))])
        }
    };
    object([
        ("Name", formatted(field(version, "name"), Form::Text)),
        ("Served", flag("served")),
        ("Storage", flag("storage")),
        ("Deprecated", flag("deprecated")),
        (WARNING.0, formatted(field(version, WARNING.1), WARNING.2)),
        ("Schema", schema),
        (
            "Subresources",
            formatted(unless(hoisted.subresources, "subresources"), Form::Structure(&SUBRESOURCES)),
        ),
        (
            "AdditionalPrinterColumns",
            formatted(unless(hoisted.columns, "additionalPrinterColumns"), Form::Structures(&COLUMN)),
        ),
        (
            "SelectableFields",
            formatted(
                unless(hoisted.selectable_fields, "selectableFields"),
                Form::Structures(&SELECTABLE_FIELD),
            ),
        ),
    ])
}

fn schema(value: &Value) -> String {
    structure(value, SCHEMA.iter().chain([&RULES]))
}

fn structure<'f>(value: &Value, fields: impl Iterator<Item = &'f Field>) -> String {
    object(fields.map(|(name, key, form)| {
        let printed = match (*key, field(value, key)) {
            // The one number that is no pointer.
            ("priority", Value::Null) => "0".to_owned(),
            (_, value) => formatted(value, *form),
        };
        (*name, printed)
    }))
}

fn formatted(value: &Value, form: Form) -> String {
    match (form, value) {
        (Form::Text, Value::Null) => "\"\"".to_owned(),
        (Form::Flag, value) => (*value == true).to_string(),
        (_, Value::Null) => "null".to_owned(),
        (Form::Text | Form::Any, value) => go::json::text(value),
        (Form::Schema, value) => schema(value),
        (Form::Schemas, value) => list(value.as_array().into_iter().flatten().map(schema)),
        (Form::SchemaMap, Value::Object(map)) => sorted(map, schema),
        (Form::Dependencies, Value::Object(map)) => sorted(map, |value| match value {
            Value::Array(_) => {
                object([("Schema", "null".to_owned()), ("Property", formatted(value, Form::Any))])
            }
            value => object([("Schema", schema(value)), ("Property", "null".to_owned())]),
        }),
        (Form::SchemaOrBool, Value::Bool(allows)) => {
            object([("Allows", allows.to_string()), ("Schema", "null".to_owned())])
        }
        (Form::SchemaOrBool, value) => {
            object([("Allows", "true".to_owned()), ("Schema", formatted(value, Form::Schema))])
        }
        (Form::SchemaOrList, Value::Array(_)) => {
            object([("Schema", "null".to_owned()), ("JSONSchemas", formatted(value, Form::Schemas))])
        }
        (Form::SchemaOrList, value) => {
            // What is neither is not read.
            let schema = if value.is_object() { schema(value) } else { "null".to_owned() };
            object([("Schema", schema), ("JSONSchemas", "null".to_owned())])
        }
        (Form::Structure(fields), value) => structure(value, fields.iter()),
        (Form::Structures(fields), value) => {
            list(value.as_array().into_iter().flatten().map(|value| structure(value, fields.iter())))
        }
        (Form::SchemaMap | Form::Dependencies, _) => "null".to_owned(),
    }
}

fn field<'v>(value: &'v Value, key: &str) -> &'v Value {
    value.get(key).unwrap_or(&Value::Null)
}

fn sorted(map: &Map<String, Value>, print: impl Fn(&Value) -> String) -> String {
    let mut members: Vec<_> = map.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| format!("{}:{}", go::json::text(&Value::from(name.as_str())), print(value)))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn object<'n>(members: impl IntoIterator<Item = (&'n str, String)>) -> String {
    let members: Vec<_> = members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(","))
}
