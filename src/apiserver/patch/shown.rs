//! Formats a strategic merge patch for error messages: the way Go prints maps, without what merging removed from it.

use admit_apimachinery::go;
use serde_json::{Map, Value};

/// Returns the patch as it is after merging into `live`.
pub(crate) fn merged(patch: &Map<String, Value>, live: &Map<String, Value>) -> String {
    printed(&Value::Object(merged_map(patch, Some(live))))
}

/// Removes directives, and nulls of fields that the object did not have.
fn merged_map(patch: &Map<String, Value>, live: Option<&Map<String, Value>>) -> Map<String, Value> {
    let kept =
        patch.iter().filter(|(name, value)| !name.starts_with('$') && (live.is_some() || !value.is_null()));
    kept.map(|(name, value)| {
        let value = match value {
            Value::Object(inner) => {
                let inside = live.and_then(|live| live.get(name)).and_then(Value::as_object);
                Value::Object(merged_map(inner, inside))
            }
            other => other.clone(),
        };
        (name.clone(), value)
    })
    .collect()
}

/// Formats a value like Go's `%+v`.
pub(super) fn printed(value: &Value) -> String {
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
    fn patches_are_shown_as_go_prints_what_is_left_of_them() {
        let text = |patch: Value, live: Value| merged(patch.as_object().unwrap(), live.as_object().unwrap());
        let patch = json!({"b": [1, "x y"], "a": {"n": null, "k": true}, "$retainKeys": ["a"]});
        assert_eq!(text(patch.clone(), json!({})), "map[a:map[k:true] b:[1 x y]]");
        assert_eq!(text(patch, json!({"a": {}})), "map[a:map[k:true n:<nil>] b:[1 x y]]");
    }
}
