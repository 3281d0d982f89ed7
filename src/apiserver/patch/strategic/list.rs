//! Merges lists of a strategic merge patch.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::go;
use serde_json::{Map, Value};

use super::directive::{self, Directive};
use super::{Merger, clean, message_of};
use crate::builtin::{Field, PatchStrategy};
use crate::interrupt;
use crate::patch::merge_key::PatchError;
use crate::patch::order::{Merged, first_places};

impl<'t> Merger<'t> {
    /// Merges a list that has no order of its own; one without the strategy is replaced.
    pub(super) fn list(
        &self,
        field: Option<&'t Field>,
        original: Vec<Value>,
        patch: &mut [Value],
    ) -> Result<Vec<Value>, PatchError> {
        Ok(match field.filter(|field| field.patch.merge) {
            Some(field) => self.merged(field, original, patch)?.into_values(),
            None => patch.to_vec(),
        })
    }

    /// Merges a list and orders it. None if neither the original nor the patch has it.
    pub(super) fn ordered_list(
        &self,
        field: &'t Field,
        original: Option<Vec<Value>>,
        patch: Option<&mut Vec<Value>>,
        order: &[Value],
    ) -> Result<Option<Vec<Value>>, PatchError> {
        let PatchStrategy { merge_key, merge, .. } = field.patch;
        let patched = patch.as_deref().map_or(&[][..], Vec::as_slice);
        directive::check_order(patched, order, merge_key)?;
        if original.is_some() || patch.is_some() {
            check_ordered(original.as_deref().unwrap_or_default(), patched, order, merge_key)?;
        }
        let merged = match (original, patch) {
            (None, None) => return Ok(None),
            (Some(original), None) => {
                let ranks = first_places(&original, merge_key);
                Merged::new(ranks.into_iter().map(Some).zip(original))
            }
            (None, Some(patch)) => {
                patch.retain_mut(clean);
                Merged::new(patch.iter().map(|item| (None, item.clone())))
            }
            (Some(original), Some(patch)) if merge => self.merged(field, original, patch)?,
            (Some(original), Some(patch)) => {
                let mut ranks: HashMap<&Value, usize> = HashMap::with_capacity(original.len());
                for (rank, item) in original.iter().enumerate() {
                    ranks.entry(item).or_insert(rank);
                }
                Merged::new(patch.iter().map(|item| (ranks.get(item).copied(), item.clone())))
            }
        };
        Ok(Some(merged.in_order(order, merge_key)?.into_values()))
    }

    /// Deletes values from a list of primitives, whatever its strategy; items of another list are merged.
    pub(super) fn list_without(
        &self,
        field: Option<&'t Field>,
        mut items: Vec<Value>,
        deleted: &mut [Value],
    ) -> Result<Vec<Value>, PatchError> {
        check_items(&items, deleted)?;
        if items.iter().chain(&*deleted).any(Value::is_object) {
            let field = field.ok_or(PatchError::NoKeyToMerge)?;
            return Ok(self.merged(field, items, deleted)?.into_values());
        }
        let deleted: HashSet<&Value> = deleted.iter().collect();
        items.retain(|item| !deleted.contains(item));
        Ok(items)
    }

    fn merged(
        &self,
        field: &'t Field,
        original: Vec<Value>,
        patch: &mut [Value],
    ) -> Result<Merged, PatchError> {
        interrupt::checkpoint();
        check_items(&original, patch)?;
        if original.iter().chain(&*patch).next().is_none_or(|item| !item.is_object()) {
            return primitives(original, patch);
        }
        if field.patch.merge_key.is_empty() {
            Err(PatchError::NoKeyToMerge)
        } else {
            self.keyed_list(field, original, patch)
        }
    }

    /// Merges a list by key; new items come before existing ones, unless the patch names those, too.
    fn keyed_list(
        &self,
        field: &'t Field,
        original: Vec<Value>,
        patch: &mut [Value],
    ) -> Result<Merged, PatchError> {
        let PatchStrategy { merge_key, .. } = field.patch;
        let (mut changes, mut replaces) = (Vec::with_capacity(patch.len()), false);
        let ranks = first_places(&original, merge_key);
        let (mut merged, keys) = Items::new(original, merge_key, patch);
        for (item, key) in patch.iter_mut().zip(keys) {
            let directive = match item {
                Value::Object(change) => directive::of(change)?,
                _ => None,
            };
            match directive {
                None => changes.push((item, key)),
                Some(Directive::Replace) => replaces = true,
                Some(Directive::Delete) => {
                    merged.remove(key.ok_or_else(|| PatchError::no_key(item, merge_key))?)
                }
                Some(Directive::Merge) => return Err(PatchError::MergingList),
            }
        }
        // One item with the directive makes the others the whole list.
        if replaces {
            let whole = Merged::new(changes.iter().map(|(item, _)| (None, (**item).clone())));
            return whole.in_order(std::iter::empty(), merge_key);
        }
        for (item, key) in &mut changes {
            let key = key.ok_or_else(|| PatchError::no_key(item, merge_key))?;
            let Value::Object(change) = &mut **item else { continue };
            match merged.take(key) {
                Some((place, current)) => {
                    let made = self.object(message_of(Some(field)), current, change)?;
                    merged.put(Some(place), key, made);
                }
                // A new item is taken unchanged, with its nulls.
                None => merged.put(None, key, change.clone()),
            }
        }
        let items = merged.items.into_iter().enumerate();
        let items = items.filter_map(|(place, item)| Some((ranks.get(place).copied(), item?)));
        let order: Vec<&Value> = changes.iter().map(|(item, _)| &**item).collect();
        Merged::new(items).in_order(order, merge_key)
    }
}

