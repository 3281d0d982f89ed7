//! Parses the field tables.
//!
//! ```text
//! package ALIAS GROUP VERSION OPENAPI-PREFIX      GROUP is `-` for the core group
//! # a remark
//!
//! TYPE [object] [atomic] [list] [union=[FIELD]:FIELD,…] [: description]
//!   NUMBER NAME[!+~] TYPE [patch=STRATEGY[:KEY]] [list=KIND[:KEY,…]] [map=atomic|granular] [default=JSON] [fill=JSON] [absent=JSON] [: description]
//! TYPE = VALUE "A VALUE" …                        a string type with a closed set of values
//! ```
//!
//! `!` marks a required field, `+` one that is optional but always written, `~` a message that is left out when empty, and
//! `!~` one that is required but left out when empty; the name `.` embeds a type. Server-side apply owns values of `atomic` types
//! and maps as a whole, but not of a `granular` map of an atomic type. A `list` is a list in JSON and a message in protobuf.
//! The field before the colon of a `union` says which of the others is set. Types are written as in Go: `*int32`,
//! `[]Container`, `map[string]string`, `meta.ObjectMeta`.

use std::collections::HashMap;

use super::model::{
    EnumDef, EnumId, Field, ListType, Package, PatchStrategy, RawKind, Tables, TypeDef, TypeId, TypeRef,
    Union,
};

#[derive(Clone, Copy)]
enum Named {
    Message(TypeId),
    Enum(EnumId),
}

type Names = HashMap<(&'static str, &'static str), Named>;

