//! DaemonSet.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::kinds::field::Field;
use crate::kinds::shared::internal::shown;
use crate::kinds::shared::{int_or_percent, pod_template, replicas, selection, workload};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "DaemonSet",
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    ..Strategy::PLAIN
};

fn validate(object: &Value, errors: &mut FieldErrors) {
    whole(object, None, errors);
}

fn whole(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    if selection::is_usable(&selector, errors) {
        workload::is_chosen(&selector, &template, errors);
    }
    if selection::asks_nothing(&selector) {
        errors.add(|| selector.invalid("empty selector is invalid for daemonset"));
    }
    pod_template::validate(&template, workload::part(old, super::TEMPLATE), errors);
    workload::runs_always(&template, "DaemonSet", errors);
    spec.get("minReadySeconds").not_negative(errors);
    strategy(&spec.get("updateStrategy"), errors);
    spec.get("revisionHistoryLimit").not_negative(errors);
}

fn strategy(strategy: &Field<'_>, errors: &mut FieldErrors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" if !rolling.is_set() => errors.add(|| rolling.required("")),
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => errors.add(|| {
            let shown = shown(strategy, "io.k8s.api.apps.v1.DaemonSetUpdateStrategy");
            FieldError::not_supported(strategy, shown, ["RollingUpdate", "OnDelete"])
        }),
    }
}

fn rolling_update(rolling: &Field<'_>, errors: &mut FieldErrors) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    for check in [int_or_percent::not_negative, int_or_percent::at_most_all] {
        check(&unavailable, errors);
        check(&surge, errors);
    }
    match (int_or_percent::number(&unavailable) != 0, int_or_percent::number(&surge) != 0) {
        (true, true) => errors.add(|| surge.invalid("may not be set when maxUnavailable is non-zero")),
        (false, false) => errors.add(|| unavailable.required("cannot be 0 when maxSurge is 0")),
        _ => {}
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    whole(object, Some(old), errors);
    super::same_selector(&Field::root(object).get("spec"), &Field::root(old).get("spec"), errors);
}

fn validate_status(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let status = Field::root(object).get("status");
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    replicas::not_negative(&status, &counts, errors);
    replicas::not_decremented(&status, &Field::root(old).get("status"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pods_are_replaced_before_or_after_the_old_ones() {
        let told = |unavailable: Value, surge: Value| -> Vec<String> {
            let object = json!({"maxUnavailable": unavailable, "maxSurge": surge});
            let mut errors = FieldErrors::default();
            rolling_update(&Field::root(&object), &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect()
        };
        assert_eq!(told(json!(1), json!(0)), Vec::<String>::new());
        assert_eq!(told(json!(0), json!("10%")), Vec::<String>::new());
        assert_eq!(
            told(json!("0%"), json!(0)),
            ["maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]
        );
        assert_eq!(
            told(json!(1), json!("110%")),
            [
                "maxSurge: Invalid value: \"110%\": must not be greater than 100%",
                "maxSurge: Invalid value: \"110%\": may not be set when maxUnavailable is non-zero",
            ]
        );
    }

    #[test]
    fn collisions_are_never_fewer() {
        let status = |count: i64| json!({"status": {"collisionCount": count}});
        let mut errors = FieldErrors::default();
        validate_status(&status(1), &status(2), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(texts, ["status.collisionCount: Invalid value: 1: cannot be decremented"]);
    }
}
