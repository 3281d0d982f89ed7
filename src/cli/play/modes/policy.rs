//! Evaluates ValidatingAdmissionPolicies: conditions, variables, validations, messages and audit annotations.

use super::super::examples;
use super::{DEFINITIONS, Mode, NEW, OLD, Pane, REQUEST, pictures, rehearsed};

const POLICY: Pane =
    Pane { name: "policy", title: "Policy", hint: "A ValidatingAdmissionPolicy, or several" };
const BINDING: Pane = Pane {
    name: "binding",
    title: "Binding",
    hint: "Its ValidatingAdmissionPolicyBinding: without one a policy is not asked",
};
const PARAMS: Pane = Pane {
    name: "params",
    title: "Params",
    hint: "The objects that bindings name as params, and Namespaces",
};
/// Panes with the configuration that is in force.
const IN_FORCE: &[&str] = &["policy", "binding", "params", "crd"];

pub(super) const MODE: Mode = Mode {
    name: "policy",
    title: "ValidatingAdmissionPolicy",
    about: "Whether policies admit the request: which match, which conditions hold, what each validation comes to, and what the \
            binding makes of a failure.",
    panes: &[POLICY, BINDING, PARAMS, NEW, OLD, REQUEST, DEFINITIONS],
    examples: examples::POLICY,
    evaluate: |texts| rehearsed::evaluated(texts, IN_FORCE),
    pictures: Some(|texts| pictures::of(texts, IN_FORCE)),
};
