//! Evaluates CustomResourceDefinitions: schemas, and the rules of `x-kubernetes-validations`.

use super::super::examples;
use super::{Mode, NEW, OLD, Pane, REQUEST, pictures, rehearsed};

const DEFINITION: Pane = Pane {
    name: "crd",
    title: "CustomResourceDefinition",
    hint: "Schemas with x-kubernetes-validations; several documents are divided by ---",
};

pub(super) const MODE: Mode = Mode {
    name: "crd",
    title: "Rules of a CustomResourceDefinition",
    about: "Whether a server stores the object: its schema, and the rules at each value. With an old object, transition rules and \
            ratcheting count as in an update.",
    panes: &[DEFINITION, NEW, OLD, REQUEST],
    examples: examples::CRD,
    evaluate: |texts| rehearsed::evaluated(texts, &["crd"]),
    pictures: Some(|texts| pictures::of(texts, &["crd"])),
};
