//! Strategic merge patch for built-in kinds, driven by the merge keys and strategies of the field tables.
//!
//! Input: the live object and the patch, both JSON. Output: the patched object, not yet decoded or validated.
//! Directives: `$patch` (replace, delete, merge), `$retainKeys`, `$setElementOrder/FIELD`, `$deleteFromPrimitiveList/FIELD`.

use serde_json::{Map, Value};

use super::shown::printed;
use crate::builtin::{Field, PatchStrategy, Tables, TypeId, TypeRef};
use crate::interrupt;

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The directive, and the part of the patch that it stands in as Go prints it.
    #[error("unknown patch type: {0} in map: {1}")]
    UnknownDirective(String, String),
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoMergeKey { item: String, key: &'static str },
    #[error("invalid patch format of {0}")]
    DirectiveFormat(&'static str),
    #[error("cannot restore slice from map")]
    ObjectForList,
}

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_PRIMITIVES: &str = "$deleteFromPrimitiveList/";

/// Applies `patch` to `original`, an object of the built-in kind `kind`.
///
/// # Errors
/// A directive is malformed, or an item of a keyed list lacks its key.
pub fn apply(
    tables: &Tables,
    kind: TypeId,
    original: &Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    Merger { tables }.object(Some(kind), original.clone(), patch)
}

struct Merger<'t> {
    tables: &'t Tables,
}

