//! Renders OpenAPI v2 in protobuf, which kubectl requests as a fallback for kinds that no v3 document
//! has, such as `List`, and for unknown kinds.
//!
//! Input: the v3 documents. Output: an `openapi.v2.Document` message with the same definitions, and for each operation on
//! a kind its path, kind and parameters. Other parts of the format are left out.

use std::collections::BTreeMap;

use admit_apimachinery::pointer;
use serde_json::{Map, Value};

/// The media type of responses; requests may also have `v2@v1.0` in place of `v2.v1.0`.
pub(super) const CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The paths and schemas of v3 documents, by name; of duplicates the first.
pub(super) struct Parts<T> {
    pub(super) paths: BTreeMap<String, T>,
    pub(super) schemas: BTreeMap<String, T>,
}

impl<T> Parts<T> {
    /// Converts each part at once, so that no document is kept in memory.
    pub(super) fn of(
        documents: impl Iterator<Item = Value>,
        path_item: impl Fn(&Value) -> T,
        schema: impl Fn(&Value) -> T,
    ) -> Self {
        let mut parts = Self { paths: BTreeMap::new(), schemas: BTreeMap::new() };
        for document in documents {
            for (path, item) in members(&document, "/paths") {
                parts.paths.entry(path.clone()).or_insert_with(|| path_item(item));
            }
            for (name, definition) in members(&document, "/components/schemas") {
                parts.schemas.entry(name.clone()).or_insert_with(|| schema(definition));
            }
        }
        parts
    }
}

fn members<'d>(document: &'d Value, pointer: &str) -> impl Iterator<Item = (&'d String, &'d Value)> {
    document.pointer(pointer).and_then(Value::as_object).into_iter().flatten()
}

/// Renders one document from all v3 documents.
pub(super) fn render(documents: impl Iterator<Item = Value>) -> Vec<u8> {
    let Parts { paths, schemas } = Parts::of(documents, path_item, schema);
    let mut info = Message::default();
    info.text(1, "Kubernetes");
    info.text(2, "1.36");
    let mut all_paths = Message::default();
    for (path, item) in &paths {
        all_paths.message(2, &named(path, item));
    }
    let mut definitions = Message::default();
    for (name, definition) in &schemas {
        definitions.message(1, &named(name, definition));
    }
    let mut document = Message::default();
    document.text(1, "2.0");
    document.message(2, &info);
    document.message(8, &all_paths);
    document.message(9, &definitions);
    document.0
}

const METHODS_BY_NUMBER: [(u32, &str); 7] =
    [(2, "get"), (3, "put"), (4, "post"), (5, "delete"), (6, "options"), (7, "head"), (8, "patch")];

fn path_item(item: &Value) -> Message {
    let mut message = Message::default();
    for (number, method) in METHODS_BY_NUMBER {
        if let Some(operation) = item.get(method) {
            message.message(number, &self::operation(operation));
        }
    }
    parameters(&mut message, 9, item);
    message
}

fn operation(operation: &Value) -> Message {
    let mut message = Message::default();
    if let Some(description) = operation.get("description").and_then(Value::as_str) {
        message.text(3, description);
    }
    parameters(&mut message, 8, operation);
    message.message(9, &Message::default());
    extensions(&mut message, 13, operation.as_object());
    message
}

/// Writes the parameters of a path or of an operation; there are no body parameters.
fn parameters(message: &mut Message, number: u32, owner: &Value) {
    for parameter in owner.get("parameters").and_then(Value::as_array).into_iter().flatten() {
        let text = |pointer: &str| pointer::text(parameter, pointer);
        let in_path = text("/in") == "path";
        let (place, kind) = if in_path { (4, 5) } else { (3, 6) };
        let mut shown = Message::default();
        if in_path {
            shown.number(1, 1);
        }
        for (number, pointer) in [(2, "/in"), (3, "/description"), (4, "/name"), (kind, "/schema/type")] {
            shown.text(number, text(pointer));
        }
        // Nesting: parameter item, parameter, non-body parameter, query or path parameter.
        message.message(number, &Message::of(1, &Message::of(2, &Message::of(place, &shown))));
    }
}

/// Converts a v3 schema to v2: references have no siblings, unions of types do not exist.
fn schema(schema: &Value) -> Message {
    let mut message = Message::default();
    let text = |name: &str| schema.get(name).and_then(Value::as_str);
    let wrapped = schema.pointer("/allOf/0/$ref").and_then(Value::as_str);
    if let Some(reference) = text("$ref").or(wrapped) {
        message.text(1, &reference.replace("#/components/schemas/", "#/definitions/"));
    }
    for (number, name) in [(2, "format"), (4, "description")] {
        if let Some(text) = text(name) {
            message.text(number, text);
        }
    }
    for required in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        message.text(19, required);
    }
    match schema.get("additionalProperties") {
        Some(inner @ Value::Object(_)) => message.message(21, &Message::of(1, &self::schema(inner))),
        Some(Value::Bool(allowed)) => {
            let mut item = Message::default();
            item.number(2, u64::from(*allowed));
            message.message(21, &item);
        }
        _ => {}
    }
    if let Some(kind) = text("type").or_else(|| schema.get("oneOf").map(|_| "string")) {
        let mut item = Message::default();
        item.text(1, kind);
        message.message(22, &item);
    }
    if let Some(items) = schema.get("items") {
        message.message(23, &Message::of(1, &self::schema(items)));
    }
    if let Some(Value::Object(properties)) = schema.get("properties") {
        let mut all = Message::default();
        for (name, property) in properties {
            all.message(1, &named(name, &self::schema(property)));
        }
        message.message(25, &all);
    }
    extensions(&mut message, 31, schema.as_object());
    message
}

/// Writes the `x-kubernetes-*` members. Their values are YAML, of which JSON is a subset.
fn extensions(message: &mut Message, number: u32, members: Option<&Map<String, Value>>) {
    for (name, value) in members.into_iter().flatten().filter(|(name, _)| name.starts_with("x-kubernetes-")) {
        let mut any = Message::default();
        any.text(2, &value.to_string());
        message.message(number, &named(name, &any));
    }
}

fn named(name: &str, value: &Message) -> Message {
    let mut message = Message::default();
    message.text(1, name);
    message.message(2, value);
    message
}

/// An encoded protobuf message.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    /// Encodes a message with one field.
    fn of(number: u32, value: &Self) -> Self {
        let mut message = Self::default();
        message.message(number, value);
        message
    }

    fn text(&mut self, number: u32, text: &str) {
        self.bytes(number, text.as_bytes());
    }

    fn message(&mut self, number: u32, message: &Self) {
        self.bytes(number, &message.0);
    }

    fn number(&mut self, number: u32, value: u64) {
        self.varint(u64::from(number) << 3);
        self.varint(value);
    }

    fn bytes(&mut self, number: u32, bytes: &[u8]) {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.extend(u8::try_from(value));
    }
}
