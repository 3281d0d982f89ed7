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
use crate::object;

pub(super) const KINDS: &[Strategy] = &[
    policy::VALIDATING,
    policy::VALIDATING_BINDING,
    policy::MUTATING,
    policy::MUTATING_BINDING,
    webhooks::VALIDATING,
    webhooks::MUTATING,
];

/// What all of them have in common.
const HABITS: &[Habit] = &[Habit::NeedsVersion, Habit::ChangeOnce, Habit::ObjectAgain, Habit::StatusUnjudged];

/// Ends of names that are left to configurations in files.
const OF_FILES: &str = ".static.k8s.io";

fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let warning = || {
        format!(
            "metadata.name: names ending with \"{OF_FILES}\" are reserved for static manifest-based configurations and \
             cannot be managed via the API"
        )
    };
    object::name(object).ends_with(OF_FILES).then(warning).into_iter().collect()
}

fn rule_scopes(owner: &mut Value, field: &str) {
    for rule in each(owner, field) {
        set_absent(rule, &[("scope", json!("*"))]);
    }
}
