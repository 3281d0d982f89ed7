//! Converts a schema to the CEL types against which rules are checked, with the size limits for cost estimates (apiserver
//! `pkg/cel/common/schemas.go`).

use std::sync::Arc;

use admit_cel::{DeclField, DeclKind, DeclType, ListType, Type, escape_property};

use crate::release;
use crate::schema::{self, Checks, Schema, SchemaType};

/// The size of the largest request in bytes, the limit for what no schema limits.
pub(crate) const MAX_REQUEST_SIZE: i64 = 3 * 1024 * 1024;

/// The name that the type of a node has in messages; a server appends a number that changes with every compilation.
const ROOT_NAME: &str = "selfType0";

/// The error for rules on a node that has no type.
pub(crate) const NOT_CONVERTED: &str = "failed to convert to declType for CEL validation rules";

/// The schema of the elements of a list or map.
#[must_use]
pub(crate) fn element(schema: &Schema) -> Option<&Schema> {
    match &schema.schema_type {
        _ if schema.int_or_string => None,
        Some(SchemaType::Array) => schema.items.as_deref(),
        Some(SchemaType::Object) => schema.additional_schema(),
        _ => None,
    }
}

/// The CEL type of a node whose rules are compiled; None where expressions cannot access the node.
#[must_use]
pub fn decl_type(schema: &Schema, resource_root: bool) -> Option<Arc<DeclType>> {
    named(schema, resource_root, ROOT_NAME)
}

/// The same under a name of its own in messages.
#[must_use]
pub(crate) fn named(schema: &Schema, resource_root: bool, name: &str) -> Option<Arc<DeclType>> {
    node(schema, resource_root, name).map(Arc::new)
}

/// Whether expressions can see a node: untyped data is hidden, and lists and maps of it.
#[must_use]
pub(crate) fn is_exposed(schema: &Schema) -> bool {
    match &schema.schema_type {
        _ if schema.int_or_string => true,
        Some(SchemaType::Array) => schema.items.as_deref().is_some_and(is_exposed),
        Some(SchemaType::Object) => schema.additional_schema().is_none_or(is_exposed),
        Some(SchemaType::String | SchemaType::Boolean | SchemaType::Number | SchemaType::Integer) => true,
        Some(SchemaType::Other(_)) | None => false,
    }
}

fn node(schema: &Schema, resource_root: bool, name: &str) -> Option<DeclType> {
    if schema.int_or_string {
        let max = schema.checks.max_length.map_or(LONGEST_STRING, in_bytes);
        return Some(scalar(schema, Type::Dyn, max, 1));
    }
    match &schema.schema_type {
        Some(SchemaType::Array) => list(schema, name),
        Some(SchemaType::Object) => match schema.additional_schema() {
            Some(entry) => map(schema, entry, name),
            None if resource_root => Some(object(&with_type_and_metadata(schema), name)),
            None => Some(object(schema, name)),
        },
        Some(SchemaType::String) => Some(string(schema)),
        Some(SchemaType::Boolean) => Some(scalar(schema, Type::Bool, 0, 4)),
        Some(SchemaType::Number) => Some(scalar(schema, Type::Double, 0, 1)),
        Some(SchemaType::Integer) => Some(scalar(schema, Type::Int, 0, 1)),
        Some(SchemaType::Other(_)) | None => None,
    }
}

/// What a string may hold when nothing else bounds it; its quotes count too.
const LONGEST_STRING: i64 = MAX_REQUEST_SIZE.saturating_sub(2);

/// Converts a length in code points to the maximum number of bytes.
fn in_bytes(length: i64) -> i64 {
    length.max(0).saturating_mul(4)
}

fn scalar(schema: &Schema, ty: Type, max: i64, min_size: u64) -> DeclType {
    sized(schema, DeclKind::Scalar(ty), max, min_size)
}

fn sized(schema: &Schema, kind: DeclKind, max: i64, min_serialized_size: u64) -> DeclType {
    let max_elements = Some(u64::try_from(max).unwrap_or(0));
    DeclType { kind, nullable: schema.nullable, max_elements, min_serialized_size }
}

fn list(schema: &Schema, name: &str) -> Option<DeclType> {
    let items_schema = schema.items.as_deref()?;
    let items = node(items_schema, items_schema.embedded_resource, &format!("{name}.@idx"))?;
    let max = schema.checks.max_items.map_or_else(|| fitting(items.min_serialized_size, 1), |max| max.max(0));
    let list_type = match &schema.list_type {
        Some(schema::ListType::Set) => ListType::Set,
        Some(schema::ListType::Map) => ListType::Map(schema.list_map_keys.clone().into()),
        Some(schema::ListType::Atomic | schema::ListType::Other(_)) | None => ListType::Atomic,
    };
    Some(sized(schema, DeclKind::List { items: Arc::new(items), list_type }, max, 2))
}

