//! Default values of built-in kinds that depend on other fields of the object.

use serde_json::{Map, Value, json};

use super::pod_defaults::{self, pod_spec};
use super::{daemon_set, fixed_defaults, namespace};
use crate::kinds::shared::defaults::set_empty;
use crate::resources::ResourceInfo;
use crate::{interrupt, object};

/// Fills in what upstream's defaulting functions fill in for this kind.
pub(super) fn fill(info: &ResourceInfo, object: &mut Value) {
    if !info.builtin {
        return;
    }
    fixed_defaults::fill(info, object);
    match (info.group.as_str(), info.kind.as_str()) {
        ("", "Pod") => {
            pod_spec(&mut object["spec"], "Always");
            pod_defaults::of_pod(&mut object["spec"]);
        }
        ("", "Namespace") => namespace::name_label(object),
        ("batch", "Job") => job(object),
        ("batch", "CronJob") => cron_job(object),
        ("apps", "Deployment") => deployment(object),
        ("apps", "ReplicaSet") => {
            set_absent(&mut object["spec"], &[("replicas", json!(1))]);
            pod_spec(&mut object["spec"]["template"]["spec"], "Always");
        }
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps", "DaemonSet") => daemon_set_spec(object),
        ("", "ReplicationController") => replication_controller(object),
        ("", "PodTemplate") => pod_spec(&mut object["template"]["spec"], "Always"),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("admissionregistration.k8s.io", kind) => admission(kind, object),
        _ => {}
    }
}

pub(super) fn set_absent(value: &mut Value, defaults: &[(&str, Value)]) {
    interrupt::checkpoint();
    let map = object::map_of(value);
    for (field, default) in defaults {
        if map.get(*field).is_none_or(Value::is_null) {
            map.insert((*field).to_owned(), default.clone());
        }
    }
}

pub(super) fn each<'v>(value: &'v mut Value, field: &str) -> impl Iterator<Item = &'v mut Value> {
    value.get_mut(field).and_then(Value::as_array_mut).into_iter().flatten()
}

/// An object without labels of its own gets those of its template.
fn template_labels(object: &mut Value, template: &str) {
    let unlabelled = object.pointer("/metadata/labels").and_then(Value::as_object).is_none_or(Map::is_empty);
    let labels =
        object.pointer(template).filter(|labels| labels.as_object().is_some_and(|labels| !labels.is_empty()));
    if unlabelled && let Some(labels) = labels.cloned() {
        object::set_meta(object, "labels", Some(labels));
    }
}

fn job(job: &mut Value) {
    template_labels(job, "/spec/template/metadata/labels");
    let spec = &mut job["spec"];
    let absent = |spec: &Value, field: &str| spec.get(field).is_none_or(Value::is_null);
    if absent(spec, "completions") && absent(spec, "parallelism") {
        set_absent(spec, &[("completions", json!(1))]);
    }
    let per_index = !absent(spec, "backoffLimitPerIndex");
    let failure_policy = !absent(spec, "podFailurePolicy");
    set_absent(
        spec,
        &[
            ("parallelism", json!(1)),
            ("backoffLimit", if per_index { json!(i32::MAX) } else { json!(6) }),
            ("manualSelector", json!(false)),
            ("completionMode", json!("NonIndexed")),
            ("suspend", json!(false)),
            (
                "podReplacementPolicy",
                if failure_policy { json!("Failed") } else { json!("TerminatingOrFailed") },
            ),
        ],
    );
    failure_conditions(spec);
    // Either policy has to be named for a Job: validation refuses the default of pods.
    pod_spec(&mut spec["template"]["spec"], "Always");
}

/// Conditions of pods by which a Job fails hold unless the contrary is asked for.
fn failure_conditions(spec: &mut Value) {
    let Some(policy) = spec.get_mut("podFailurePolicy") else { return };
    for rule in each(policy, "rules") {
        each(rule, "onPodConditions").for_each(|condition| set_empty(condition, "status", json!("True")));
    }
}

fn deployment(deployment: &mut Value) {
    let spec = &mut deployment["spec"];
    set_absent(
        spec,
        &[
            ("replicas", json!(1)),
            ("revisionHistoryLimit", json!(10)),
            ("progressDeadlineSeconds", json!(600)),
        ],
    );
    set_default(&mut spec["strategy"], "type", "RollingUpdate");
    if spec["strategy"]["type"] == "RollingUpdate" {
        let rolling = &mut spec["strategy"]["rollingUpdate"];
        set_absent(rolling, &[("maxUnavailable", json!("25%")), ("maxSurge", json!("25%"))]);
    }
    pod_spec(&mut spec["template"]["spec"], "Always");
}

/// Without a selector it chooses the pods of its template, and without labels it has theirs.
fn replication_controller(controller: &mut Value) {
    let labels = controller.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()).cloned().map(Value::Object) {
        set_empty_map(&mut controller["spec"], "selector", &labels);
        if object::meta_map(controller, "labels").next().is_none() {
            object::set_meta(controller, "labels", Some(labels));
        }
    }
    if let Some(spec) = controller.pointer_mut("/spec/template/spec") {
        pod_spec(spec, "Always");
    }
}

