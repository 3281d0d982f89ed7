//! Lists the modes of the page: one for each place where Kubernetes evaluates CEL. A mode is a row of [`ALL`], and a file that
//! computes an answer from the contents of its panes.

mod authentication;
mod authorization;
mod crd;
mod devices;
mod documents;
mod expression;
mod mutating;
mod pictures;
mod policy;
mod rehearsed;
mod webhook;

use serde::{Serialize, Serializer};

use self::pictures::Picture;
use super::answer::Answer;
use super::examples::Example;
use super::request::Texts;

/// A mode of the page.
#[derive(Debug, Serialize)]
pub(super) struct Mode {
    pub(super) name: &'static str,
    title: &'static str,
    about: &'static str,
    /// In the order of the page.
    panes: &'static [Pane],
    examples: &'static [Example],
    #[serde(skip)]
    pub(super) evaluate: fn(&Texts) -> Answer,
    /// Draws which states may follow one another. None for objects without states; the page learns only whether there is one.
    #[serde(rename = "drawn", serialize_with = "is_some")]
    pub(super) pictures: Option<fn(&Texts) -> Vec<Picture>>,
}

/// A text field of the page.
#[derive(Debug, Serialize)]
pub(in crate::cli::play) struct Pane {
    pub(super) name: &'static str,
    title: &'static str,
    /// What to write there.
    hint: &'static str,
}

impl Mode {
    /// Returns the names of its panes.
    pub(super) fn panes(&self) -> Vec<&'static str> {
        self.panes.iter().map(|pane| pane.name).collect()
    }
}

fn is_some<T, S: Serializer>(given: &Option<T>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(given.is_some())
}

/// Every mode, in the order of the page.
pub(super) const ALL: &[Mode] = &[
    crd::MODE,
    policy::MODE,
    mutating::MODE,
    webhook::MODE,
    authentication::MODE,
    authorization::MODE,
    devices::MODE,
    expression::MODE,
];

pub(super) fn named(name: &str) -> Option<&'static Mode> {
    ALL.iter().find(|mode| mode.name == name)
}

const NEW: Pane = Pane {
    name: "new",
    title: "New object",
    hint: "The object that is written; empty with an old one: a deletion",
};
const OLD: Pane =
    Pane { name: "old", title: "Old object", hint: "The object that is there before; empty: a creation" };
const REQUEST: Pane = Pane {
    name: super::asked::PANE,
    title: "Request",
    hint: "user, groups, operation, subresource, namespace, namespaceLabels, authorizer; all may be left out",
};
const DEFINITIONS: Pane = Pane {
    name: "crd",
    title: "Definitions",
    hint: "CustomResourceDefinitions of the objects; empty for built-in kinds",
};
