//! Builds the ownership types of a custom resource from its structural schema.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Field, List, ListRelation, Map, ScalarKind, Schema, Type, TypeId, builtin};

/// Returns the schema of the version and its root type. A version without a schema is typed by its values.
pub(super) fn from_definition(version: &Value) -> (Schema, TypeId) {
    let mut schema = Schema::new();
    let metadata = builtin::object_metadata(&mut schema);
    let mut converter = Converter { schema: &mut schema, metadata };
    let root = converter.node(version, false);
    converter.make_object(root);
    (schema, root)
}

struct Converter<'s> {
    schema: &'s mut Schema,
    metadata: TypeId,
}

impl Converter<'_> {
    /// Converts a schema node. `open`: a schema around it preserves unknown members.
    fn node(&mut self, node: &Value, open: bool) -> TypeId {
        let open = open || flag(node, "x-kubernetes-preserve-unknown-fields");
        let converted = match node.get("type").and_then(Value::as_str) {
            Some("object") => Type { map: Some(self.map(node, open)), ..Type::default() },
            Some("array") => Type { list: Some(self.list(node, open)), ..Type::default() },
            Some("integer" | "number") => scalar(ScalarKind::Numeric),
            Some("string") => scalar(text_kind(node)),
            Some("boolean") => scalar(ScalarKind::Boolean),
            _ => Type {
                scalar: Some(ScalarKind::Untyped),
                list: Some(self.list(node, open)),
                map: Some(self.map(node, open)),
            },
        };
        let id = self.schema.add(converted);
        if flag(node, "x-kubernetes-embedded-resource") {
            self.make_object(id);
        }
        id
    }

    fn map(&mut self, node: &Value, open: bool) -> Map {
        let properties = node.get("properties").and_then(Value::as_object);
        let mut fields = BTreeMap::new();
        for (name, property) in properties.into_iter().flatten() {
            let default = property.get("default").cloned();
            fields.insert(name.clone(), Field { kind: self.node(property, open), default });
        }
        let others = match node.get("additionalProperties") {
            Some(inner @ Value::Object(_)) => Some(self.node(inner, open)),
            Some(Value::Bool(allowed)) => allowed.then_some(Schema::DEDUCED),
            _ => (open || fields.is_empty()).then_some(Schema::DEDUCED),
        };
        let atomic = node.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic");
        Map { fields, others, atomic }
    }

    fn list(&mut self, node: &Value, open: bool) -> List {
        let element = match node.get("items") {
            Some(items) => self.node(items, open),
            None => Schema::ATOMIC,
        };
        let keys = node.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
        let relation = match node.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => ListRelation::Set,
            Some("map") => ListRelation::Map(
                keys.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
            ),
            _ => ListRelation::Atomic,
        };
        List { element, relation }
    }

    /// Adds the members that every object has to a type.
    fn make_object(&mut self, id: TypeId) {
        let text = self.schema.add(scalar(ScalarKind::String));
        let mut object = self.schema.get(id).clone();
        let map = object.map.get_or_insert_default();
        for (name, kind) in [("apiVersion", text), ("kind", text), ("metadata", self.metadata)] {
            map.fields.insert(name.to_owned(), Field { kind, default: None });
        }
        self.schema.set(id, object);
    }
}

/// Strings with a format other than `byte` may be of other types elsewhere, so they are typed by their values.
fn text_kind(node: &Value) -> ScalarKind {
    match node.get("format").and_then(Value::as_str) {
        None | Some("" | "byte") => ScalarKind::String,
        Some(_) => ScalarKind::Untyped,
    }
}

fn scalar(kind: ScalarKind) -> Type {
    Type { scalar: Some(kind), ..Type::default() }
}

fn flag(node: &Value, name: &str) -> bool {
    node.get(name) == Some(&Value::Bool(true))
}
