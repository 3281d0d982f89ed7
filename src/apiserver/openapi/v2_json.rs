//! Renders OpenAPI v2 as JSON, which client generators read. It is converted from the v3 documents: bodies and responses, which v3
//! describes per media type, become one parameter and one schema, and references point to `definitions`.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::v2::Parts;

/// Renders one document from all v3 documents.
pub(super) fn render(documents: impl Iterator<Item = Value>) -> Vec<u8> {
    let Parts { paths, schemas } =
        Parts::of(documents, |item| path_item(item).to_string(), |definition| schema(definition).to_string());
    let info = json!({"title": "Kubernetes", "version": "1.36"});
    let mut text = format!("{{\"swagger\":\"2.0\",\"info\":{info},\"paths\":");
    members(&mut text, paths);
    text.push_str(",\"definitions\":");
    members(&mut text, schemas);
    let schemes = json!({"BearerToken": super::bearer_token()});
    text.push_str(&format!(",\"securityDefinitions\":{schemes},\"security\":[{{\"BearerToken\":[]}}]}}"));
    text.into_bytes()
}

/// Writes a JSON object whose values are rendered already.
fn members(text: &mut String, written: BTreeMap<String, String>) {
    text.push('{');
    for (at, (name, value)) in written.into_iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(&Value::String(name).to_string());
        text.push(':');
        text.push_str(&value);
    }
    text.push('}');
}

fn path_item(item: &Value) -> Value {
    let members = item.as_object().into_iter().flatten();
    let members = members.map(|(name, member)| {
        let shown = match name.as_str() {
            "parameters" => parameters(member),
            _ if member.is_object() => operation(member),
            _ => member.clone(),
        };
        (name.clone(), shown)
    });
    members.collect::<Map<_, _>>().into()
}

fn operation(operation: &Value) -> Value {
    let mut shown = Map::new();
    for (name, member) in operation.as_object().into_iter().flatten() {
        match name.as_str() {
            "parameters" | "requestBody" | "responses" => {}
            _ => drop(shown.insert(name.clone(), member.clone())),
        }
    }
    let mut all = parameters(&operation["parameters"]);
    let body = &operation["requestBody"];
    if let (Some(content), Some(all)) = (body["content"].as_object(), all.as_array_mut()) {
        let described = content.values().next().map_or(Value::Null, |media| schema(&media["schema"]));
        let mut parameter = json!({"in": "body", "name": "body", "schema": described});
        if body["required"] == true {
            parameter["required"] = true.into();
        }
        all.push(parameter);
        shown.insert("consumes".to_owned(), content.keys().cloned().collect());
    }
    if all.as_array().is_some_and(|all| !all.is_empty()) {
        shown.insert("parameters".to_owned(), all);
    }
    let mut produced = Vec::new();
    let mut answers = Map::new();
    for (code, answer) in operation["responses"].as_object().into_iter().flatten() {
        let mut described = json!({"description": answer["description"]});
        if let Some(content) = answer["content"].as_object() {
            if let Some(media) = content.values().next() {
                described["schema"] = schema(&media["schema"]);
            }
            produced = content.keys().cloned().collect();
        }
        answers.insert(code.clone(), described);
    }
    shown.insert("produces".to_owned(), produced.into());
    shown.insert("responses".to_owned(), answers.into());
    shown.insert("schemes".to_owned(), json!(["https"]));
    shown.into()
}

/// Converts parameters: the members of their schemas become their own.
fn parameters(parameters: &Value) -> Value {
    let shown = parameters.as_array().into_iter().flatten().map(|parameter| {
        let mut members = parameter.as_object().cloned().unwrap_or_default();
        if let Some(Value::Object(kind)) = members.shift_remove("schema") {
            members.extend(kind);
        }
        Value::Object(members)
    });
    shown.collect()
}

/// Converts a v3 schema to v2: references have no siblings, unions of types and null do not exist.
fn schema(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
    let mut shown = Map::new();
    if let Some(text) = members.get("description") {
        shown.insert("description".to_owned(), text.clone());
    }
    if let Some(reference) = reference {
        shown.insert("$ref".to_owned(), reference.replace("#/components/schemas/", "#/definitions/").into());
        // References have no siblings but extensions.
        let extensions = members.iter().filter(|(name, _)| name.starts_with("x-"));
        shown.extend(extensions.map(|(name, value)| (name.clone(), value.clone())));
        return shown.into();
    }
    for (name, member) in members {
        let value = match (name.as_str(), member) {
            ("items" | "additionalProperties", Value::Object(_)) => self::schema(member),
            ("properties", Value::Object(properties)) => properties
                .iter()
                .map(|(name, property)| (name.clone(), self::schema(property)))
                .collect::<Map<_, _>>()
                .into(),
            ("oneOf" | "anyOf" | "nullable" | "default", _) => continue,
            _ => member.clone(),
        };
        shown.insert(name.clone(), value);
    }
    if members.contains_key("oneOf") || members.contains_key("anyOf") {
        shown.entry("type").or_insert_with(|| "string".into());
    }
    shown.into()
}