fn set_empty_map(owner: &mut Value, field: &str, default: &Value) {
    if owner.get(field).and_then(Value::as_object).is_none_or(Map::is_empty) {
        object::set_field(owner, field, Some(default.clone()));
    }
}

fn stateful_set(set: &mut Value) {
    let spec = &mut set["spec"];
    set_absent(
        spec,
        &[
            ("replicas", json!(1)),
            ("podManagementPolicy", json!("OrderedReady")),
            ("revisionHistoryLimit", json!(10)),
            (
                "persistentVolumeClaimRetentionPolicy",
                json!({"whenDeleted": "Retain", "whenScaled": "Retain"}),
            ),
        ],
    );
    for part in ["whenDeleted", "whenScaled"] {
        set_empty(&mut spec["persistentVolumeClaimRetentionPolicy"], part, json!("Retain"));
    }
    for claim in each(spec, "volumeClaimTemplates") {
        set_absent(claim, &[("kind", json!("PersistentVolumeClaim")), ("apiVersion", json!("v1"))]);
        set_absent(&mut claim["spec"], &[("volumeMode", json!("Filesystem"))]);
        set_absent(&mut claim["status"], &[("phase", json!("Pending"))]);
    }
    let strategy = &mut spec["updateStrategy"];
    if strategy.get("type").and_then(Value::as_str).is_none_or(str::is_empty) {
        set_default(strategy, "type", "RollingUpdate");
        set_absent(strategy, &[("rollingUpdate", json!({}))]);
    }
    // Whoever names the type alone has no parameters of it.
    if strategy["type"] == "RollingUpdate"
        && let Some(rolling) = strategy.get_mut("rollingUpdate").filter(|rolling| rolling.is_object())
    {
        set_absent(rolling, &[("partition", json!(0))]);
    }
    pod_spec(&mut spec["template"]["spec"], "Always");
}

fn daemon_set_spec(set: &mut Value) {
    daemon_set::fill(set);
    let spec = &mut set["spec"];
    set_absent(spec, &[("revisionHistoryLimit", json!(10))]);
    let strategy = &mut spec["updateStrategy"];
    set_default(strategy, "type", "RollingUpdate");
    if strategy["type"] == "RollingUpdate" {
        let rolling = &mut strategy["rollingUpdate"];
        set_absent(rolling, &[("maxUnavailable", json!(1)), ("maxSurge", json!(0))]);
    }
    pod_spec(&mut spec["template"]["spec"], "Always");
}

fn cron_job(job: &mut Value) {
    let spec = &mut job["spec"];
    set_absent(
        spec,
        &[
            ("concurrencyPolicy", json!("Allow")),
            ("suspend", json!(false)),
            ("successfulJobsHistoryLimit", json!(3)),
            ("failedJobsHistoryLimit", json!(1)),
        ],
    );
    failure_conditions(&mut spec["jobTemplate"]["spec"]);
    pod_spec(&mut spec["jobTemplate"]["spec"]["template"]["spec"], "Always");
}

fn set_default(value: &mut Value, field: &str, default: &str) {
    set_absent(value, &[(field, default.into())]);
}

fn definition(definition: &mut Value) {
    let names = &mut definition["spec"]["names"];
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !kind.is_empty() {
        set_absent(
            names,
            &[("singular", kind.to_lowercase().into()), ("listKind", format!("{kind}List").into())],
        );
    }
    set_absent(&mut definition["spec"], &[("conversion", json!({"strategy": "None"}))]);
}

fn admission(kind: &str, object: &mut Value) {
    match kind {
        "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration" => {
            for webhook in each(object, "webhooks") {
                set_absent(
                    webhook,
                    &[
                        ("failurePolicy", json!("Fail")),
                        ("matchPolicy", json!("Equivalent")),
                        ("namespaceSelector", json!({})),
                        ("objectSelector", json!({})),
                        ("timeoutSeconds", json!(10)),
                    ],
                );
                if kind == "MutatingWebhookConfiguration" {
                    set_absent(webhook, &[("reinvocationPolicy", json!("Never"))]);
                }
                if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
                    set_absent(service, &[("port", json!(443))]);
                }
                rule_scopes(webhook, "rules");
            }
        }
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            let spec = &mut object["spec"];
            set_absent(spec, &[("failurePolicy", json!("Fail"))]);
            match_resources(spec, "matchConstraints");
        }
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => {
            match_resources(&mut object["spec"], "matchResources")
        }
        _ => {}
    }
}

fn match_resources(spec: &mut Value, field: &str) {
    let Some(matching) = spec.get_mut(field) else { return };
    set_absent(
        matching,
        &[
            ("matchPolicy", json!("Equivalent")),
            ("namespaceSelector", json!({})),
            ("objectSelector", json!({})),
        ],
    );
    rule_scopes(matching, "resourceRules");
    rule_scopes(matching, "excludeResourceRules");
}

fn rule_scopes(owner: &mut Value, field: &str) {
    for rule in each(owner, field) {
        set_absent(rule, &[("scope", json!("*"))]);
    }
}
