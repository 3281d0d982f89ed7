//! Job: what is generated for it, and what of it may change. Its specification and status have files of their own.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names;
use serde_json::{Map, Value, json};

use super::{job_spec, job_status};
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::{each, set_absent, template_labels};
use crate::kinds::shared::internal::shown;
use crate::kinds::shared::{inside, pod_spec, selection, workload};
use crate::kinds::{Habit, Reading, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Job",
    habits: &[Habit::OrphansByDefault, Habit::NamedByFieldLabels, Habit::ObjectAgain],
    default: Some(|_, object| default(object)),
    reading: Some(READING),
    prepare_create: Some(prepare_create),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(job_status::validate),
    judged_as_new: Some(|job, old, errors| whole(job, Some(old), errors)),
    warnings: Some(|object, old| job_spec::warnings(object, old, &["spec"])),
    ..Strategy::PLAIN
};

fn default(job: &mut Value) {
    template_labels(job, TEMPLATE_LABELS);
    let spec = &mut job["spec"];
    let absent = |spec: &Value, field: &str| spec.get(field).is_none_or(Value::is_null);
    if absent(spec, "completions") && absent(spec, "parallelism") {
        set_absent(spec, &[("completions", json!(1))]);
    }
    let limit = if absent(spec, "backoffLimitPerIndex") { 6 } else { i32::MAX };
    let replaced = if absent(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
    set_absent(
        spec,
        &[
            ("parallelism", json!(1)),
            ("backoffLimit", json!(limit)),
            ("manualSelector", json!(false)),
            ("completionMode", json!("NonIndexed")),
            ("suspend", json!(false)),
            ("podReplacementPolicy", json!(replaced)),
        ],
    );
    job_spec::default_conditions(spec);
    // Either policy has to be named for a Job: validation refuses the default of pods.
    pod_spec::defaults::fill(&mut spec["template"]["spec"]);
}

const TEMPLATE_LABELS: &str = "/spec/template/metadata/labels";

/// A Job without labels is read as one with those of its template. It is stored without: a write of what was read is
/// then a change.
const READING: Reading = Reading {
    differs: |job| object::meta(job, "labels").is_none() && job.pointer(TEMPLATE_LABELS).is_some(),
    read: |job| {
        let labels = job.pointer(TEMPLATE_LABELS).cloned();
        object::set_meta(job, "labels", labels);
    },
};

const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// Labels that older clients select pods by.
const LEGACY_CONTROLLER_UID: &str = "controller-uid";
const LEGACY_JOB_NAME: &str = "job-name";

/// Gives a Job that chooses nothing itself a selector of its own, and the template the labels that it chooses. Labels that
/// are there are kept: they are refused where they are others.
fn prepare_create(job: &mut Value) {
    job["status"] = json!({});
    if job.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let mut made = made(job);
    made.sort_keys();
    let uid = object::uid(job).to_owned();
    let template = object::member_mut(object::map_of(&mut job["spec"]), "template");
    let metadata = object::member_mut(template, "metadata");
    let labels = object::member_mut(metadata, "labels");
    for (key, value) in made {
        labels.entry(key).or_insert(value);
    }
    let selector = object::member_mut(object::map_of(&mut job["spec"]), "selector");
    object::member_mut(selector, "matchLabels").entry(CONTROLLER_UID).or_insert(uid.into());
}

/// The labels by which a Job's pods are known.
fn made(job: &Value) -> Map<String, Value> {
    let (uid, name) = (object::uid(job), object::name(job));
    let labels =
        [(LEGACY_CONTROLLER_UID, uid), (LEGACY_JOB_NAME, name), (CONTROLLER_UID, uid), (JOB_NAME, name)];
    labels.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect()
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    whole(object, None, errors);
}

fn whole(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let job = Field::root(object);
    generated(&job, old, errors);
    let spec = job.get("spec");
    selecting_spec(&spec, None, errors);
    let completions = spec.get("completions").integer().unwrap_or_default();
    if job_spec::is_indexed(&spec) && completions > 0 {
        let name = job.get("metadata").get("name");
        let last = format!("{}-{}", name.text(), completions.saturating_sub(1));
        if !names::dns1123_label(&last).is_empty() {
            errors
                .add(|| name.invalid(format!("will not able to create pod with invalid DNS label: {last}")));
        }
    }
}

/// Whether the selector and the labels that the server made are still those of this Job.
fn generated(job: &Field<'_>, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = job.get("spec");
    let selector = spec.get("selector");
    if spec.get("manualSelector").flag() || !selector.is_set() {
        return;
    }
    let labels = workload::labels_of(&spec.get("template"));
    let mut made = made(job.value());
    // A Job that was stored without the newer labels needs none.
    let had = |label: &str| {
        old.is_none_or(|old| old.pointer(TEMPLATE_LABELS).is_some_and(|of| of.get(label).is_some()))
    };
    if !(had(JOB_NAME) && had(CONTROLLER_UID)) {
        made.shift_remove(JOB_NAME);
        made.shift_remove(CONTROLLER_UID);
    }
    for (key, value) in &made {
        let label = labels.key(key);
        let why = || format!("must be '{}'", value.as_str().unwrap_or_default());
        if !label.is_set() {
            errors.add(|| label.required(why()));
        } else if label.value() != value {
            errors.add(|| label.invalid_as(&*labels.as_sent(), why()));
        }
    }
    let is_usable = selection::is_usable(&selector, &mut FieldErrors::default());
    if is_usable && !selection::chooses(&selector, &Value::Object(made)) {
        errors.add(|| selector.invalid("`selector` not auto-generated"));
    }
}

/// The specification, whose selector chooses the pods that it makes.
fn selecting_spec(spec: &Field<'_>, old: Option<&Value>, errors: &mut FieldErrors) {
    job_spec::validate(spec, workload::part(old, "/spec/template"), errors);
    let selector = spec.get("selector");
    if !selector.is_set() {
        errors.add(|| selector.required(""));
    }
    if selection::is_usable(&selector, errors) {
        workload::is_chosen(&selector, &spec.get("template"), errors);
    }
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let (spec, before) = (Field::root(object).get("spec"), Field::root(old).get("spec"));
    selecting_spec(&spec, Some(old), errors);
    completions(&spec, &before, errors);
    fixed(&spec, &before, "selector", None, errors);
    template(&spec.get("template"), &before.get("template"), waits(old), errors);
    spec.get("completionMode").immutable(&before.get("completionMode"), errors);
    fixed(&spec, &before, "podFailurePolicy", Some("io.k8s.api.batch.v1.PodFailurePolicy"), errors);
    fixed(&spec, &before, "backoffLimitPerIndex", None, errors);
    fixed(&spec, &before, "managedBy", None, errors);
    fixed(&spec, &before, "successPolicy", Some("io.k8s.api.batch.v1.SuccessPolicy"), errors);
}

/// A field that stays as it is; `inside` is its type where Kubernetes shows it in its internal form.
fn fixed(
    spec: &Field<'_>,
    old: &Field<'_>,
    field: &'static str,
    inside: Option<&str>,
    errors: &mut FieldErrors,
) {
    let (value, before) = (spec.get(field), old.get(field));
    if value.value() != before.value() {
        errors.add(|| match inside.filter(|_| value.is_set()) {
            Some(name) => value.invalid_as(shown(&value, name), "field is immutable"),
            None => value.invalid_as(&*value.as_sent(), "field is immutable"),
        });
    }
}

/// An indexed Job may be resized when parallelism follows completions.
fn completions(spec: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    if !job_spec::is_indexed(spec) {
        return fixed(spec, old, "completions", None, errors);
    }
    let completions = spec.get("completions");
    let changed = completions.is_set() && completions.value() != old.get("completions").value();
    if changed && completions.value() != spec.get("parallelism").value() {
        errors.add(|| completions.invalid("can only be modified in tandem with spec.parallelism"));
    }
}

/// Whether a Job waits for its pods to be made: it is suspended, and was never started or has no pods any more.
fn waits(job: &Value) -> bool {
    let (spec, status) = (Field::root(job).get("spec"), Field::root(job).get("status"));
    let is_idle =
        || job_status::holds(&status, "Suspended") && status.get("active").integer().unwrap_or_default() == 0;
    spec.get("suspend").flag() && (!status.get("startTime").is_set() || is_idle())
}

/// The template stays. Of a Job that waits only the specification of the pods is looked at, and what it may change is left
/// out: where they run, and what they ask for.
fn template(template: &Field<'_>, old: &Field<'_>, waits: bool, errors: &mut FieldErrors) {
    let spec = template.get("spec");
    let (field, name, same) = if waits {
        let same = waiting_alike(spec.value(), old.get("spec").value());
        (&spec, "io.k8s.api.core.v1.PodSpec", same)
    } else {
        let name = "io.k8s.api.core.v1.PodTemplateSpec";
        (template, name, inside::alike(name, template.value(), old.value()))
    };
    if !same {
        errors.add(|| field.invalid_as(shown(field, name), "field is immutable"));
    }
}

/// Whether two specifications of pods differ only in what a Job that waits may change.
fn waiting_alike(one: &Value, two: &Value) -> bool {
    let fixed = |spec: &Value| {
        let mut fixed = spec.clone();
        for containers in ["containers", "initContainers"] {
            each(&mut fixed, containers)
                .for_each(|container| object::set_field(container, "resources", None));
        }
        let spec = object::map_of(&mut fixed);
        for field in ["nodeSelector", "tolerations", "schedulingGates"] {
            spec.shift_remove(field);
        }
        let affinity = spec.get_mut("affinity").and_then(Value::as_object_mut);
        let is_empty = affinity.is_some_and(|affinity| {
            affinity.shift_remove("nodeAffinity");
            affinity.is_empty()
        });
        if is_empty {
            spec.shift_remove("affinity");
        }
        fixed
    };
    inside::alike("io.k8s.api.core.v1.PodSpec", &fixed(one), &fixed(two))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    fn job() -> Value {
        let mut job = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {
            "completionMode": "Indexed", "completions": 2, "parallelism": 2, "suspend": true,
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "restartPolicy": "Never", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
                "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always",
                    "terminationMessagePolicy": "File"}]}}}});
        prepare_create(&mut job);
        job
    }

    #[test]
    fn selectors_are_generated_and_kept() {
        let mut job = job();
        assert_eq!(job["spec"]["selector"], json!({"matchLabels": {CONTROLLER_UID: "u"}}));
        assert_eq!(told(&STRATEGY, &job, None), Vec::<String>::new());
        job["spec"]["template"]["metadata"]["labels"][JOB_NAME] = json!("b");
        let texts = told(&STRATEGY, &job, None);
        assert_eq!(texts.len(), 1);
        assert!(texts[0].ends_with(": must be 'a'"), "{texts:?}");
        let mut given = json!({"metadata": {"name": "a", "uid": "u"}, "spec": {
            "template": {"metadata": {"labels": {JOB_NAME: "mine"}}}}});
        prepare_create(&mut given);
        assert_eq!(given["spec"]["template"]["metadata"]["labels"][JOB_NAME], "mine");
    }

    #[test]
    fn names_of_pods_are_host_names() {
        let mut job = job();
        job["metadata"]["name"] = json!("a.b");
        prepare_create(&mut job);
        for label in [JOB_NAME, LEGACY_JOB_NAME] {
            job["spec"]["template"]["metadata"]["labels"][label] = json!("a.b");
        }
        assert_eq!(
            told(&STRATEGY, &job, None),
            [
                "metadata.name: Invalid value: \"a.b\": will not able to create pod with invalid DNS label: a.b-1"
            ]
        );
    }

    #[test]
    fn little_of_a_job_may_change() {
        let old = job();
        let change = |change: fn(&mut Value), old: &Value| {
            let mut new = old.clone();
            change(&mut new["spec"]);
            told(&STRATEGY, &new, Some(old))
        };
        let resized = |spec: &mut Value| spec["completions"] = json!(3);
        assert_eq!(
            change(resized, &old),
            ["spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism"]
        );
        let placed: fn(&mut Value) = |spec| {
            spec["template"]["spec"]["affinity"] = json!({"nodeAffinity": {}});
            spec["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
        };
        assert_eq!(change(placed, &old), Vec::<String>::new());
        let mut started = old.clone();
        started["status"] = json!({"startTime": "2030-01-01T00:00:00Z"});
        assert_eq!(change(placed, &started).len(), 1);
        let apart: fn(&mut Value) = |spec| spec["template"]["spec"]["affinity"] = json!({"podAffinity": {}});
        assert_eq!(change(apart, &old).len(), 1);
        assert_eq!(
            change(|spec| spec["managedBy"] = json!("a.b/c"), &old),
            ["spec.managedBy: Invalid value: \"a.b/c\": field is immutable"]
        );
    }
}
