//! The published JSON Schemas against what is really read and printed: a validator of the keywords that they use, which
//! fails on any other.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{admit, fixture};
use crate::repository::root;

/// Everything in `value` that `schema` does not allow.
fn complaints(root: &Value, schema: &Value, value: &Value, path: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (keyword, asked) in schema.as_object().unwrap() {
        let number = |value: &Value| value.as_f64().unwrap();
        let below = |schema: &Value, value: &Value, step: &str| {
            complaints(root, schema, value, &format!("{path}/{step}"))
        };
        let holds = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => true,
            "$ref" => {
                let target = root.pointer(asked.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
                found.extend(complaints(root, target, value, path));
                true
            }
            "type" => is_of_type(asked, value),
            "enum" => asked.as_array().unwrap().contains(value),
            "const" => asked == value,
            "minimum" => value.as_f64().is_none_or(|value| value >= number(asked)),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() as f64 >= number(asked)),
            "minItems" => value.as_array().is_none_or(|items| items.len() as f64 >= number(asked)),
            "minProperties" => value.as_object().is_none_or(|map| map.len() as f64 >= number(asked)),
            "maxProperties" => value.as_object().is_none_or(|map| map.len() as f64 <= number(asked)),
            "required" => {
                asked.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
            }
            "properties" => {
                for (key, schema) in asked.as_object().unwrap() {
                    found.extend(value.get(key).into_iter().flat_map(|value| below(schema, value, key)));
                }
                true
            }
            "additionalProperties" => {
                let known = |key: &str| schema["properties"].get(key).is_some();
                let others = value.as_object().into_iter().flatten().filter(|(key, _)| !known(key));
                match asked {
                    Value::Bool(allowed) => *allowed || others.count() == 0,
                    schema => {
                        others.for_each(|(key, value)| found.extend(below(schema, value, key)));
                        true
                    }
                }
            }
            "items" => {
                let items = value.as_array().into_iter().flatten().enumerate();
                items.for_each(|(at, item)| found.extend(below(asked, item, &at.to_string())));
                true
            }
            "oneOf" => {
                let fits = |schema: &&Value| complaints(root, schema, value, path).is_empty();
                asked.as_array().unwrap().iter().filter(fits).count() == 1
            }
            other => panic!("the validator does not know `{other}`"),
        };
        if !holds {
            found.push(format!("{path}: {keyword}: {asked}: {value}"));
        }
    }
    found
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

fn schema(of: &str) -> Value {
    serde_json::from_slice(&admit(&root(), &["--print-schema", of]).stdout).unwrap()
}

pub(super) fn assert_is_result(document: &Value) {
    let schema = schema("result");
    assert_eq!(complaints(&schema, &schema, document, ""), Vec::<String>::new());
}

#[test]
fn results_follow_their_schema() {
    for arguments in [vec!["-o", "json"], vec!["-o", "json", "--run", "e"], vec!["-o", "json", "--fail-fast"]]
    {
        let output = admit(&fixture(), &arguments);
        assert_is_result(&serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}")));
    }
    let shipped = admit(&root(), &["-o", "json", "policies"]);
    assert_is_result(&serde_json::from_slice(&shipped.stdout).unwrap());
}

#[test]
fn what_is_no_result_does_not() {
    let schema = schema("result");
    for wrong in [
        r#"{"suites": []}"#,
        r#"{"suites": [], "summary": {"cases": -1, "passed": 0, "failed": 0, "errored": 0}}"#,
        r#"{"suites": [{"file": "a", "cases": [{"name": "n"}]}], "summary": {"cases": 0, "passed": 0, "failed": 0, "errored": 0}}"#,
        r#"{"suites": [], "summary": {"cases": 0, "passed": 0, "failed": 0, "errored": 0}, "more": 1}"#,
    ] {
        let value = serde_json::from_str(wrong).unwrap();
        assert_ne!(complaints(&schema, &schema, &value, ""), Vec::<String>::new(), "{wrong}");
    }
}

#[test]
fn shipped_suites_follow_their_schema() {
    let schema = schema("suite");
    let mut found = 0;
    for folder in fs::read_dir(root().join("policies")).unwrap() {
        for suite in suites(&folder.unwrap().path()) {
            found += 1;
            for document in admit_policy::manifest::read("", &fs::read_to_string(&suite).unwrap()).unwrap() {
                let complaints = complaints(&schema, &schema, &document.value, "");
                assert_eq!(complaints, Vec::<String>::new(), "{}", suite.display());
            }
        }
    }
    assert!(found > 4, "only {found} suites");
    let broken = fixture().join("broken.suite.yaml");
    let broken = admit_policy::manifest::read("", &fs::read_to_string(broken).unwrap()).unwrap();
    let one = |document: &admit_policy::manifest::Document| {
        complaints(&schema, &schema, &document.value, "").is_empty()
    };
    assert!(!broken.iter().all(one), "broken.suite.yaml follows the schema");
}

fn suites(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().ends_with(".suite.yaml")).collect()
}
