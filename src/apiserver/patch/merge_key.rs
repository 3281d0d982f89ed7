//! Reads merge keys, which identify items of merged lists, and defines the errors of patches.

use serde_json::Value;

use super::shown::printed;

/// Says why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    /// The unknown directive, and the part of the patch that holds it, as Go prints it.
    #[error("unknown patch type: {0} in map: {1}")]
    UnknownDirective(String, String),
    /// An item without its merge key, as Go prints it.
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoMergeKey { item: String, key: String },
    #[error("invalid patch format of {0}")]
    DirectiveFormat(&'static str),
    #[error("cannot restore slice from map")]
    ObjectForList,
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// A list mixes objects and other values.
    #[error("list element types are not identical: [{0} {1}]")]
    MixedItems(String, String),
    #[error("merging lists cannot yet be specified in the patch")]
    MergingList,
    /// The order of the patch contradicts `$setElementOrder`: both lists as Go prints them.
    #[error("The order in patch list:\n{0}\n doesn't match $setElementOrder list:\n{1}\n")]
    OtherOrder(String, String),
}

/// # Errors
/// If the item has no such key.
pub(super) fn key_of<'v>(item: &'v Value, merge_key: &str) -> Result<&'v Value, PatchError> {
    match merge_key {
        "" => Ok(item),
        key => {
            item.get(key).ok_or_else(|| PatchError::NoMergeKey { item: printed(item), key: key.to_owned() })
        }
    }
}
