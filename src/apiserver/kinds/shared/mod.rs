//! Parts that several kinds have in common.

pub(crate) mod conditions;
pub(crate) mod config_key;
pub(crate) mod defaults;
pub(crate) mod go_struct;
pub(crate) mod image;
pub(crate) mod int_or_percent;
pub(crate) mod internal;
pub(crate) mod label_selector;
pub(crate) mod network;
pub(crate) mod pod_spec;
pub(crate) mod pod_template;
pub(crate) mod reference;
pub(crate) mod replicas;
pub(crate) mod selection;
pub(crate) mod signer_name;
pub(crate) mod workload;
