//! OpenAPI v2 as JSON, which generators of clients read. It is made from the v3 documents: what they say of bodies and answers
//! by media type stands as a parameter and once here, and references lead to `definitions`.

use serde_json::{Map, Value, json};

/// One document out of all v3 documents.
pub(super) fn render(documents: &[Value]) -> Value {
    let mut paths: Vec<(&String, &Value)> = super::v2::members(documents, "/paths").collect();
    let mut schemas: Vec<(&String, &Value)> = super::v2::members(documents, "/components/schemas").collect();
    for list in [&mut paths, &mut schemas] {
        list.sort_by_key(|(name, _)| *name);
        list.dedup_by(|(left, _), (right, _)| left == right);
    }
    let paths: Map<String, Value> =
        paths.into_iter().map(|(path, item)| (path.clone(), path_item(item))).collect();
    let definitions: Map<String, Value> =
        schemas.into_iter().map(|(name, definition)| (name.clone(), schema(definition))).collect();
    json!({
        "swagger": "2.0", "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": paths, "definitions": definitions
    })
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

/// Parameters whose types stand in them and not in a schema of theirs.
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

/// A v3 schema in v2's words: references stand alone, unions of types and nulls do not exist.
fn schema(schema: &Value) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let reference = schema.get("$ref").or_else(|| schema.pointer("/allOf/0/$ref")).and_then(Value::as_str);
    let mut shown = Map::new();
    if let Some(text) = members.get("description") {
        shown.insert("description".to_owned(), text.clone());
    }
    if let Some(reference) = reference {
        shown.insert("$ref".to_owned(), reference.replace("#/components/schemas/", "#/definitions/").into());
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
