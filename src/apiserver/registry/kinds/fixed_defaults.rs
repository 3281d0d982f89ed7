//! Sets default values at fixed paths, independent of the rest of the object; `fixed_defaults.txt` lists them.

use std::sync::LazyLock;

use serde_json::Value;

use crate::kinds::shared::defaults::set_absent;
use crate::resources::ResourceInfo;

const TABLE: &str = include_str!("fixed_defaults.txt");
/// Kind and group, path, value.
static LINES: LazyLock<Vec<(&str, &str, Value)>> = LazyLock::new(|| written().filter_map(read).collect());

/// Sets the defaults of the kind.
pub(super) fn fill(info: &ResourceInfo, object: &mut Value) {
    for (kind, path, value) in &*LINES {
        let (name, group) = kind.split_once('.').unwrap_or((kind, ""));
        if name == info.kind && group == info.group {
            put(object, path, value);
        }
    }
}

fn written() -> impl Iterator<Item = &'static str> {
    TABLE.lines().filter(|line| !line.starts_with('#'))
}

fn read(line: &'static str) -> Option<(&'static str, &'static str, Value)> {
    let mut parts = line.splitn(3, " | ");
    let (kind, path, value) = (parts.next()?, parts.next()?, parts.next()?);
    Some((kind, path, serde_json::from_str(value).ok()?))
}

fn put(object: &mut Value, path: &str, value: &Value) {
    let Some((step, rest)) = path.split_once('.') else {
        if object.is_object() {
            set_absent(object, &[(path, value.clone())]);
        }
        return;
    };
    if let Some(list) = step.strip_suffix("[]") {
        let items = object.get_mut(list).and_then(Value::as_array_mut);
        items.into_iter().flatten().for_each(|item| put(item, rest, value));
    } else if let Some(made) = step.strip_suffix('!') {
        if let Some(members) = object.as_object_mut() {
            put(members.entry(made).or_insert_with(|| Value::Object(serde_json::Map::new())), rest, value);
        }
    } else if let Some(member) = object.get_mut(step) {
        put(member, rest, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_line_is_understood_and_of_a_served_kind() {
        assert_eq!(LINES.len(), written().count());
        let rows = crate::resources::builtin_rows();
        for (kind, ..) in &*LINES {
            let served = rows.iter().any(|row| {
                let own = if row.group.is_empty() {
                    row.kind.clone()
                } else {
                    format!("{}.{}", row.kind, row.group)
                };
                own == *kind
            });
            assert!(served, "{kind} is not served");
        }
    }

    #[test]
    fn values_are_put_where_nothing_is() {
        let mut object = json!({"list": [{}, {"a": 2}, 3], "one": {}});
        put(&mut object, "list[].a", &json!(1));
        put(&mut object, "one.made!.b", &json!(true));
        put(&mut object, "none.made!.b", &json!(true));
        assert_eq!(object, json!({"list": [{"a": 1}, {"a": 2}, 3], "one": {"made": {"b": true}}}));
    }
}
