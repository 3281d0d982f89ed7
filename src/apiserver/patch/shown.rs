//! Formats patches for error messages the way Go prints maps.

use admit_apimachinery::go;
use serde_json::Value;

/// Formats a value like Go's `%+v`.
pub(crate) fn printed(value: &Value) -> String {
    let mut out = String::new();
    print(value, &mut out);
    out
}

fn print(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&go::json::number(number)),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                print(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_by_key(|(name, _)| *name);
            out.push_str("map[");
            for (index, (name, member)) in members.into_iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                out.push_str(name);
                out.push(':');
                print(member, out);
            }
            out.push(']');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_are_sorted_and_texts_unquoted() {
        let patch = json!({"b": [1, "x y", 1e7], "a": {"n": null, "k": true}});
        assert_eq!(printed(&patch), "map[a:map[k:true n:<nil>] b:[1 x y 1e+07]]");
    }
}
