//! Defines the context in which a pod specification is validated, and what stored objects may keep.

use crate::kinds::shared::label_selector::LabelValues;

/// The context of validation. Fields from `odd_selector_values` on allow what newer rules forbid, if the stored object has it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options<'o> {
    /// Whether it is the specification of a pod, not of a template.
    pub(crate) is_pod: bool,
    /// The name of the pod; empty for templates.
    pub(crate) pod_name: &'o str,
    /// Whether the pod is the mirror of a static pod.
    pub(crate) is_mirror: bool,
    /// Allows invalid label values in pod selectors.
    pub(super) odd_selector_values: bool,
    /// Allows invalid label values in required node selectors.
    pub(super) odd_node_values: bool,
    /// Allows invalid selectors in topology spread constraints.
    pub(super) odd_spread_selectors: bool,
    /// Allows label keys in topology spread constraints that are invalid, or are in the selector as well.
    pub(super) odd_spread_keys: bool,
    /// Allows tokens projected to paths outside of their volume.
    pub(super) any_token_path: bool,
    /// Allows sysctls of namespaces that the pod shares with its host.
    pub(super) host_sysctls: bool,
    /// Allows a user namespace together with the host's network.
    pub(super) own_users_in_host_network: bool,
    /// Allows block devices in a pod with a user namespace.
    pub(super) devices_of_own_users: bool,
    /// Allows volumes that get SELinux labels as they are mounted.
    pub(super) any_relabelling: bool,
    /// Allows init containers that restart on a resize.
    pub(super) restarted_init_containers: bool,
}

impl Options<'_> {
    /// Returns how pod selectors are validated.
    pub(super) const fn selector_values(&self) -> LabelValues {
        if self.odd_selector_values { LabelValues::Unchecked } else { LabelValues::Checked }
    }
}
