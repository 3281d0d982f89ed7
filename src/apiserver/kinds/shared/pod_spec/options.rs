//! What a specification is validated as.

use crate::kinds::shared::label_selector::LabelValues;

/// What a specification is validated as.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'o> {
    /// Whether it is that of a pod, not of a template.
    pub(crate) is_pod: bool,
    /// The name of the pod; empty for templates.
    pub(crate) pod_name: &'o str,
    /// Whether the pod stands for one that a node runs of its own accord.
    pub(crate) is_mirror: bool,
    /// Values in selectors of pods that no label can have.
    pub(super) odd_selector_values: bool,
    /// Values in required node selectors that no label can have.
    pub(super) odd_node_values: bool,
    /// Selectors of spread constraints that are none.
    pub(super) odd_spread_selectors: bool,
    /// Keys of labels in spread constraints that are none, or are selected by as well.
    pub(super) odd_spread_keys: bool,
    /// Tokens that are projected to paths outside of their volume.
    pub(super) any_token_path: bool,
    /// Kernel parameters of namespaces that the pod shares with its host.
    pub(super) host_sysctls: bool,
    /// Users of its own in the network of the host.
    pub(super) own_users_in_host_network: bool,
    /// Raw devices of a pod with users of its own.
    pub(super) devices_of_own_users: bool,
    /// Volumes that get the labels of SELinux as they are mounted.
    pub(super) any_relabelling: bool,
    /// Init containers that start anew when they are resized.
    pub(super) restarted_init_containers: bool,
}

impl Options<'_> {
    /// How the selectors of pods are checked.
    pub(super) const fn selector_values(&self) -> LabelValues {
        if self.odd_selector_values { LabelValues::Unchecked } else { LabelValues::Checked }
    }
}
