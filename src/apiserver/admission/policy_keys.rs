//! Defines the storage keys of policies and their bindings.

/// The storage key of validating policies.
pub(crate) const POLICIES: &str = "validatingadmissionpolicies";

pub(crate) const BINDINGS: &str = "validatingadmissionpolicybindings";

/// The storage key of mutating policies.
pub(crate) const MUTATING_POLICY_KEY: &str = "mutatingadmissionpolicies";

pub(crate) const MUTATING_BINDING_KEY: &str = "mutatingadmissionpolicybindings";

/// Returns whether objects under this storage key are policies or bindings.
pub(crate) fn concerns(storage_key: &str) -> bool {
    [POLICIES, BINDINGS, MUTATING_POLICY_KEY, MUTATING_BINDING_KEY].contains(&storage_key)
}
