//! Implements strategic merge patch for built-in kinds, driven by the merge keys and strategies of the field tables.
//!
//! Input: the live object and the patch, both JSON. Output: the patched object, not yet decoded or validated.
//! Directives: `$patch` (replace, delete, merge), `$retainKeys`, `$setElementOrder/FIELD`, `$deleteFromPrimitiveList/FIELD`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::merge_key::{PatchError, key_of};
use super::order::{Merged, first_places};
use super::shown::printed;
use crate::builtin::{Field, PatchStrategy, Tables, TypeId, TypeRef};
use crate::interrupt;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const SET_ORDER: &str = "$setElementOrder/";
const DELETE_FROM_PRIMITIVES: &str = "$deleteFromPrimitiveList/";

/// Applies `patch` to `original`, an object of the built-in kind `kind`.
///
/// # Errors
/// If a directive is malformed, or an item of a keyed list lacks its key.
pub(crate) fn apply(
    tables: &Tables,
    kind: TypeId,
    original: Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    Merger { tables }.object(Some(kind), original, patch)
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
            // Merging is the default, and the directive is not valid for objects.
            Some(Directive::Merge) => return Err(unknown_directive(patch)),
            None => {}
        }
        if let Some(retained) = patch.get(RETAIN_KEYS) {
            let retained = retained.as_array().ok_or(PatchError::DirectiveFormat("retainKeys"))?;
            let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
            let is_kept = |(name, change): (&String, &Value)| {
                change.is_null() || name.starts_with('$') || retained.contains(name.as_str())
            };
            if !patch.iter().all(is_kept) {
                return Err(PatchError::DirectiveFormat("retainKeys"));
            }
            original.retain(|name, _| retained.contains(name.as_str()));
        }
        delete_primitives(&mut original, patch)?;
        let is_change = |name: &str| !name.starts_with('$');
        // All at once, as removing a single member moves those behind it.
        original.retain(|name, _| !is_change(name) || patch.get(name).is_none_or(|change| !change.is_null()));
        for (name, change) in patch.iter().filter(|(name, change)| is_change(name) && !change.is_null()) {
            let field = kind.and_then(|kind| self.tables.field(kind, name));
            let merged = match (original.get_mut(name).map(Value::take), change) {
                // A field with the strategy `replace` is taken unchanged.
                (Some(Value::Object(_)), Value::Object(_)) if replaces(field) => change.clone(),
                (Some(Value::Object(current)), Value::Object(change)) => {
                    Value::Object(self.object(message_of(field), current, change)?)
                }
                (Some(Value::Array(current)), Value::Array(change)) => {
                    Value::Array(self.list(field, current, change, order_of(patch, name)?)?)
                }
                (_, change) => match self.fresh(field, change)? {
                    Some(value) => value,
                    None => {
                        original.shift_remove(name);
                        continue;
                    }
                },
            };
            original.insert(name.clone(), merged);
        }
        self.reorder_untouched(kind, &mut original, patch)?;
        Ok(original)
    }

    /// Returns a value that the original does not have, without its directives. None if it holds only directives.
    fn fresh(&self, field: Option<&'t Field>, change: &Value) -> Result<Option<Value>, PatchError> {
        Ok(Some(match change {
            Value::Object(change) if change.contains_key(DIRECTIVE) => return Ok(None),
            Value::Object(change) => {
                let room = Map::with_capacity(change.len());
                Value::Object(self.object(message_of(field), room, change)?)
            }
            Value::Array(items) => {
                interrupt::checkpoint();
                let mut fresh = Vec::with_capacity(items.len());
                for item in items {
                    fresh.extend(self.fresh(field, item)?);
                }
                Value::Array(fresh)
            }
            scalar => scalar.clone(),
        }))
    }

    fn list(
        &self,
        field: Option<&'t Field>,
        original: Vec<Value>,
        patch: &[Value],
        order: Option<&[Value]>,
    ) -> Result<Vec<Value>, PatchError> {
        interrupt::checkpoint();
        let Some(field) = field.filter(|field| field.patch.merge) else { return Ok(patch.to_vec()) };
        let merge_key = field.patch.merge_key;
        if let Some(order) = order {
            is_in_order(patch, order, merge_key)?;
        }
        let objects = original.iter().chain(patch).filter(|item| item.is_object()).count();
        let merged = match objects {
            // The first item says what list it is.
            _ if original.iter().chain(patch).next().is_some_and(Value::is_array) => {
                return Err(PatchError::ListOfLists);
            }
            0 if original.iter().chain(patch).any(Value::is_array) => return Err(mixed(&original, patch)),
            0 => primitives(original, patch)?,
            objects if objects == original.len() + patch.len() => self.keyed_list(field, original, patch)?,
            _ => return Err(mixed(&original, patch)),
        };
        let ordered = match order {
            Some(order) => merged.in_order(order, merge_key)?,
            None => merged,
        };
        Ok(ordered.into_values())
    }

    /// Merges a list by key; new items come before existing ones, unless the patch names those, too.
    fn keyed_list(
        &self,
        field: &'t Field,
        original: Vec<Value>,
        patch: &[Value],
    ) -> Result<Merged, PatchError> {
        let PatchStrategy { merge_key, .. } = field.patch;
        let (mut changes, mut replaces) = (Vec::with_capacity(patch.len()), false);
        let ranks = first_places(&original, merge_key);
        let mut merged = Items::new(original, merge_key, patch);
        for item in patch {
            let change = item.as_object().ok_or(PatchError::ObjectForList)?;
            match directive(change)? {
                None => changes.push(item),
                Some(Directive::Replace) => replaces = true,
                Some(Directive::Delete) => merged.remove(key_of(item, merge_key)?),
                Some(Directive::Merge) => return Err(PatchError::MergingList),
            }
        }
        // One item with the directive makes the others the whole list.
        if replaces {
            let whole = Merged::new(changes.into_iter().map(|item| (None, item.clone())));
            return whole.in_order(std::iter::empty(), merge_key);
        }
        for item in &changes {
            let key = key_of(item, merge_key)?;
            let change = item.as_object().ok_or(PatchError::ObjectForList)?;
            match merged.take(key) {
                Some((place, current)) => {
                    let made = self.object(message_of(Some(field)), current, change)?;
                    merged.put(Some(place), made);
                }
                // A new item is taken unchanged, with its nulls.
                None => merged.put(None, change.clone()),
            }
        }
        let items = merged.items.into_iter().enumerate();
        let items = items.filter_map(|(place, item)| Some((ranks.get(place).copied(), item?)));
        Merged::new(items).in_order(changes, merge_key)
    }

    /// Applies an order for a list that the patch does not otherwise change.
    fn reorder_untouched(
        &self,
        kind: Option<TypeId>,
        original: &mut Map<String, Value>,
        patch: &Map<String, Value>,
    ) -> Result<(), PatchError> {
        for (name, order) in patch {
            let Some(target) = name.strip_prefix(SET_ORDER) else { continue };
            let order = order.as_array().ok_or(PatchError::DirectiveFormat("setElementOrder list"))?;
            if patch.contains_key(target) {
                continue;
            }
            let merge_key = kind
                .and_then(|kind| self.tables.field(kind, target))
                .map_or("", |field| field.patch.merge_key);
            if let Some(Value::Array(items)) = original.get_mut(target) {
                let ranks = first_places(items, merge_key);
                let ranked = ranks.into_iter().map(Some).zip(std::mem::take(items));
                *items = Merged::new(ranked).in_order(order, merge_key)?.into_values();
            }
        }
        Ok(())
    }
}

