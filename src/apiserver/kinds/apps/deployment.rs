//! Defines the strategy of Deployments.

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go::integer::{parse_int, parse_int_or_error};
use serde_json::{Value, json};

use crate::kinds::Strategy;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::shared::internal::shown;
use crate::kinds::shared::{int_or_percent, pod_spec, replicas, workload};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Deployment",
    inconvertible: Some(inconvertible),
    default: Some(|_, object| default(object)),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

/// The annotation with the revision to roll back to, from API versions that supported rollbacks.
const ROLLBACK: &str = "deprecated.deployment.rollback.to";

fn rollback(deployment: &Value) -> Option<&str> {
    let (_, text) = object::meta_map(deployment, "annotations").find(|(name, _)| *name == ROLLBACK)?;
    Some(text).filter(|text| !text.is_empty())
}

fn inconvertible(deployment: &Value) -> Option<String> {
    let text = rollback(deployment)?;
    let why = parse_int_or_error(text).err()?;
    Some(format!("failed to parse annotation[{ROLLBACK}]={text} as int64: {why}"))
}

fn default(deployment: &mut Value) {
    let spec = &mut deployment["spec"];
    set_absent(
        spec,
        &[
            ("replicas", json!(1)),
            ("revisionHistoryLimit", json!(10)),
            ("progressDeadlineSeconds", json!(600)),
        ],
    );
    set_absent(&mut spec["strategy"], &[("type", json!("RollingUpdate"))]);
    if spec["strategy"]["type"] == "RollingUpdate" {
        let rolling = &mut spec["strategy"]["rollingUpdate"];
        set_absent(rolling, &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
    }
    pod_spec::defaults::fill(&mut spec["template"]["spec"]);
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    whole(object, None, errors);
}

fn whole(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    spec.get("replicas").not_negative(errors);
    let usable = super::selector(&spec.get("selector"), "deployment", errors);
    super::kept_template(&spec, old, usable, errors);
    strategy(&spec.get("strategy"), errors);
    replicas::not_negative(&spec, &["minReadySeconds", "revisionHistoryLimit"], errors);
    let revision = rollback(object).and_then(parse_int);
    if let Some(revision) = revision.filter(|revision| *revision < 0) {
        let field = spec.get("rollback").get("version");
        errors.add(|| field.invalid_as(revision, "must be greater than or equal to 0"));
    }
    let deadline = spec.get("progressDeadlineSeconds");
    deadline.not_negative(errors);
    let ready = spec.get("minReadySeconds").integer().unwrap_or_default();
    if deadline.integer().is_some_and(|seconds| seconds <= ready) {
        errors.add(|| deadline.invalid("must be greater than minReadySeconds"));
    }
}

fn strategy(strategy: &Field<'_>, errors: &mut FieldErrors) {
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" => {
            if rolling.is_set() {
                errors.add(|| rolling.forbidden("may not be specified when strategy `type` is 'Recreate'"));
            }
        }
        "RollingUpdate" if !rolling.is_set() => {
            errors.add(|| rolling.required("this should be defaulted and never be nil"));
        }
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => errors.add(|| {
            let shown = shown(strategy, "io.k8s.api.apps.v1.DeploymentStrategy");
            FieldError::not_supported(strategy, shown, ["Recreate", "RollingUpdate"])
        }),
    }
}

fn rolling_update(rolling: &Field<'_>, errors: &mut FieldErrors) {
    let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
    int_or_percent::not_negative(&unavailable, errors);
    int_or_percent::not_negative(&surge, errors);
    if int_or_percent::number(&unavailable) == 0 && int_or_percent::number(&surge) == 0 {
        errors.add(|| unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
    int_or_percent::at_most_all(&unavailable, errors);
}

/// Warns wherever the generation rises: also where only annotations change.
fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let annotated = |old: &&Value| object::meta(old, "annotations") == object::meta(object, "annotations");
    let name = workload::name_warning(object, old);
    name.into_iter().chain(workload::warnings(object, old.filter(annotated), &["spec", "template"])).collect()
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    whole(object, Some(old), errors);
    super::same_selector(&Field::root(object).get("spec"), &Field::root(old).get("spec"), errors);
}

fn validate_status(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let status = Field::root(object).get("status");
    let counts = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    replicas::not_negative(&status, &counts, errors);
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    replicas::at_most(&status, &parts, "replicas", "status.replicas", errors);
    replicas::at_most(&status, &["availableReplicas"], "readyReplicas", "readyReplicas", errors);
    replicas::not_decremented(&status, &Field::root(old).get("status"), errors);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(change: fn(&mut Value)) -> Vec<String> {
        let mut object = json!({"spec": {
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
                "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always",
                    "terminationMessagePolicy": "File"}]}}}});
        change(&mut object);
        let mut errors = FieldErrors::default();
        validate(&object, &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn what_is_wrong_is_told_in_order() {
        assert_eq!(told(|_| ()), Vec::<String>::new());
        assert_eq!(
            told(|object| object["spec"]["strategy"]["rollingUpdate"] =
                json!({"maxUnavailable": 0, "maxSurge": "0%"})),
            [
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"
            ]
        );
        assert_eq!(
            told(|object| object["spec"]["strategy"]["type"] = json!("Recreate")),
            [
                "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"
            ]
        );
        assert_eq!(
            told(|object| object["spec"]["template"]["spec"]["activeDeadlineSeconds"] = json!(3)),
            [
                "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"
            ]
        );
        assert_eq!(
            told(|object| {
                object["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] = json!("130%");
                object["spec"]["progressDeadlineSeconds"] = json!(0);
            }),
            [
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"130%\": must not be greater than 100%",
                "spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds",
            ]
        );
    }
}
