//! Lists the kinds of `storage.k8s.io`.

mod csi_driver;
mod csi_node;
mod csi_storage_capacity;
mod parameters;
mod storage_class;
mod volume_attachment;
mod volume_attributes_class;

use super::Strategy;

pub(super) const KINDS: &[Strategy] = &[
    csi_driver::STRATEGY,
    csi_node::STRATEGY,
    csi_storage_capacity::STRATEGY,
    storage_class::STRATEGY,
    volume_attachment::STRATEGY,
    volume_attributes_class::STRATEGY,
];
