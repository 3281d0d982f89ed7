//! Generates definitions whose schemas are large in various ways.

use serde_json::{Map, Value, json};

use crate::bodies::definition;

/// Returns definitions with schemas of about `size` bytes each.
#[must_use]
pub fn definitions(size: usize) -> Vec<(&'static str, Value)> {
    let strings = |count: usize, of: Value| -> Map<String, Value> {
        (0..count).map(|n| (format!("q{n}"), of.clone())).collect()
    };
    let text = json!({"type": "string"});
    let with_default = json!({"type": "string", "default": "x".repeat(20)});
    let within = json!({"type": "object", "default": {}, "properties": strings(10, with_default)});
    let ruled =
        json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": [{"rule": "self.size() < 5"}]});
    let values: Vec<String> = (0..size / 10).map(|n| format!("e{n}")).collect();
    let of = |properties: Map<String, Value>| json!({"type": "object", "properties": properties});
    let branches: Vec<Value> = (0..size / 60).map(|n| json!({"properties": {format!("q{n}"): {}}})).collect();
    vec![
        ("properties", definition(&of(strings(size / 28, text.clone())))),
        ("defaults", definition(&of(strings(size / 600, within)))),
        ("values", definition(&of(strings(1, json!({"type": "string", "enum": values}))))),
        ("rules", definition(&of(strings(size / 120, ruled)))),
        (
            "branches",
            definition(&json!({"type": "object", "properties": strings(3, text), "anyOf": branches})),
        ),
    ]
}

/// Returns a definition with so many versions of the same schema, and one with so many printer columns.
#[must_use]
pub fn wide(versions: usize, columns: usize) -> Vec<(&'static str, Value)> {
    let properties: Map<String, Value> = (0..300)
        .map(|n| (format!("p{n}"), json!({"type": "string", "description": "d".repeat(50)})))
        .collect();
    let mut many = definition(&json!({"type": "object", "properties": properties}));
    let first = many["spec"]["versions"][0].clone();
    many["spec"]["versions"] = (1..=versions)
        .map(|n| {
            let mut version = first.clone();
            version["name"] = format!("v{n}").into();
            version["storage"] = (n == 1).into();
            version
        })
        .collect();
    let mut printed = definition(&json!({"type": "object"}));
    printed["spec"]["versions"][0]["additionalPrinterColumns"] = (0..columns)
        .map(|n| json!({"name": format!("c{n}"), "type": "string", "jsonPath": ".spec..a"}))
        .collect();
    vec![("versions", many), ("columns", printed)]
}
