//! Evaluates MutatingAdmissionPolicies: which fields of an object they change.

use super::super::examples;
use super::{DEFINITIONS, Mode, NEW, OLD, Pane, REQUEST, rehearsed};

const POLICY: Pane = Pane {
    name: "policy",
    title: "Policy",
    hint: "A MutatingAdmissionPolicy, or several; ValidatingAdmissionPolicies see what they made",
};
const BINDING: Pane = Pane {
    name: "binding",
    title: "Binding",
    hint: "Its MutatingAdmissionPolicyBinding: without one it changes nothing",
};
const PARAMS: Pane = Pane {
    name: "params",
    title: "Params",
    hint: "The objects that bindings name as params, and Namespaces",
};

pub(super) const MODE: Mode = Mode {
    name: "mutating",
    title: "MutatingAdmissionPolicy",
    about: "What policies make of the object: each mutation with the value that it was made of, and the difference.",
    panes: &[POLICY, BINDING, PARAMS, NEW, OLD, REQUEST, DEFINITIONS],
    examples: examples::MUTATING,
    evaluate: |texts| rehearsed::evaluated(texts, &["policy", "binding", "params", "crd"]),
    pictures: None,
};
