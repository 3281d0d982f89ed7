//! What a JDBC sink takes for a configuration, and in which words others are refused.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::JDBC_SINK;

type Config = BTreeMap<String, String>;

/// Why a configuration is not stored.
pub(super) enum Refusal {
    /// 400, with these complaints.
    Invalid(Vec<String>),
    /// 500: a plugin that nobody has.
    NoPlugin(String),
}

/// The complaints about a configuration, by key.
fn complaints(config: &Config) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    let mut complain = |key: &'static str, words: String| all.push((key, words));
    for key in ["connection.url"] {
        if !config.contains_key(key) {
            complain(key, format!("Missing required configuration \"{key}\" which has no default value."));
        }
    }
    for (key, least) in [("tasks.max", 1), ("batch.size", 0), ("connection.attempts", 1)] {
        let Some(value) = config.get(key) else { continue };
        match value.parse::<i32>() {
            Err(_) => complain(
                key,
                format!("Invalid value {value} for configuration {key}: Not a number of type INT"),
            ),
            Ok(number) if number < least => {
                complain(
                    key,
                    format!("Invalid value {value} for configuration {key}: Value must be at least {least}"),
                );
            }
            Ok(_) => {}
        }
    }
    for (key, values) in [
        ("insert.mode", &["insert", "upsert", "update"][..]),
        ("pk.mode", &["none", "kafka", "record_key", "record_value"]),
        ("errors.tolerance", &["none", "all"]),
    ] {
        let Some(value) = config.get(key).filter(|value| !values.contains(&value.to_lowercase().as_str()))
        else {
            continue;
        };
        complain(key, format!("Invalid value {value} for configuration {key}: Invalid enumerator"));
    }
    let deletes = config.get("delete.enabled").is_some_and(|value| value == "true");
    if deletes && config.get("pk.mode").is_none_or(|mode| mode != "record_key") {
        complain("delete.enabled", "Deletes are only supported for pk.mode record_key".to_owned());
    }
    if !config.contains_key("topics") && !config.contains_key("topics.regex") {
        complain("topics", "Must configure one of topics or topics.regex".to_owned());
    }
    for name in transforms(config) {
        if !config.contains_key(&format!("transforms.{name}.type")) {
            let words = format!(
                "Missing required configuration \"transforms.{name}.type\" which has no default value."
            );
            complain("transforms", words);
        }
    }
    all
}

/// The transforms of a configuration, in their order.
pub(super) fn transforms(config: &Config) -> impl Iterator<Item = &str> {
    let list = config.get("transforms").map_or("", String::as_str);
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

pub(super) fn validate(config: &Config) -> Result<(), Refusal> {
    let Some(plugin) = config.get("connector.class") else {
        let shown = "Connector config contains no connector type".to_owned();
        return Err(Refusal::Invalid(vec![shown]));
    };
    if plugin != JDBC_SINK {
        return Err(Refusal::NoPlugin(format!(
            "Failed to find any class that implements Connector and which name matches {plugin}, available connectors are: \
             PluginDesc{{klass=class {JDBC_SINK}, type=sink}}"
        )));
    }
    let found = complaints(config);
    if found.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Invalid(found.into_iter().map(|(_, words)| words).collect()))
    }
}

/// The message of a refusal.
pub(super) fn message(complaints: &[String]) -> String {
    format!(
        "Connector configuration is invalid and contains the following {} error(s):\n{}\nYou can also find the above list of errors \
         at the endpoint `/connector-plugins/{{connectorType}}/config/validate`",
        complaints.len(),
        complaints.join("\n")
    )
}

/// What the endpoint for validations answers.
pub(super) fn report(config: &Config) -> Value {
    let found = complaints(config);
    let keys: Vec<_> = found
        .iter()
        .map(|(key, words)| {
            json!({"definition": {"name": key}, "value": {"name": key, "value": config.get(*key), "errors": [words]}})
        })
        .collect();
    json!({"name": JDBC_SINK, "error_count": found.len(), "groups": [], "configs": keys})
}
