//! Where policies and their bindings are stored.

/// Where policies and bindings lie in the store.
pub(crate) const POLICIES: &str = "validatingadmissionpolicies";

pub(crate) const BINDINGS: &str = "validatingadmissionpolicybindings";

/// The same of those that change objects.
pub(crate) const MUTATING_POLICY_KEY: &str = "mutatingadmissionpolicies";

pub(crate) const MUTATING_BINDING_KEY: &str = "mutatingadmissionpolicybindings";

/// Whether objects at this storage key are policies or bindings.
pub(crate) fn concerns(storage_key: &str) -> bool {
    [POLICIES, BINDINGS, MUTATING_POLICY_KEY, MUTATING_BINDING_KEY].contains(&storage_key)
}
