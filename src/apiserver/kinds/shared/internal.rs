//! Converts values to the API server's internal form, in which some of its errors show them.

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::go;
use serde_json::Value;

use crate::builtin::{internal, tables};
use crate::kinds::field::Field;

/// Converts the part to its internal form; `name` is its published type (`io.k8s.api.apps.v1.DeploymentStrategy`).
pub(crate) fn form(part: &Field<'_>, name: &str) -> Value {
    let id = tables().by_openapi_name(name);
    id.map(|id| internal(tables(), id, &part.as_sent())).unwrap_or_default()
}

/// Like [`form`], as the value of an error with fields in the order of the type, where errors otherwise
/// sort them by name.
pub(crate) fn shown(part: &Field<'_>, name: &str) -> BadValue {
    as_it_stands(&form(part, name))
}

/// Formats the value of an error with its members in their given order.
pub(crate) fn as_it_stands(value: &Value) -> BadValue {
    let mut out = String::new();
    write(value, &mut out);
    BadValue::Verbatim(out)
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            for (at, (name, member)) in members.iter().enumerate() {
                out.push(if at == 0 { '{' } else { ',' });
                go::json::push_string(out, name);
                out.push(':');
                write(member, out);
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                out.push(if at == 0 { '[' } else { ',' });
                write(item, out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&go::json::text(value));
        }
    }
}
