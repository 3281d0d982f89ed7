//! Reads the settings of `PodNodeSelector`: a default node selector and the labels each namespace may select, in the section
//! `podNodeSelectorPluginConfig`, which has no kind.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::sections::{SettingsError, typed};

/// The key of the default for namespaces without the annotation.
const DEFAULT: &str = "clusterDefaultNodeSelector";

/// The node labels that pods may select, by namespace, and the default selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(in crate::admission::plugins) struct NodeSelectors {
    #[serde(rename = "podNodeSelectorPluginConfig")]
    selectors: BTreeMap<String, String>,
}

impl NodeSelectors {
    /// # Errors
    /// If the section has another form.
    pub(super) fn read(section: Value) -> Result<Self, SettingsError> {
        typed(section)
    }

    /// Returns the selector for namespaces without the annotation; it may be empty.
    pub(in crate::admission::plugins) fn default(&self) -> &str {
        self.of(DEFAULT)
    }

    /// Returns the labels that pods of the namespace may select; empty allows all.
    pub(in crate::admission::plugins) fn of(&self, namespace: &str) -> &str {
        self.selectors.get(namespace).map(String::as_str).unwrap_or_default()
    }
}
