//! Implements strategic merge patch for built-in kinds, driven by the merge keys and strategies of the field tables.
//!
//! Input: the live object and the patch, both JSON. Output: the patched object, not yet decoded or validated. Directives that were
//! followed are removed from the patch, as upstream does: refusals of the result show what is left of it.
//!
//! ```text
//! $patch ──► $retainKeys ──► $setElementOrder/FIELD, with FIELD ──► other fields ──► $deleteFromPrimitiveList/FIELD
//! ```
//!
//! Upstream follows the last two in the order in which Go walks a map, which is none.

mod directive;
mod list;

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::merge_key::PatchError;
use crate::builtin::{Field, Tables, TypeId, TypeRef};
use crate::interrupt;
use admit_apimachinery::go::json::type_name;
use directive::{DELETE_FROM_PRIMITIVES, DIRECTIVE, Directive, SET_ORDER};

/// Applies `patch` to `original`, an object of the built-in kind `kind`.
///
/// # Errors
/// If a directive is malformed, or an item of a keyed list lacks its key.
pub(crate) fn apply(
    tables: &Tables,
    kind: TypeId,
    original: Map<String, Value>,
    patch: &mut Map<String, Value>,
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
        patch: &mut Map<String, Value>,
    ) -> Result<Map<String, Value>, PatchError> {
        interrupt::checkpoint();
        match directive::of(patch)? {
            Some(Directive::Replace) => {
                patch.shift_remove(DIRECTIVE);
                return Ok(patch.clone());
            }
            Some(Directive::Delete) => return Ok(Map::new()),
            // Merging is the default, and the directive is not valid for objects.
            Some(Directive::Merge) => return Err(directive::unknown(patch)),
            None => {}
        }
        directive::retain_keys(&mut original, patch)?;
        let merged = self.ordered_lists(kind, &mut original, patch)?;
        let is_left = |name: &str| !merged.iter().any(|merged| merged == name);
        // All at once, as removing a single member moves those behind it.
        original.retain(|name, _| patch.get(name).is_none_or(|change| !change.is_null()));
        let (deleted, changed): (Vec<_>, Vec<_>) = patch
            .iter_mut()
            .filter(|(name, _)| is_left(name))
            .partition(|(name, _)| name.starts_with(DELETE_FROM_PRIMITIVES));
        let mut gone: HashSet<String> = HashSet::new();
        for (name, change) in changed.into_iter().filter(|(_, change)| !change.is_null()) {
            if !self.member(kind, &mut original, (name, change))? {
                gone.insert(name.clone());
            }
        }
        for (name, change) in deleted {
            let name = directive::field_of(name, DELETE_FROM_PRIMITIVES)?;
            let merges = !gone.contains(name)
                && original.get(name).is_some_and(|value| type_name(value) == type_name(change));
            if change.is_null() || (merges && !self.without(kind, &mut original, (name, change))?) {
                gone.insert(name.to_owned());
            }
        }
        original.retain(|name, _| !gone.contains(name));
        patch.retain(|name, _| is_left(name));
        Ok(original)
    }

    /// Merges one member of the patch. Returns whether the object has the member then; it is left to the caller to remove one that it
    /// does not have.
    fn member(
        &self,
        kind: Option<TypeId>,
        original: &mut Map<String, Value>,
        (name, change): (&str, &mut Value),
    ) -> Result<bool, PatchError> {
        let field = kind.and_then(|kind| self.tables.field(kind, name));
        let merged = match (original.get_mut(name).map(Value::take), &mut *change) {
            // A field with the strategy `replace` is taken unchanged.
            (Some(Value::Object(_)), Value::Object(_)) if replaces(field) => change.clone(),
            (Some(Value::Object(current)), Value::Object(change)) => {
                Value::Object(self.object(message_of(field), current, change)?)
            }
            (Some(Value::Array(current)), Value::Array(change)) => {
                Value::Array(self.list(field, current, change)?)
            }
            (_, change) => match fresh(change) {
                Some(value) => value,
                None => return Ok(false),
            },
        };
        original.insert(name.to_owned(), merged);
        Ok(true)
    }

    /// Follows `$deleteFromPrimitiveList`. What is no list of primitives is merged like any other value. Returns what [`Self::member`] does.
    fn without(
        &self,
        kind: Option<TypeId>,
        original: &mut Map<String, Value>,
        (name, change): (&str, &mut Value),
    ) -> Result<bool, PatchError> {
        match (original.get_mut(name), &mut *change) {
            (Some(Value::Array(items)), Value::Array(deleted)) => {
                let field = kind.and_then(|kind| self.tables.field(kind, name));
                *items = self.list_without(field, std::mem::take(items), deleted)?;
                Ok(true)
            }
            _ => self.member(kind, original, (name, change)),
        }
    }

    /// Follows `$setElementOrder`: merges and orders the lists that have an order. Returns their names.
    fn ordered_lists(
        &self,
        kind: Option<TypeId>,
        original: &mut Map<String, Value>,
        patch: &mut Map<String, Value>,
    ) -> Result<Vec<String>, PatchError> {
        let named = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned();
        let named: Vec<String> = named.collect();
        let mut merged = Vec::with_capacity(named.len());
        for directive in named {
            let order = patch.shift_remove(&directive).unwrap_or_default();
            let Value::Array(order) = order else { return Err(PatchError::no_list(&order)) };
            let name = directive::field_of(&directive, SET_ORDER)?;
            if let Some(other) =
                [original.get(name), patch.get(name)].into_iter().flatten().find(|it| !it.is_array())
            {
                return Err(PatchError::no_list(other));
            }
            let field = self.list_field(kind, name)?;
            let change = patch.get_mut(name).and_then(Value::as_array_mut);
            let current = original.get_mut(name).and_then(Value::as_array_mut).map(std::mem::take);
            if let Some(made) = self.ordered_list(field, current, change, &order)? {
                original.insert(name.to_owned(), Value::Array(made));
                merged.push(name.to_owned());
            }
        }
        Ok(merged)
    }

    /// # Errors
    /// If the type has no such field, or it is no list.
    fn list_field(&self, kind: Option<TypeId>, name: &str) -> Result<&'t Field, PatchError> {
        let Some(kind) = kind else { return Err(PatchError::NotAList("map")) };
        let field = self.tables.field(kind, name);
        let field =
            field.ok_or_else(|| PatchError::UnknownField(self.tables.get(kind).name, name.to_owned()))?;
        let is_list = matches!(field.kind, TypeRef::List(_) | TypeRef::Pointer(_));
        if is_list { Ok(field) } else { Err(PatchError::NotAList("struct")) }
    }
}

/// Returns a value that the original does not have: without nulls, and without the maps that hold a directive. None if it is one of those.
/// Other directives stay, and are unknown fields.
fn fresh(change: &mut Value) -> Option<Value> {
    discard_nulls(change);
    match change {
        // The patch keeps the items that are left out, in case it is shown.
        Value::Array(items) => {
            let kept = items.iter_mut().filter_map(|item| clean(item).then(|| item.clone()));
            Some(Value::Array(kept.collect()))
        }
        change => clean(change).then(|| change.clone()),
    }
}

fn discard_nulls(value: &mut Value) {
    interrupt::checkpoint();
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes what holds a directive from a value; returns whether the value itself is kept.
fn clean(value: &mut Value) -> bool {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => return false,
        Value::Object(members) => members.retain(|_, member| clean(member)),
        Value::Array(items) => items.retain_mut(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    true
}

fn replaces(field: Option<&Field>) -> bool {
    field.is_some_and(|field| field.patch.text == "replace")
}

pub(super) fn message_of(field: Option<&Field>) -> Option<TypeId> {
    match field?.kind.pointee() {
        TypeRef::Map(_) => None,
        kind => kind.message(),
    }
}

#[cfg(test)]
mod tests;
