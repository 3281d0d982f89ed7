//! The kinds of `admissionregistration.k8s.io`. Their specifications are validated by those who compile them: the
//! package of policies.
//!
//! Read from pkg/apis/admissionregistration/validation/validation.go and pkg/registry/admissionregistration.

mod policy;
mod policy_status;
mod webhooks;

use serde_json::{Value, json};

use super::shared::defaults::{each, set_absent};
use super::{Habit, Strategy};

pub(super) const KINDS: &[Strategy] = &[
    policy::VALIDATING,
    policy::VALIDATING_BINDING,
    policy::MUTATING,
    policy::MUTATING_BINDING,
    webhooks::VALIDATING,
    webhooks::MUTATING,
];

/// What all of them have in common.
const HABITS: &[Habit] = &[Habit::NeedsVersion, Habit::ChangeOnce, Habit::ObjectAgain];

fn rule_scopes(owner: &mut Value, field: &str) {
    for rule in each(owner, field) {
        set_absent(rule, &[("scope", json!("*"))]);
    }
}
