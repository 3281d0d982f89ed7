//! Defines the strategy of DaemonSets.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go::integer::parse_int_or_error;
use serde_json::{Value, json};

use crate::kinds::Strategy;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::shared::internal::shown;
use crate::kinds::shared::{inside, int_or_percent, pod_spec, pod_template, replicas, selection, workload};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "DaemonSet",
    derived_annotations: &[GENERATION],
    inconvertible: Some(inconvertible),
    default: Some(|_, object| default(object)),
    prepare_create: Some(prepare_create),
    prepare_update: Some(prepare_update),
    prepare_status: Some(|set, old, _| prepare_update(set, old)),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

fn default(set: &mut Value) {
    // Set in defaulting, so that a client that sends a DaemonSet owns the annotation.
    if generation(set).is_none() {
        show_generation(set, 0);
    }
    let spec = &mut set["spec"];
    set_absent(spec, &[("revisionHistoryLimit", json!(10))]);
    let strategy = &mut spec["updateStrategy"];
    set_absent(strategy, &[("type", json!("RollingUpdate"))]);
    if strategy["type"] == "RollingUpdate" {
        let rolling = &mut strategy["rollingUpdate"];
        set_absent(rolling, &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
    } else if let Some(rolling) = strategy.get_mut("rollingUpdate").filter(|rolling| rolling.is_object()) {
        set_absent(rolling, &[("maxUnavailable", json!(0)), ("maxSurge", json!(0))]);
    }
    pod_spec::defaults::fill(&mut spec["template"]["spec"]);
}

/// The annotation in which `apps/v1` shows the template's generation: the number of its changes.
const GENERATION: &str = "deprecated.daemonset.template.generation";

fn inconvertible(set: &Value) -> Option<String> {
    let (_, text) = object::meta_map(set, "annotations").find(|(name, _)| *name == GENERATION)?;
    parse_int_or_error(text).err().map(|why| why.to_string())
}

fn prepare_create(set: &mut Value) {
    let given = generation(set).unwrap_or_default();
    show_generation(set, given.max(1));
}

/// Increments the template's generation if the template has changed, whatever value the client sent.
fn prepare_update(set: &mut Value, old: &Value) {
    let before = generation(old).unwrap_or(1);
    let [own, was] = [&*set, old].map(|set| set.pointer(super::TEMPLATE).unwrap_or(&Value::Null));
    let changed = !inside::alike("io.k8s.api.core.v1.PodTemplateSpec", own, was);
    show_generation(set, if changed { before.saturating_add(1) } else { before });
}

fn generation(set: &Value) -> Option<i64> {
    object::meta(set, "annotations")?.get(GENERATION)?.as_str()?.parse().ok()
}

fn show_generation(set: &mut Value, generation: i64) {
    let annotations = object::member_mut(object::map_of(&mut set["metadata"]), "annotations");
    annotations.insert(GENERATION.to_owned(), generation.to_string().into());
    annotations.sort_keys();
}

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
    super::same_selector(&Field::root(object).get("spec"), &Field::root(old).get("spec"), errors);
    whole(object, Some(old), errors);
}

/// Warns of the template only where that changes.
fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let is_same = old.is_some_and(|old| old.pointer(super::TEMPLATE) == object.pointer(super::TEMPLATE));
    if is_same { Vec::new() } else { workload::warnings(object, None, &["spec", "template"]) }
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
    use super::*;

    #[test]
    fn the_generation_counts_changes_of_the_template() {
        let mut set = json!({"metadata": {}, "spec": {"template": {"metadata": {"a": 1}}}});
        default(&mut set);
        assert_eq!(generation(&set), Some(0));
        prepare_create(&mut set);
        assert_eq!(generation(&set), Some(1));
        let mut same = set.clone();
        same["metadata"]["annotations"][GENERATION] = json!("7");
        prepare_update(&mut same, &set);
        assert_eq!(generation(&same), Some(1));
        let mut changed = set.clone();
        changed["spec"]["template"]["metadata"]["a"] = json!(2);
        prepare_update(&mut changed, &set);
        assert_eq!(generation(&changed), Some(2));
    }

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
