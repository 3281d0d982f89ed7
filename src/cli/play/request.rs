//! Defines the JSON that the page sends: a mode, and the contents of its panes.

use indexmap::IndexMap;
use serde::Deserialize;

/// A question from the page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Question {
    pub(super) mode: String,
    #[serde(default)]
    pub(super) fields: Texts,
}

/// The contents of the panes, by name. A pane that is not named is empty.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(super) struct Texts(IndexMap<String, String>);

impl Texts {
    pub(super) fn get(&self, pane: &str) -> &str {
        self.0.get(pane).map(String::as_str).unwrap_or_default()
    }

    /// Returns the names of panes that have a text and are not among `known`.
    pub(super) fn beside(&self, known: &[&str]) -> Vec<&str> {
        self.0.keys().map(String::as_str).filter(|name| !known.contains(name)).collect()
    }
}
