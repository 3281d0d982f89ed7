//! Reads merge keys, which identify items of merged lists, and defines the errors of patches.

use admit_apimachinery::go;
use serde_json::Value;

/// Says why a patch cannot be applied. The words are those of apimachinery's `strategicpatch`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    /// The unknown directive as Go prints it with `%s`, and the part of the patch that holds it.
    #[error("unknown patch type: {0} in map: {1}")]
    UnknownDirective(String, String),
    /// An item without its merge key, as Go prints it.
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoMergeKey { item: String, key: String },
    #[error("invalid patch format of {0}")]
    DirectiveFormat(&'static str),
    /// Two types of Go.
    #[error("expected a {expected}, but received a {received}")]
    BadArgument { expected: &'static str, received: &'static str },
    #[error("value for key {0} is not a map")]
    NotAMap(usize),
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A list mixes values of several types.
    #[error("list element types are not identical: [{0} {1}]")]
    MixedItems(String, String),
    #[error("no elements in any of the given slices")]
    NoItems,
    #[error("cannot merge lists without merge key for struct")]
    NoKeyToMerge,
    #[error("merging lists cannot yet be specified in the patch")]
    MergingList,
    /// The order of the patch contradicts `$setElementOrder`: both lists as Go prints them.
    #[error("The order in patch list:\n{0}\n doesn't match $setElementOrder list:\n{1}\n")]
    OtherOrder(String, String),
    /// The order is of a field that the type does not have.
    #[error("unable to find api field in struct {0} for the json field \"{1}\"")]
    UnknownField(&'static str, String),
    /// The order is of a field that is no list; the kind of the type around it.
    #[error("expected slice or array type, but got: {0}")]
    NotAList(&'static str),
}

const MAP: &str = "map[string]interface {}";
const LIST: &str = "[]interface {}";

impl PatchError {
    pub(super) fn no_key(item: &Value, merge_key: &str) -> Self {
        Self::NoMergeKey { item: go::value::plain(item), key: merge_key.to_owned() }
    }

    pub(super) fn no_map(value: &Value) -> Self {
        Self::BadArgument { expected: MAP, received: shown_type(value) }
    }

    pub(super) fn no_list(value: &Value) -> Self {
        Self::BadArgument { expected: LIST, received: shown_type(value) }
    }
}

/// Returns the type of a value as Go's `%s` prints it.
fn shown_type(value: &Value) -> &'static str {
    if value.is_null() { go::value::NO_TEXT } else { go::json::type_name(value) }
}

/// # Errors
/// If the item has no such key.
pub(super) fn key_of<'v>(item: &'v Value, merge_key: &str) -> Result<&'v Value, PatchError> {
    match merge_key {
        "" => Ok(item),
        key => item.get(key).ok_or_else(|| PatchError::no_key(item, key)),
    }
}