fn map(schema: &Schema, entry: &Schema, name: &str) -> Option<DeclType> {
    let value = node(entry, entry.embedded_resource, &format!("{name}.@elem"))?;
    // Two quotes, a colon and a comma at least, and a key.
    let max =
        schema.checks.max_properties.map_or_else(|| fitting(value.min_serialized_size, 6), |max| max.max(0));
    // Kubernetes sets no limit for keys, which its estimates take for none at all.
    let key = DeclType {
        kind: DeclKind::Scalar(Type::String),
        nullable: false,
        max_elements: None,
        min_serialized_size: 2,
    };
    Some(sized(schema, DeclKind::Map { key: Arc::new(key), value: Arc::new(value) }, max, 2))
}

/// Returns how many elements of a minimum size fit into a request, with `around` bytes in between.
fn fitting(min_size: u64, around: i64) -> i64 {
    let each = i64::try_from(min_size).unwrap_or(i64::MAX).saturating_add(around);
    LONGEST_STRING.checked_div(each).unwrap_or(0)
}

fn object(schema: &Schema, name: &str) -> DeclType {
    let mut fields = Vec::with_capacity(schema.properties.len());
    // `{}`
    let mut min_size = 2_u64;
    for (property, property_schema) in &schema.properties {
        let cel_name = escape_property(property);
        let field_name = format!("{name}.{}", cel_name.as_deref().unwrap_or_default());
        let Some(decl) = node(property_schema, property_schema.embedded_resource, &field_name) else {
            continue;
        };
        let required = schema.checks.required.contains(property);
        // A default is filled in before anything is counted.
        if required && property_schema.default.is_none() {
            let around = u64::try_from(property.len()).unwrap_or(u64::MAX).saturating_add(4);
            min_size = min_size.saturating_add(decl.min_serialized_size).saturating_add(around);
        }
        if let Some(cel_name) = cel_name {
            let (name, cel_name) = (property.clone(), cel_name.into());
            fields.push(DeclField { name, cel_name, decl: Arc::new(decl), required });
        }
    }
    fields.sort_by(|a, b| a.cel_name.cmp(&b.cel_name));
    sized(schema, DeclKind::Object { name: name.into(), fields: fields.into() }, 0, min_size)
}

fn string(schema: &Schema) -> DeclType {
    let checks = &schema.checks;
    match checks.format.as_deref() {
        Some("byte") => {
            let max = checks.max_length.map_or(LONGEST_STRING, |max| max.max(0));
            scalar(schema, Type::Bytes, max, 2)
        }
        Some("duration") => scalar(schema, Type::Duration, 32, 3),
        Some("date") => sized(schema, DeclKind::Date, 12, 12),
        Some("date-time") => scalar(schema, Type::Timestamp, 32, 21),
        _ => {
            let longest_member = || {
                let lengths = checks.enumeration.iter().map(|member| member.as_str().map_or(0, str::len));
                lengths.max().map_or(LONGEST_STRING, |length| i64::try_from(length).unwrap_or(LONGEST_STRING))
            };
            scalar(schema, Type::String, checks.max_length.map_or_else(longest_member, in_bytes), 2)
        }
    }
}

/// The longest name of an object, which has a suffix where it was generated.
const LONGEST_NAME: i64 = 253;

/// Returns the schema of `name` or `generateName`, with the length limit of the given schema or of object names.
fn name_of(schema: &Schema, part: &str) -> Schema {
    let text = Schema { schema_type: Some(SchemaType::String), ..Schema::default() };
    if !release::bounds_names() {
        return text;
    }
    let longest = LONGEST_NAME.saturating_sub(i64::from(part == "generateName"));
    let declared = schema.properties.get("metadata").and_then(|metadata| metadata.properties.get(part));
    let declared = declared.and_then(|declared| declared.checks.max_length).unwrap_or(longest);
    let checks = Checks { max_length: Some(declared.min(longest)), ..Checks::default() };
    Schema { checks: checks.into(), ..text }
}

/// Rules at the root of a resource always see `apiVersion`, `kind`, `metadata.name` and `metadata.generateName`; a
/// schema that does not declare all of them declares no others of metadata.
pub(super) fn with_type_and_metadata(schema: &Schema) -> Schema {
    let is = |properties: &indexmap::IndexMap<Box<str>, Schema>, name: &str, expected: &SchemaType| {
        properties.get(name).is_some_and(|property| property.is_type(expected))
    };
    let complete = is(&schema.properties, "kind", &SchemaType::String)
        && is(&schema.properties, "apiVersion", &SchemaType::String)
        && is(&schema.properties, "metadata", &SchemaType::Object)
        && schema.properties.get("metadata").is_some_and(|metadata| {
            is(&metadata.properties, "name", &SchemaType::String)
                && is(&metadata.properties, "generateName", &SchemaType::String)
        });
    let mut schema = schema.clone();
    if complete {
        return schema;
    }
    let text = Schema { schema_type: Some(SchemaType::String), ..Schema::default() };
    let metadata = Schema {
        schema_type: Some(SchemaType::Object),
        properties: ["name", "generateName"]
            .map(|of| (of.into(), name_of(&schema, of)))
            .into_iter()
            .collect(),
        ..Schema::default()
    };
    schema.properties.insert("kind".into(), text.clone());
    schema.properties.insert("apiVersion".into(), text);
    schema.properties.insert("metadata".into(), metadata);
    schema
}
