//! Lists the kinds of `apps` (pkg/apis/apps/validation and pkg/registry/apps).

mod controller_revision;
mod daemon_set;
mod deployment;
mod replica_set;
mod stateful_set;

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use super::Strategy;
use super::field::Field;
use super::shared::{label_selector, pod_template, selection, workload};

pub(super) const KINDS: &[Strategy] = &[
    controller_revision::STRATEGY,
    daemon_set::STRATEGY,
    deployment::STRATEGY,
    replica_set::STRATEGY,
    stateful_set::STRATEGY,
];

/// Path of the pod template in an object.
const TEMPLATE: &str = "/spec/template";

/// Requires a selector with at least one requirement. Returns whether the selector is valid; a missing one counts as valid.
fn selector(selector: &Field<'_>, owner: &str, errors: &mut FieldErrors) -> bool {
    if !selector.is_set() {
        errors.add(|| selector.required(""));
        return true;
    }
    let usable = selection::is_usable(selector, errors);
    if selection::asks_nothing(selector) {
        errors.add(|| selector.invalid(format!("empty selector is invalid for {owner}")));
    }
    usable
}

/// Validates the template of a Deployment or ReplicaSet (`ValidatePodTemplateSpecForReplicaSet`).
fn kept_template(spec: &Field<'_>, old: Option<&Value>, usable: bool, errors: &mut FieldErrors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if !usable {
        errors.add(|| selector.invalid("invalid label selector"));
        return;
    }
    is_chosen(&selector, &template, errors);
    pod_template::validate(&template, workload::part(old, TEMPLATE), errors);
    workload::runs_always(&template, "ReplicaSet", errors);
}

/// A non-empty selector must match the labels of the template.
fn is_chosen(selector: &Field<'_>, template: &Field<'_>, errors: &mut FieldErrors) {
    if !selection::asks_nothing(selector) {
        workload::is_chosen(selector, template, errors);
    }
}

/// Requires an unchanged selector; the error shows the new one.
fn same_selector(spec: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let selector = spec.get("selector");
    if selector.value() != old.get("selector").value() {
        errors.add(|| selector.invalid_as(label_selector::shown(&selector), "field is immutable"));
    }
}
