//! PodDisruptionBudget.

use admit_apimachinery::field_error::BadValue;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::label_selector::{self, LabelValues};
use crate::kinds::shared::{conditions, int_or_percent, replicas};
use crate::kinds::{Habit, Naming, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "PodDisruptionBudget",
    name: Some(Naming::Rule(NameRule::PathSegment)),
    habits: &[Habit::NeedsVersion, Habit::ChangeOnce, Habit::StatusUnjudged, Habit::JudgedApart],
    validate: Some(validate),
    validate_status: Some(validate_status),
    ..Strategy::PLAIN
};

fn validate(object: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let (least, most) = (spec.get("minAvailable"), spec.get("maxUnavailable"));
    if least.is_set() && most.is_set() {
        errors.add(|| spec.invalid_as(shown(&spec), "minAvailable and maxUnavailable cannot be both set"));
    }
    for bound in [&least, &most] {
        int_or_percent::not_negative(bound, errors);
        int_or_percent::at_most_all(bound, errors);
    }
    label_selector::validate(&spec.get("selector"), LabelValues::Checked, errors);
    let policy = spec.get("unhealthyPodEvictionPolicy");
    let known = ["AlwaysAllow", "IfHealthyBudget"];
    if policy.is_set() && !known.contains(&policy.text()) {
        errors.add(|| policy.not_supported(&known));
    }
}

fn shown(spec: &Field<'_>) -> BadValue {
    crate::kinds::shared::internal::shown(spec, "io.k8s.api.policy.v1.PodDisruptionBudgetSpec")
}

fn validate_status(object: &Value, _: &Value, errors: &mut FieldErrors) {
    let status = Field::root(object).get("status");
    conditions::validate(&status.get("conditions"), errors);
    let counts = ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"];
    replicas::not_negative(&status, &counts, errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn one_of_two_bounds_is_given() {
        let told = |spec: Value| -> Vec<String> {
            let mut errors = FieldErrors::default();
            validate(&json!({"spec": spec}), &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect()
        };
        assert_eq!(told(json!({"minAvailable": 1})), Vec::<String>::new());
        let both = told(json!({"minAvailable": 1, "maxUnavailable": "101%"}));
        assert!(both[0].ends_with(": minAvailable and maxUnavailable cannot be both set"), "{both:?}");
        assert_eq!(both[1], "spec.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%");
    }
}