/// The items of a list, indexed by the merge keys in the patch, which are numbered. Of several with one key the first is merged into.
struct Items {
    /// The items; None if deleted, or taken to be changed.
    items: Vec<Option<Value>>,
    /// For each key, the place of the first item with it.
    first: Vec<Option<usize>>,
    /// For each place, that of the next item with the same key.
    next: Vec<Option<usize>>,
}

impl Items {
    /// Also returns the number of the key of each item of the patch; None if it has none.
    fn new(items: Vec<Value>, merge_key: &str, patch: &[Value]) -> (Self, Vec<Option<usize>>) {
        let mut numbers: HashMap<&Value, usize> = HashMap::with_capacity(patch.len());
        let mut numbered = |item| {
            let count = numbers.len();
            let key = Value::get(item, merge_key)?;
            Some(*numbers.entry(key).or_insert(count))
        };
        let keys: Vec<Option<usize>> = patch.iter().map(&mut numbered).collect();
        let mut first = vec![None; numbers.len()];
        let mut next = vec![None; items.len()];
        for (place, (item, next)) in items.iter().zip(&mut next).enumerate().rev() {
            let number = item.get(merge_key).and_then(|key| numbers.get(key));
            if let Some(first) = number.and_then(|number| first.get_mut(*number)) {
                *next = Option::replace(first, place);
            }
        }
        (Self { items: items.into_iter().map(Some).collect(), first, next }, keys)
    }

    /// Deletes all items with the key.
    fn remove(&mut self, key: usize) {
        while let Some(place) = self.pop(key) {
            if let Some(item) = self.items.get_mut(place) {
                *item = None;
            }
        }
    }

    /// Takes the first item with the key, and its place, for putting it back.
    fn take(&mut self, key: usize) -> Option<(usize, Map<String, Value>)> {
        let place = self.pop(key)?;
        match self.items.get_mut(place)?.take()? {
            Value::Object(members) => Some((place, members)),
            _ => None,
        }
    }

    /// Removes the first item with the key from the index, and returns its place.
    fn pop(&mut self, key: usize) -> Option<usize> {
        let first = self.first.get_mut(key)?;
        let place = (*first)?;
        *first = self.next.get(place).copied().flatten();
        Some(place)
    }

    /// Puts an item back where it was taken from, or at the end.
    fn put(&mut self, place: Option<usize>, key: usize, item: Map<String, Value>) {
        let place = place.unwrap_or_else(|| {
            self.items.push(None);
            self.next.push(None);
            self.items.len().saturating_sub(1)
        });
        if let (Some(first), Some(next)) = (self.first.get_mut(key), self.next.get_mut(place)) {
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

/// # Errors
/// If the items cannot be ordered: there are none, they have several types, or lack what identifies them.
fn check_ordered(
    original: &[Value],
    patch: &[Value],
    order: &[Value],
    merge_key: &str,
) -> Result<(), PatchError> {
    check_items(original, patch)?;
    if original.is_empty() && patch.is_empty() {
        return Err(PatchError::NoItems);
    }
    if !merge_key.is_empty() {
        return order
            .iter()
            .position(|item| !item.is_object())
            .map_or(Ok(()), |at| Err(PatchError::NotAMap(at)));
    }
    // Objects of a list without a key have nothing to be ordered by.
    match patch.iter().chain(order).chain(original).find(|item| item.is_object()) {
        Some(item) => Err(PatchError::no_key(item, merge_key)),
        None => Ok(()),
    }
}

/// # Errors
/// If the items of both lists have several types, or are lists.
fn check_items(original: &[Value], patch: &[Value]) -> Result<(), PatchError> {
    let mut types = original.iter().chain(patch).map(go::json::type_name);
    match types.next() {
        None => Ok(()),
        Some(_) if original.iter().chain(patch).next().is_some_and(Value::is_array) => {
            Err(PatchError::ListOfLists)
        }
        Some(first) if types.all(|other| other == first) => Ok(()),
        Some(_) => {
            let [original, patch] =
                [original, patch].map(|items| go::value::plain(&Value::Array(items.to_vec())));
            Err(PatchError::MixedItems(original, patch))
        }
    }
}