impl<'t> Merger<'t> {
    fn object(
        &self,
        kind: Option<TypeId>,
        mut original: Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<Map<String, Value>, PatchError> {
        interrupt::checkpoint();
        match directive(patch)? {
            Some(Directive::Replace) => return Ok(without_directive(patch)),
            Some(Directive::Delete) => return Ok(Map::new()),
            // Merging is what is done without being told, and objects cannot be told.
            Some(Directive::Merge) => return Err(unknown_directive(patch)),
            None => {}
        }
        if let Some(retained) = patch.get(RETAIN_KEYS) {
            let retained = retained.as_array().ok_or(PatchError::DirectiveFormat("retainKeys"))?;
            original.retain(|name, _| retained.iter().any(|key| key.as_str() == Some(name)));
        }
        delete_primitives(&mut original, patch)?;
        for (name, change) in patch {
            if name.starts_with('$') {
                continue;
            }
            let field = kind.and_then(|kind| self.tables.field(kind, name));
            if change.is_null() {
                original.shift_remove(name);
                continue;
            }
            let merged = match (original.get_mut(name).map(Value::take), change) {
                (Some(Value::Object(current)), Value::Object(change)) => {
                    Value::Object(self.object(message_of(field), current, change)?)
                }
                (Some(Value::Array(current)), Value::Array(change)) => {
                    Value::Array(self.list(field, current, change, order_of(patch, name))?)
                }
                (_, change) => self.fresh(field, change)?,
            };
            original.insert(name.clone(), merged);
        }
        self.reorder_untouched(kind, &mut original, patch)?;
        Ok(original)
    }

    /// A value that the original does not have: taken as it is, without its directives.
    fn fresh(&self, field: Option<&'t Field>, change: &Value) -> Result<Value, PatchError> {
        Ok(match change {
            Value::Object(change) => Value::Object(self.object(message_of(field), Map::new(), change)?),
            Value::Array(items) => match field {
                Some(field) if field.patch.merge => {
                    Value::Array(self.list(Some(field), Vec::new(), items, None)?)
                }
                _ => change.clone(),
            },
            scalar => scalar.clone(),
        })
    }

    fn list(
        &self,
        field: Option<&'t Field>,
        original: Vec<Value>,
        patch: &[Value],
        order: Option<&Vec<Value>>,
    ) -> Result<Vec<Value>, PatchError> {
        interrupt::checkpoint();
        let Some(field) = field.filter(|field| field.patch.merge) else { return Ok(patch.to_vec()) };
        if !patch.iter().any(Value::is_object) && !original.iter().any(Value::is_object) {
            let mut merged = original;
            for item in patch {
                if !merged.contains(item) {
                    merged.push(item.clone());
                }
            }
            return Ok(in_order(merged, patch, order, ""));
        }
        self.keyed_list(field, original, patch, order)
    }

    fn keyed_list(
        &self,
        field: &'t Field,
        original: Vec<Value>,
        patch: &[Value],
        order: Option<&Vec<Value>>,
    ) -> Result<Vec<Value>, PatchError> {
        let PatchStrategy { merge_key, .. } = field.patch;
        let mut merged = original;
        let mut replaced = None;
        for item in patch {
            let change = item.as_object().ok_or(PatchError::ObjectForList)?;
            let action = directive(change)?;
            // `{"$patch": "replace"}` alone makes the rest of the list the whole list.
            if action == Some(Directive::Replace) && !change.contains_key(merge_key) {
                replaced = Some(
                    patch.iter().filter(|item| item.get(DIRECTIVE).is_none()).cloned().collect::<Vec<_>>(),
                );
                break;
            }
            let key = change
                .get(merge_key)
                .ok_or_else(|| PatchError::NoMergeKey { item: item.to_string(), key: merge_key })?;
            let position = merged.iter().position(|current| current.get(merge_key) == Some(key));
            match (action, position) {
                (Some(Directive::Delete), _) => merged.retain(|current| current.get(merge_key) != Some(key)),
                (_, Some(position)) => {
                    if let Some(Value::Object(current)) = merged.get_mut(position) {
                        let current = std::mem::take(current);
                        let result = self.object(message_of(Some(field)), current, change)?;
                        if let Some(slot) = merged.get_mut(position) {
                            *slot = Value::Object(result);
                        }
                    }
                }
                (_, None) => {
                    merged.push(Value::Object(self.object(message_of(Some(field)), Map::new(), change)?))
                }
            }
        }
        Ok(in_order(replaced.unwrap_or(merged), patch, order, merge_key))
    }

    /// An order may be given for a list that the patch does not otherwise touch.
    fn reorder_untouched(
        &self,
        kind: Option<TypeId>,
        original: &mut Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<(), PatchError> {
        for (name, order) in patch {
            let Some(target) = name.strip_prefix(SET_ORDER) else { continue };
            let order = order.as_array().ok_or(PatchError::DirectiveFormat("setElementOrder"))?;
            if patch.contains_key(target) {
                continue;
            }
            let merge_key = kind
                .and_then(|kind| self.tables.field(kind, target))
                .map_or("", |field| field.patch.merge_key);
            if let Some(Value::Array(items)) = original.get_mut(target) {
                *items = in_order(std::mem::take(items), &[], Some(order), merge_key);
            }
        }
        Ok(())
    }
}

fn delete_primitives(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    for (name, removed) in patch {
        let Some(target) = name.strip_prefix(DELETE_FROM_PRIMITIVES) else { continue };
        let removed = removed.as_array().ok_or(PatchError::DirectiveFormat("deleteFromPrimitiveList"))?;
        if let Some(Value::Array(items)) = original.get_mut(target) {
            items.retain(|item| !removed.contains(item));
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Directive {
    Replace,
    Delete,
    Merge,
}

fn directive(patch: &Map<String, Value>) -> Result<Option<Directive>, PatchError> {
    match patch.get(DIRECTIVE) {
        None => Ok(None),
        Some(Value::String(name)) => match name.as_str() {
            "replace" => Ok(Some(Directive::Replace)),
            "delete" => Ok(Some(Directive::Delete)),
            "merge" => Ok(Some(Directive::Merge)),
            _ => Err(unknown_directive(patch)),
        },
        Some(_) => Err(unknown_directive(patch)),
    }
}

fn unknown_directive(patch: &Map<String, Value>) -> PatchError {
    let name = patch.get(DIRECTIVE).map(printed).unwrap_or_default();
    PatchError::UnknownDirective(name, printed(&Value::Object(patch.clone())))
}

fn without_directive(patch: &Map<String, Value>) -> Map<String, Value> {
    let mut members = patch.clone();
    members.shift_remove(DIRECTIVE);
    members
}

fn order_of<'p>(patch: &'p Map<String, Value>, name: &str) -> Option<&'p Vec<Value>> {
    patch.get(&format!("{SET_ORDER}{name}")).and_then(Value::as_array)
}

pub(super) fn message_of(field: Option<&Field>) -> Option<TypeId> {
    match field?.kind.pointee() {
        TypeRef::Map(_) => None,
        kind => kind.message(),
    }
}

/// Puts the items that `order` names into that order. Items that only the server has keep their places relative to
/// the item that stood before them.
pub(super) fn in_order(
    items: Vec<Value>,
    patch: &[Value],
    order: Option<&Vec<Value>>,
    merge_key: &str,
) -> Vec<Value> {
    let Some(order) = order else { return items };
    let identity = |item: &Value| if merge_key.is_empty() { item.clone() } else { item[merge_key].clone() };
    let rank = |item: &Value| order.iter().position(|wanted| identity(wanted) == identity(item));
    let (mut listed, unlisted): (Vec<_>, Vec<_>) =
        items.iter().cloned().partition(|item| rank(item).is_some());
    listed.sort_by_key(|item| rank(item));
    let from_server = |item: &Value| !patch.iter().any(|change| identity(change) == identity(item));
    for item in unlisted {
        let before = items.iter().position(|other| *other == item).unwrap_or_default();
        // The nearest item that stood before this one in the old list and is already placed.
        let anchor = items
            .iter()
            .take(before)
            .rev()
            .filter(|other| from_server(other) || rank(other).is_some())
            .find_map(|other| listed.iter().position(|placed| placed == other));
        listed.insert(anchor.map_or(0, |anchor| anchor + 1), item);
    }
    listed
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::tables;

    fn patched(original: &Value, patch: &Value) -> Result<Value, PatchError> {
        let kind = tables().kind("", "v1", "Pod").expect("the Pod kind");
        let (original, patch) = (original.as_object().expect("object"), patch.as_object().expect("object"));
        apply(tables(), kind, original, patch).map(Value::Object)
    }

    fn containers(value: &Value) -> Value {
        json!({"spec": {"containers": value}})
    }

    #[test]
    fn keyed_lists_are_merged_item_by_item() {
        let original = containers(&json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]));
        let patch = containers(&json!([{"name": "b", "image": "3"}, {"name": "c", "image": "4"}]));
        let expected = containers(
            &json!([{"name": "a", "image": "1"}, {"name": "b", "image": "3"}, {"name": "c", "image": "4"}]),
        );
        assert_eq!(patched(&original, &patch), Ok(expected));
    }

    #[test]
    fn directives_delete_replace_and_order() {
        let original = containers(&json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]));
        let delete = containers(&json!([{"name": "a", "$patch": "delete"}]));
        assert_eq!(patched(&original, &delete), Ok(containers(&json!([{"name": "b", "image": "2"}]))));
        let replace = containers(&json!([{"name": "z"}, {"$patch": "replace"}]));
        assert_eq!(patched(&original, &replace), Ok(containers(&json!([{"name": "z"}]))));
        let order = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
            "containers": [{"name": "a", "image": "9"}]}});
        let expected = containers(&json!([{"name": "b", "image": "2"}, {"name": "a", "image": "9"}]));
        assert_eq!(patched(&original, &order), Ok(expected));
    }

    #[test]
    fn lists_of_scalars_and_retained_keys() {
        let original = json!({"metadata": {"finalizers": ["a/x", "b/y"]},
            "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}});
        let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/x"], "finalizers": ["c/z"]},
            "spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "configMap"], "configMap": {"name": "m"}}]}});
        let expected = json!({"metadata": {"finalizers": ["b/y", "c/z"]},
            "spec": {"volumes": [{"name": "v", "configMap": {"name": "m"}}]}});
        assert_eq!(patched(&original, &patch), Ok(expected));
    }

    #[test]
    fn a_missing_key_and_an_unknown_directive_are_refused() {
        let original = containers(&json!([{"name": "a"}]));
        assert_eq!(
            patched(&original, &containers(&json!([{"image": "x"}]))).map_err(|error| error.to_string()),
            Err(r#"map: {"image":"x"} does not contain declared merge key: name"#.to_owned())
        );
        assert_eq!(
            patched(&original, &json!({"spec": {"$patch": "x"}})),
            Err(PatchError::UnknownDirective("x".to_owned(), "map[$patch:x]".to_owned()))
        );
    }
}
