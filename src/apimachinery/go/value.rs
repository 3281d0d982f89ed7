//! Formats decoded JSON as Go's `fmt` prints it: `%v`, `%s` and `%#v`.

use serde_json::{Map, Value};

use super::json::{number, type_name};
use super::quote;

/// How Go's `%s` prints a nil, and a type that is none.
pub const NO_TEXT: &str = "%!s(<nil>)";

/// Formats a value like `%v`.
///
/// ```
/// use admit_apimachinery::go;
/// use serde_json::json;
///
/// let value = json!({"b": [1, "x y", 1e7], "a": {"n": null, "k": true}});
/// assert_eq!(go::value::plain(&value), "map[a:map[k:true n:<nil>] b:[1 x y 1e+07]]");
/// ```
#[must_use]
pub fn plain(value: &Value) -> String {
    let mut out = String::new();
    print(value, &mut out, &mut |scalar, out| match scalar {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Number(double) => out.push_str(&number(double)),
        other => out.push_str(&other.to_string()),
    });
    out
}

/// Formats a value like `%s`, which complains of what is no text.
///
/// ```
/// use admit_apimachinery::go;
/// use serde_json::json;
///
/// assert_eq!(go::value::text(&json!(["a", 1, null])), "[a %!s(int64=1) %!s(<nil>)]");
/// ```
#[must_use]
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    print(value, &mut out, &mut |scalar, out| match scalar {
        Value::Null => out.push_str(NO_TEXT),
        Value::String(text) => out.push_str(text),
        other => out.push_str(&format!("%!s({}={})", type_name(other), plain(other))),
    });
    out
}

/// Formats a value like `%#v`.
///
/// ```
/// use admit_apimachinery::go;
/// use serde_json::json;
///
/// assert_eq!(go::value::source(&json!({"a": [null]})), r#"map[string]interface {}{"a":[]interface {}{interface {}(nil)}}"#);
/// ```
#[must_use]
pub fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => quote(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(source).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let pairs: Vec<String> =
                sorted(members).map(|(name, value)| format!("{}:{}", quote(name), source(value))).collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
        Value::Number(double) => number(double),
        Value::Bool(flag) => flag.to_string(),
    }
}

/// Prints lists and maps, and scalars as they are given.
fn print(value: &Value, out: &mut String, scalar: &mut dyn FnMut(&Value, &mut String)) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                print(item, out, scalar);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push_str("map[");
            for (index, (name, member)) in sorted(members).enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                out.push_str(name);
                out.push(':');
                print(member, out, scalar);
            }
            out.push(']');
        }
        other => scalar(other, out),
    }
}

fn sorted(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    let mut members: Vec<_> = members.iter().collect();
    members.sort_by_key(|(name, _)| *name);
    members.into_iter()
}
