//! The key by which items of merged lists are told from each other, and why a patch cannot be applied.

use serde_json::Value;

use super::shown::printed;

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchError {
    /// The directive, and the part of the patch that it stands in as Go prints it.
    #[error("unknown patch type: {0} in map: {1}")]
    UnknownDirective(String, String),
    /// The item as Go prints it.
    #[error("map: {item} does not contain declared merge key: {key}")]
    NoMergeKey { item: String, key: String },
    #[error("invalid patch format of {0}")]
    DirectiveFormat(&'static str),
    #[error("cannot restore slice from map")]
    ObjectForList,
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// Objects and other values in one list.
    #[error("list element types are not identical: [{0} {1}]")]
    MixedItems(String, String),
    #[error("merging lists cannot yet be specified in the patch")]
    MergingList,
    /// Both lists as Go prints them.
    #[error("The order in patch list:\n{0}\n doesn't match $setElementOrder list:\n{1}\n")]
    OtherOrder(String, String),
}

/// # Errors
/// The item has no such key.
pub(super) fn key_of<'v>(item: &'v Value, merge_key: &str) -> Result<&'v Value, PatchError> {
    match merge_key {
        "" => Ok(item),
        key => {
            item.get(key).ok_or_else(|| PatchError::NoMergeKey { item: printed(item), key: key.to_owned() })
        }
    }
}
