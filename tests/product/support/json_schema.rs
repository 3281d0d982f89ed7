//! A validator of JSON Schema: of the keywords that our schemas use; it fails on any other.

use regex_automata::meta::Regex;
use serde_json::Value;

/// Everything in `value` that `schema` does not allow.
pub(crate) fn complaints(schema: &Value, value: &Value) -> Vec<String> {
    below(schema, schema, value, "")
}

fn below(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, asked) in schema.as_object().unwrap() {
        let number = |value: &Value| value.as_f64().unwrap();
        let step =
            |schema: &Value, value: &Value, step: &str| below(root, schema, value, &format!("{path}/{step}"));
        let holds = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => true,
            "$ref" => {
                let target = root.pointer(asked.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
                found.extend(below(root, target, value, path));
                true
            }
            "type" => is_of_type(asked, value),
            "enum" => asked.as_array().unwrap().contains(value),
            "const" => asked == value,
            "minimum" => value.as_f64().is_none_or(|value| value >= number(asked)),
            "maximum" => value.as_f64().is_none_or(|value| value <= number(asked)),
            "pattern" => {
                let pattern = Regex::new(asked.as_str().unwrap()).unwrap();
                value.as_str().is_none_or(|text| pattern.is_match(text))
            }
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() as f64 >= number(asked)),
            "minItems" => value.as_array().is_none_or(|items| items.len() as f64 >= number(asked)),
            "maxItems" => value.as_array().is_none_or(|items| items.len() as f64 <= number(asked)),
            "minProperties" => value.as_object().is_none_or(|map| map.len() as f64 >= number(asked)),
            "maxProperties" => value.as_object().is_none_or(|map| map.len() as f64 <= number(asked)),
            "required" => {
                asked.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
            }
            "properties" => {
                for (key, schema) in asked.as_object().unwrap() {
                    found.extend(value.get(key).into_iter().flat_map(|value| step(schema, value, key)));
                }
                true
            }
            "additionalProperties" => {
                let others = undeclared(schema, value);
                if asked.is_object() {
                    others.for_each(|(key, value)| found.extend(step(asked, value, key)));
                    true
                } else {
                    asked.as_bool().unwrap() || others.count() == 0
                }
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                items.for_each(|(at, item)| found.extend(step(asked, item, &at.to_string())));
                true
            }
            "oneOf" | "anyOf" => {
                let fits = |schema: &&Value| below(root, schema, value, path).is_empty();
                let fitting = asked.as_array().unwrap().iter().filter(fits).count();
                fitting == 1 || (keyword == "anyOf" && fitting > 1)
            }
            "if" => {
                if below(root, asked, value, path).is_empty() {
                    found.extend(below(root, &schema["then"], value, path));
                }
                true
            }
            "then" => schema.get("if").is_some(),
            other => panic!("the validator does not know `{other}`"),
        };
        if !holds {
            found.push(format!("{path}: {keyword}: {asked}: {value}"));
        }
    }
    found
}

/// The entries of an object that are none of its schema's properties.
fn undeclared<'v>(schema: &Value, value: &'v Value) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.as_object().into_iter().flatten().filter(|(key, _)| schema["properties"].get(key).is_none())
}

fn is_of_type(asked: &Value, value: &Value) -> bool {
    match asked.as_str() {
        None => asked.as_array().unwrap().iter().any(|one| is_of_type(one, value)),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("null") => value.is_null(),
        Some(other) => panic!("no type `{other}`"),
    }
}