/// Returns the tables, and the lines that are invalid (none, as a test checks).
pub(super) fn parse(texts: &[&'static str]) -> (Tables, Vec<String>) {
    let mut tables = Tables::default();
    let mut problems = Vec::new();
    let names = declare(texts, &mut tables);
    for text in texts {
        let mut package = None;
        let mut current = None;
        for line in text.lines() {
            if let Some(header) = package_line(line) {
                package = Some(header);
            } else if let (Some(package), Some(field_line)) = (package, line.strip_prefix("  ")) {
                match (current, field(field_line, package.alias, &names)) {
                    (Some(TypeId(index)), Some(field)) => tables.types[index].fields.push(field),
                    _ => problems.push(line.to_owned()),
                }
            } else if let (Some(package), Some(name)) = (package, line.split_whitespace().next()) {
                current = match names.get(&(package.alias, name)) {
                    Some(Named::Message(id)) => Some(*id),
                    _ => None,
                };
            }
        }
    }
    (tables, problems)
}

/// First pass: assigns an index to every type, so that the second can refer forward.
fn declare(texts: &[&'static str], tables: &mut Tables) -> Names {
    let mut names = Names::new();
    for text in texts {
        let mut package = None;
        for line in text.lines() {
            if let Some(header) = package_line(line) {
                package = Some(header);
                continue;
            }
            let (Some(package), false) = (package, line.is_empty() || line.starts_with([' ', '#'])) else {
                continue;
            };
            if let Some((name, values)) = line.split_once(" = ") {
                let id = EnumId(tables.enums.len());
                tables.enums.push(EnumDef { name, values: values_of(values) });
                names.insert((package.alias, name), Named::Enum(id));
                continue;
            }
            let (head, description) = line.split_once(" : ").unwrap_or((line, ""));
            let mut words = head.split(' ');
            let name = words.next().unwrap_or_default();
            let marks: Vec<&str> = words.collect();
            let (object, atomic) = (marks.contains(&"object"), marks.contains(&"atomic"));
            let id = TypeId(tables.types.len());
            let is_list = marks.contains(&"list");
            let union = marks.iter().find_map(|mark| union(mark.strip_prefix("union=")?));
            let fields = Vec::new();
            let definition = TypeDef { package, name, object, atomic, is_list, union, description, fields };
            tables.by_openapi.insert(definition.openapi_name(), id);
            if object {
                tables.kinds.insert((package.group, package.version, name), id);
            }
            tables.types.push(definition);
            names.insert((package.alias, name), Named::Message(id));
        }
    }
    names
}

/// Splits values, of which those that are empty or have spaces stand in quotes.
fn values_of(text: &'static str) -> Vec<&'static str> {
    let (mut values, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let (value, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(' ').unwrap_or((rest, "")),
        };
        values.push(value);
        rest = after.trim_start();
    }
    values
}

fn union(text: &'static str) -> Option<Union> {
    let (discriminator, fields) = text.split_once(':')?;
    Some(Union { discriminator, fields: fields.split(',').collect() })
}

fn package_line(line: &'static str) -> Option<Package> {
    let mut words = line.strip_prefix("package ")?.split_whitespace();
    let (alias, group, version, openapi) = (words.next()?, words.next()?, words.next()?, words.next()?);
    Some(Package { alias, group: if group == "-" { "" } else { group }, version, openapi })
}

fn field(line: &'static str, alias: &'static str, names: &Names) -> Option<Field> {
    let (head, description) = line.split_once(" : ").unwrap_or((line, ""));
    let mut words = head.split(' ').filter(|word| !word.is_empty());
    let number = words.next()?.parse().ok()?;
    let marked = words.next()?;
    let kind = type_ref(words.next()?, alias, names)?;
    let name = marked.trim_end_matches(['!', '+', '~']);
    let mut field = Field {
        number,
        name: if name == "." { "" } else { name },
        kind,
        required: marked.contains('!'),
        always_written: marked.contains(['!', '+']) && !marked.contains('~'),
        omit_zero: marked.contains('~'),
        list: None,
        atomic_map: false,
        granular_map: false,
        patch: PatchStrategy::default(),
        default: None,
        fill: None,
        absent: None,
        description,
    };
    for word in words {
        let (key, value) = word.split_once('=')?;
        match key {
            "patch" => field.patch = patch_strategy(value),
            "list" => field.list = Some(list_type(value)?),
            "default" => field.default = Some(value),
            "fill" => field.fill = Some(value),
            "absent" => field.absent = Some(value),
            "map" => (field.atomic_map, field.granular_map) = (value == "atomic", value == "granular"),
            _ => return None,
        }
    }
    Some(field)
}

fn patch_strategy(text: &'static str) -> PatchStrategy {
    let (strategies, merge_key) = text.split_once(':').unwrap_or((text, ""));
    let has = |name| strategies.split(',').any(|strategy| strategy == name);
    PatchStrategy { merge: has("merge"), retain_keys: has("retainKeys"), merge_key, text: strategies }
}

fn list_type(text: &'static str) -> Option<ListType> {
    match text.split_once(':') {
        Some(("map", keys)) => Some(ListType::Map(keys.split(',').collect())),
        None if text == "atomic" => Some(ListType::Atomic),
        None if text == "set" => Some(ListType::Set),
        _ => None,
    }
}

fn type_ref(text: &'static str, alias: &'static str, names: &Names) -> Option<TypeRef> {
    if let Some(inner) = text.strip_prefix('*') {
        return Some(TypeRef::Pointer(Box::new(type_ref(inner, alias, names)?)));
    }
    if let Some(inner) = text.strip_prefix("[]") {
        return Some(TypeRef::List(Box::new(type_ref(inner, alias, names)?)));
    }
    if let Some(inner) = text.strip_prefix("map[string]") {
        return Some(TypeRef::Map(Box::new(type_ref(inner, alias, names)?)));
    }
    let schema = || match names.get(&("apiextensions", "JSONSchemaProps")) {
        Some(Named::Message(id)) => Some(*id),
        _ => None,
    };
    Some(match text {
        "string" => TypeRef::String,
        "int32" => TypeRef::Int32,
        "int64" => TypeRef::Int64,
        "float64" => TypeRef::Float64,
        "bool" => TypeRef::Bool,
        "bytes" => TypeRef::Bytes,
        "Time" => TypeRef::Time,
        "MicroTime" => TypeRef::MicroTime,
        "Quantity" => TypeRef::Quantity,
        "IntOrString" => TypeRef::IntOrString,
        "RawExtension" => TypeRef::Raw(RawKind::Extension),
        "FieldsV1" => TypeRef::Raw(RawKind::Fields),
        "JSON" => TypeRef::Raw(RawKind::Json),
        "JSONSchemaPropsOrArray" => TypeRef::SchemaOrArray(schema()?),
        "JSONSchemaPropsOrBool" => TypeRef::SchemaOrBool(schema()?),
        "JSONSchemaPropsOrStringArray" => TypeRef::SchemaOrStrings(schema()?),
        _ => {
            let key = text.split_once('.').unwrap_or((alias, text));
            match names.get(&key)? {
                Named::Message(id) => TypeRef::Message(*id),
                Named::Enum(id) => TypeRef::Enum(*id),
            }
        }
    })
}
