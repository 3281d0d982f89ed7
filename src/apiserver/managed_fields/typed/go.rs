//! Formats values as Go prints them, for error messages.

use admit_apimachinery::go::quote;
use serde_json::Value;

/// Formats a value like Go's `%v`.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let mut pairs: Vec<String> =
                members.iter().map(|(name, value)| format!("{name}:{}", plain(value))).collect();
            pairs.sort_unstable();
            format!("map[{}]", pairs.join(" "))
        }
        scalar => scalar.to_string(),
    }
}

/// Formats a value like Go's `%#v`.
pub(super) fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(source).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let mut pairs: Vec<String> =
                members.iter().map(|(name, value)| format!("{}:{}", quote(name), source(value))).collect();
            pairs.sort_unstable();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
