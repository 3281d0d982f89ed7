//! Validates the specification of Jobs, in a Job and in the template of a CronJob (`validateJobSpec`).

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Value, json};

use super::job_policies;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::{each, set_empty};
use crate::kinds::shared::internal::shown;
use crate::kinds::shared::{pod_spec, pod_template, replicas, workload};

/// Maximum of pods at once, and of failed indexes, of an indexed Job.
const MOST: i64 = 100_000;
/// The same for a Job with more completions than [`MOST`].
const MOST_OF_MANY: i64 = 10_000;
const LONGEST_MANAGER: usize = 63;

/// Validates a specification without its selector; `old` is the previous pod template.
pub(super) fn validate(spec: &Field<'_>, old: Option<&Value>, errors: &mut FieldErrors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    replicas::not_negative(spec, &counts, errors);
    let per_index = spec.get("backoffLimitPerIndex");
    if spec.get("maxFailedIndexes").is_set() && !per_index.is_set() {
        errors.add(|| per_index.required("when maxFailedIndexes is specified"));
    }
    manager(&spec.get("managedBy"), errors);
    completion(spec, errors);
    let failures = spec.get("podFailurePolicy");
    if failures.is_set() {
        job_policies::failure(spec, errors);
    }
    let successes = spec.get("successPolicy");
    if successes.is_set() && is_indexed(spec) {
        job_policies::success(spec, errors);
    } else if successes.is_set() {
        errors.add(|| {
            let shown = shown(&successes, "io.k8s.api.batch.v1.SuccessPolicy");
            successes.invalid_as(shown, "requires indexed completion mode")
        });
    }
    replacement(spec, errors);
    pod_template::validate(&spec.get("template"), old, errors);
    restarts(spec, errors);
}

/// Validates the template of a CronJob's Jobs, which has no selector, because each Job gets its own.
pub(super) fn template(template: &Field<'_>, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = template.get("spec");
    validate(&spec, old, errors);
    let (selector, manual) = (spec.get("selector"), spec.get("manualSelector"));
    if selector.is_set() {
        errors.add(|| selector.invalid("`selector` will be auto-generated"));
    }
    if manual.flag() {
        errors.add(|| manual.not_supported(&["nil", "false"]));
    }
}

pub(super) fn is_indexed(spec: &Field<'_>) -> bool {
    spec.get("completionMode").text() == "Indexed"
}

/// Validates `managedBy`: a domain and a path.
fn manager(manager: &Field<'_>, errors: &mut FieldErrors) {
    if !manager.is_set() {
        return;
    }
    if manager.is_empty() {
        errors.add(|| manager.required(""));
    } else {
        manager.domain_prefixed_path(errors);
    }
    if manager.text().len() > LONGEST_MANAGER {
        errors.add(|| manager.too_long(63));
    }
}

/// Validates the completion mode, and the limits that depend on it.
fn completion(spec: &Field<'_>, errors: &mut FieldErrors) {
    let mode = spec.get("completionMode");
    let modes = ["NonIndexed", "Indexed"];
    if mode.is_set() && !modes.contains(&mode.text()) {
        errors.add(|| mode.not_supported(&modes));
    }
    if is_indexed(spec) {
        indexed(spec, errors);
    } else if !mode.is_set() || mode.text() == "NonIndexed" {
        for of_indexes in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            let of_indexes = spec.get(of_indexes);
            if of_indexes.is_set() {
                errors.add(|| of_indexes.invalid("requires indexed completion mode"));
            }
        }
    }
}

fn indexed(spec: &Field<'_>, errors: &mut FieldErrors) {
    let (completions, parallelism, failed) =
        (spec.get("completions"), spec.get("parallelism"), spec.get("maxFailedIndexes"));
    let above = |field: &Field<'_>, most: i64| field.integer().is_some_and(|number| number > most);
    if !completions.is_set() {
        errors.add(|| completions.required("when completion mode is Indexed"));
    }
    if above(&parallelism, MOST) {
        let why = format!("must be less than or equal to {MOST} when completion mode is Indexed");
        errors.add(|| parallelism.invalid(why));
    }
    if completions.integer().is_some_and(|completions| above(&failed, completions)) {
        errors.add(|| failed.invalid("must be less than or equal to completions"));
    }
    if above(&failed, MOST) {
        errors.add(|| failed.invalid(format!("must be less than or equal to {MOST}")));
    }
    if above(&completions, MOST) && spec.get("backoffLimitPerIndex").is_set() {
        if !failed.is_set() {
            errors.add(|| failed.required(format!("must be specified when completions is above {MOST}")));
        }
        for field in [&parallelism, &failed] {
            if above(field, MOST_OF_MANY) {
                errors.add(|| {
                    field.invalid(format!(
                        "must be less than or equal to {MOST_OF_MANY} when completions are above {MOST} and used with \
                         backoff limit per index"
                    ))
                });
            }
        }
    }
}