fn replaces(field: Option<&Field>) -> bool {
    field.is_some_and(|field| field.patch.text == "replace")
}

/// The items of a list, indexed by the merge keys in the patch. Of several with one key the first is
/// merged into.
struct Items<'p> {
    merge_key: &'static str,
    /// The items; None if deleted, or taken to be changed.
    items: Vec<Option<Value>>,
    /// The place of the first item with the key.
    first: HashMap<&'p Value, Option<usize>>,
    /// For each place, that of the next item with the same key.
    next: Vec<Option<usize>>,
}

impl<'p> Items<'p> {
    fn new(items: Vec<Value>, merge_key: &'static str, patch: &'p [Value]) -> Self {
        let named = patch.iter().filter_map(|item| item.get(merge_key));
        let mut first: HashMap<&Value, Option<usize>> = named.map(|key| (key, None)).collect();
        let mut next = vec![None; items.len()];
        for (place, (item, next)) in items.iter().zip(&mut next).enumerate().rev() {
            if let Some(first) = item.get(merge_key).and_then(|key| first.get_mut(key)) {
                *next = first.replace(place);
            }
        }
        Self { merge_key, items: items.into_iter().map(Some).collect(), first, next }
    }

    /// Deletes all items with the key.
    fn remove(&mut self, key: &Value) {
        while let Some(place) = self.pop(key) {
            if let Some(item) = self.items.get_mut(place) {
                *item = None;
            }
        }
    }

