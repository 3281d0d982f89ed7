//! Parts that several kinds have in common.

pub(crate) mod conditions;
pub(crate) mod go_struct;
pub(crate) mod label_selector;
pub(crate) mod network;
pub(crate) mod reference;
pub(crate) mod signer_name;
