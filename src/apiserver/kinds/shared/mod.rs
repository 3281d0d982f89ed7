//! Parts that several kinds have in common.

pub(crate) mod amount;
pub(crate) mod claim;
pub(crate) mod conditions;
pub(crate) mod config_key;
pub(crate) mod defaults;
pub(crate) mod go_struct;
pub(crate) mod image;
pub(crate) mod inside;
pub(crate) mod int_or_percent;
pub(crate) mod internal;
pub(crate) mod label_selector;
pub(crate) mod network;
pub(crate) mod node_selector;
pub(crate) mod pod_spec;
pub(crate) mod pod_template;
pub(crate) mod pod_uses;
pub(crate) mod reference;
pub(crate) mod replicas;
pub(crate) mod resource_names;
pub(crate) mod selection;
pub(crate) mod signer_name;
pub(crate) mod taints;
pub(crate) mod template_metadata;
pub(crate) mod texts;
pub(crate) mod workload;