    /// Takes the first item with the key, and its place, for putting it back.
    fn take(&mut self, key: &Value) -> Option<(usize, Map<String, Value>)> {
        let place = self.pop(key)?;
        match self.items.get_mut(place)?.take()? {
            Value::Object(members) => Some((place, members)),
            _ => None,
        }
    }

    /// Removes the first item with the key from the index, and returns its place.
    fn pop(&mut self, key: &Value) -> Option<usize> {
        let first = self.first.get_mut(key)?;
        let place = (*first)?;
        *first = self.next.get(place).copied().flatten();
        Some(place)
    }

    /// Puts an item back where it was taken from, or at the end.
    fn put(&mut self, place: Option<usize>, item: Map<String, Value>) {
        let place = place.unwrap_or_else(|| {
            self.items.push(None);
            self.next.push(None);
            self.items.len().saturating_sub(1)
        });
        let first = item.get(self.merge_key).and_then(|key| self.first.get_mut(key));
        if let (Some(first), Some(next)) = (first, self.next.get_mut(place)) {
            *next = first.replace(place);
        }
        if let Some(slot) = self.items.get_mut(place) {
            *slot = Some(Value::Object(item));
        }
    }
}

/// Merges both lists of primitives without duplicates.
fn primitives(original: Vec<Value>, patch: &[Value]) -> Result<Merged, PatchError> {
    let ranks = first_places(&original, "");
    let added = {
        let mut seen: HashSet<&Value> = original.iter().collect();
        patch.iter().filter(|item| seen.insert(item)).collect::<Vec<_>>()
    };
    let places = ranks.into_iter().enumerate();
    let first = places.zip(original).filter(|((place, rank), _)| place == rank);
    let items = first.map(|((_, rank), item)| (Some(rank), item));
    Merged::new(items.chain(added.into_iter().map(|item| (None, item.clone())))).in_order(patch, "")
}

fn mixed(original: &[Value], patch: &[Value]) -> PatchError {
    let [original, patch] = [original, patch].map(|items| printed(&Value::Array(items.to_vec())));
    PatchError::MixedItems(original, patch)
}

/// # Errors
/// If the patch's items have another order than `order`, or are not in it. Deleted items have no place.
fn is_in_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), PatchError> {
    let deletes = |item: &&Value| item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
    let mut named = patch.iter().filter(|item| merge_key.is_empty() || !deletes(item)).peekable();
    let mut left = order.iter();
    while let (Some(item), Some(wanted)) = (named.peek(), left.as_slice().first()) {
        // Directives have no place, but must not be the last.
        if item.get(DIRECTIVE).is_none() {
            left.next();
            if key_of(item, merge_key)? != key_of(wanted, merge_key)? {
                continue;
            }
        }
        named.next();
    }
    if named.peek().is_some() && !order.is_empty() {
        let [patch, order] = [patch, order].map(|items| printed(&Value::Array(items.to_vec())));
        return Err(PatchError::OtherOrder(patch, order));
    }
    Ok(())
}

fn delete_primitives(
    original: &mut Map<String, Value>,
    patch: &Map<String, Value>,
) -> Result<(), PatchError> {
    for (name, removed) in patch {
        let Some(target) = name.strip_prefix(DELETE_FROM_PRIMITIVES) else { continue };
        let removed = removed.as_array().ok_or(PatchError::DirectiveFormat("primitive list"))?;
        if let Some(Value::Array(items)) = original.get_mut(target) {
            let removed: HashSet<&Value> = removed.iter().collect();
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

/// # Errors
/// If the order is not a list.
fn order_of<'p>(patch: &'p Map<String, Value>, name: &str) -> Result<Option<&'p [Value]>, PatchError> {
    match patch.get(&format!("{SET_ORDER}{name}")) {
        None => Ok(None),
        Some(Value::Array(order)) => Ok(Some(order)),
        Some(_) => Err(PatchError::DirectiveFormat("setElementOrder list")),
    }
}

pub(super) fn message_of(field: Option<&Field>) -> Option<TypeId> {
    match field?.kind.pointee() {
        TypeRef::Map(_) => None,
        kind => kind.message(),
    }
}

#[cfg(test)]
mod tests;
