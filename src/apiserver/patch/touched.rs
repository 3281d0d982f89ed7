//! Orders object members after a patch: upstream's patch library sorts the objects that it had to open and leaves the
//! others as they were. Error messages show the result.

use serde_json::{Map, Value};

/// Sorts the objects that a merge patch opened.
pub(crate) fn sort_merged(target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(members), Value::Object(patch)) => {
            sort(members);
            for (name, patch) in patch {
                if let Some(member) = members.get_mut(name) {
                    sort_merged(member, patch);
                }
            }
        }
        (Value::Array(items), Value::Array(patch)) => {
            items.iter_mut().zip(patch).for_each(|(item, patch)| sort_merged(item, patch));
        }
        _ => {}
    }
}

fn sort(members: &mut Map<String, Value>) {
    let mut sorted: Vec<(String, Value)> = std::mem::take(members).into_iter().collect();
    sorted.sort_by(|(one, _), (two, _)| one.cmp(two));
    members.extend(sorted);
}
