//! What the pods of namespaces select that select nothing of their own, and what they may select: the section
//! `podNodeSelectorPluginConfig`, which has no kind.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::sections::{SettingsError, typed};

/// For namespaces that no annotation speaks of.
const DEFAULT: &str = "clusterDefaultNodeSelector";

/// Selectors of nodes by the namespaces whose pods may have no other labels in theirs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::admission::plugins) struct NodeSelectors {
    #[serde(rename = "podNodeSelectorPluginConfig")]
    selectors: BTreeMap<String, String>,
}

impl NodeSelectors {
    /// # Errors
    /// For a section of another form.
    pub(super) fn read(section: Value) -> Result<Self, SettingsError> {
        typed(section)
    }

    /// The selector for namespaces that give none; it may be empty.
    pub(in crate::admission::plugins) fn default(&self) -> &str {
        self.of(DEFAULT)
    }

    /// What pods of the namespace may select; anything where it is empty.
    pub(in crate::admission::plugins) fn of(&self, namespace: &str) -> &str {
        self.selectors.get(namespace).map(String::as_str).unwrap_or_default()
    }
}
