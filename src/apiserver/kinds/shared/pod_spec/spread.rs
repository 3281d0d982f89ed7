//! Validates topology spread constraints.

use std::collections::HashMap;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;

use super::scheduling::label_keys;
use super::{Options, known_if_set};
use crate::kinds::field::Field;
use crate::kinds::shared::label_selector::{self, LabelValues};

const ACTIONS: [&str; 2] = ["DoNotSchedule", "ScheduleAnyway"];
const POLICIES: [&str; 2] = ["Honor", "Ignore"];

/// Validates a list of topology spread constraints.
pub(super) fn validate(list: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let pair = |constraint: &Field<'_>| {
        (
            constraint.get("topologyKey").text().to_owned(),
            constraint.get("whenUnsatisfiable").text().to_owned(),
        )
    };
    let mut left: HashMap<(String, String), usize> = HashMap::new();
    for constraint in list.items() {
        let count = left.entry(pair(&constraint)).or_default();
        *count = count.saturating_add(1);
    }
    for constraint in list.items() {
        let (skew, topology, action) =
            (constraint.get("maxSkew"), constraint.get("topologyKey"), constraint.get("whenUnsatisfiable"));
        let number = skew.integer().unwrap_or(0);
        if number <= 0 {
            errors.add(|| skew.invalid_as(number, "must be greater than zero"));
        }
        if topology.text().is_empty() {
            errors.add(|| topology.required("can not be empty"));
        }
        if !ACTIONS.contains(&action.text()) {
            errors.add(|| action.not_supported(&ACTIONS));
        }
        if let Some(count) = left.get_mut(&pair(&constraint)) {
            *count = count.saturating_sub(1);
            if *count > 0 {
                let shown = format!("{{{}, {}}}", topology.text(), action.text());
                errors.add(|| {
                    FieldError::duplicate(constraint.get("{topologyKey, whenUnsatisfiable}"), shown.as_str())
                });
            }
        }
        least_domains(&constraint.get("minDomains"), action.text(), errors);
        known_if_set(&constraint.get("nodeAffinityPolicy"), &POLICIES, errors);
        known_if_set(&constraint.get("nodeTaintsPolicy"), &POLICIES, errors);
        let selector = constraint.get("labelSelector");
        if !options.odd_spread_keys {
            label_keys(&constraint, &selector, errors);
        }
        if !options.odd_spread_selectors {
            label_selector::validate(&selector, LabelValues::Checked, errors);
        }
    }
}

fn least_domains(least: &Field<'_>, action: &str, errors: &mut FieldErrors) {
    let Some(number) = least.integer() else { return };
    if number <= 0 {
        errors.add(|| least.invalid("must be greater than zero"));
    }
    if action != "DoNotSchedule" {
        let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
        errors.add(|| least.invalid(why));
    }
}
