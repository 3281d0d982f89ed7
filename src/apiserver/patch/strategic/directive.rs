//! Reads the directives of a patch that concern an object.

use std::collections::HashSet;

use admit_apimachinery::go;
use serde_json::{Map, Value};

use crate::patch::merge_key::{PatchError, key_of};

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
pub(super) const SET_ORDER: &str = "$setElementOrder";
pub(super) const DELETE_FROM_PRIMITIVES: &str = "$deleteFromPrimitiveList";

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Directive {
    Replace,
    Delete,
    Merge,
}

/// # Errors
/// If the directive is unknown.
pub(super) fn of(patch: &Map<String, Value>) -> Result<Option<Directive>, PatchError> {
    match patch.get(DIRECTIVE).map(Value::as_str) {
        None => Ok(None),
        Some(Some("replace")) => Ok(Some(Directive::Replace)),
        Some(Some("delete")) => Ok(Some(Directive::Delete)),
        Some(Some("merge")) => Ok(Some(Directive::Merge)),
        Some(_) => Err(unknown(patch)),
    }
}

pub(super) fn unknown(patch: &Map<String, Value>) -> PatchError {
    let name = patch.get(DIRECTIVE).map(go::value::text).unwrap_or_default();
    PatchError::UnknownDirective(name, go::value::plain(&Value::Object(patch.clone())))
}

/// Returns the field that a directive names behind its prefix and a slash.
///
/// # Errors
/// If there is none.
pub(super) fn field_of<'n>(name: &'n str, prefix: &str) -> Result<&'n str, PatchError> {
    let what = if prefix == SET_ORDER { "setElementOrder list" } else { "primitive list" };
    name.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('/')).ok_or(PatchError::DirectiveFormat(what))
}

/// Follows `$retainKeys`: removes all other members of the original.
///
/// # Errors
/// If it is no list, or the patch sets a member that it does not name.
pub(super) fn retain_keys(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
) -> Result<(), PatchError> {
    let Some(retained) = patch.shift_remove(RETAIN_KEYS) else { return Ok(()) };
    let wrong = PatchError::DirectiveFormat("retainKeys");
    let Value::Array(retained) = retained else { return Err(wrong) };
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_directive = |name: &str| name.starts_with(DELETE_FROM_PRIMITIVES) || name.starts_with(SET_ORDER);
    let is_kept = |(name, change): (&String, &Value)| {
        change.is_null() || is_directive(name) || retained.contains(name.as_str())
    };
    if !patch.iter().all(is_kept) {
        return Err(wrong);
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

/// # Errors
/// If the patch's items have another order than `order`, or are not in it. Deleted items have no place.
pub(super) fn check_order(patch: &[Value], order: &[Value], merge_key: &str) -> Result<(), PatchError> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    if let Some(other) = patch.iter().find(|item| !merge_key.is_empty() && !item.is_object()) {
        return Err(PatchError::no_map(other));
    }
    let deletes = |item: &&Value| item.get(DIRECTIVE).is_some_and(|directive| directive == "delete");
    let mut named = patch.iter().filter(|item| merge_key.is_empty() || !deletes(item)).peekable();
    let mut left = order.iter();
    while let (Some(item), Some(wanted)) = (named.peek(), left.as_slice().first()) {
        // Directives have no place, but must not be the last.
        if item.get(DIRECTIVE).is_none() {
            left.next();
            if !merge_key.is_empty() && !wanted.is_object() {
                return Err(PatchError::no_map(wanted));
            }
            if key_of(item, merge_key)? != key_of(wanted, merge_key)? {
                continue;
            }
        }
        named.next();
    }
    if named.peek().is_some() {
        let [patch, order] = [patch, order].map(|items| go::value::plain(&Value::Array(items.to_vec())));
        return Err(PatchError::OtherOrder(patch, order));
    }
    Ok(())
}