/// Validates when pods are replaced: with a pod failure policy only after they failed.
fn replacement(spec: &Field<'_>, errors: &mut FieldErrors) {
    let policy = spec.get("podReplacementPolicy");
    let known: &[&str] =
        if spec.get("podFailurePolicy").is_set() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    if policy.is_set() && !known.contains(&policy.text()) {
        errors.add(|| policy.not_supported(known));
    }
}

/// Validates the restart policy, which may not be `Always`.
fn restarts(spec: &Field<'_>, errors: &mut FieldErrors) {
    let policy = spec.get("template").get("spec").get("restartPolicy");
    match policy.text() {
        "" | "Always" => errors.add(|| policy.required("valid values: \"OnFailure\", \"Never\"")),
        "Never" => {}
        "OnFailure" => {
            if spec.get("podFailurePolicy").is_set() {
                errors
                    .add(|| policy.invalid("only \"Never\" is supported when podFailurePolicy is specified"));
            }
        }
        _ => errors.add(|| policy.not_supported(&["OnFailure", "Never"])),
    }
}

/// Returns warnings about an object whose Job specification is at `path`.
pub(super) fn warnings(object: &Value, old: Option<&Value>, path: &[&'static str]) -> Vec<String> {
    let mut warnings: Vec<String> = workload::name_warning(object, old).into_iter().collect();
    if workload::is_as_before(object, old) {
        return warnings;
    }
    let spec = path.iter().fold(Field::root(object), |field, step| field.get(step));
    let above =
        |field: &'static str, most: i64| spec.get(field).integer().is_some_and(|number| number > most);
    if is_indexed(&spec) && above("completions", MOST) && above("parallelism", MOST_OF_MANY) {
        let why = "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, \
                   Kubernetes might not be able to track completedIndexes when a big number of indexes fail";
        warnings.push(why.to_owned());
    }
    warnings.extend(pod_spec::warnings::of(&spec.get("template"), false));
    warnings
}

/// Sets the default status `True` in the pod conditions of a failure policy.
pub(super) fn default_conditions(spec: &mut Value) {
    let Some(policy) = spec.get_mut("podFailurePolicy") else { return };
    for rule in each(policy, "rules") {
        each(rule, "onPodConditions").for_each(|condition| set_empty(condition, "status", json!("True")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(change: fn(&mut Value)) -> Vec<String> {
        let mut object = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 1, "template": {"spec": {
            "restartPolicy": "Never", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always",
                "terminationMessagePolicy": "File"}]}}});
        change(&mut object);
        let mut errors = FieldErrors::default();
        validate(&Field::root(&object), None, &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn large_jobs_are_bounded() {
        assert_eq!(told(|_| ()), Vec::<String>::new());
        assert_eq!(
            told(|spec| {
                spec["completions"] = json!(200_000);
                spec["parallelism"] = json!(20_000);
                spec["backoffLimitPerIndex"] = json!(1);
            }),
            [
                "maxFailedIndexes: Required value: must be specified when completions is above 100000",
                "parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions are above 100000 \
                 and used with backoff limit per index",
            ]
        );
        assert_eq!(
            told(|spec| spec["parallelism"] = json!(100_001)),
            [
                "parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed"
            ]
        );
    }

    #[test]
    fn managers_are_a_domain_and_a_path() {
        assert_eq!(told(|spec| spec["managedBy"] = json!("acme.io/foo")), Vec::<String>::new());
        assert_eq!(
            told(|spec| spec["managedBy"] = json!("acme")),
            ["managedBy: Invalid value: \"acme\": must be a domain-prefixed path (such as \"acme.io/foo\")"]
        );
        assert_eq!(
            told(|spec| spec["managedBy"] = json!("acme.io/a b")),
            [
                r#"managedBy: Invalid value: "a b": Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"#
            ]
        );
    }
}
