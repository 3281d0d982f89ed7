//! Pods. Read from pkg/registry/core/pod/strategy.go and pkg/apis/core/validation of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::{Value, json};

use super::{pod_begin, pod_below, pod_status, pod_update};
use crate::kinds::field::Field;
use crate::kinds::shared::pod_spec::{self, Options, annotations};
use crate::kinds::{Habit, Strategy};
use crate::object;
use crate::resources::Subresource;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Pod",
    habits: &[Habit::AnswersDeleted, Habit::Graceful, Habit::ObjectAgain],
    default: Some(|_, pod| {
        pod_spec::defaults::fill(&mut pod["spec"]);
        pod_spec::defaults::fill_pod(&mut pod["spec"]);
        read(pod);
    }),
    warnings_before: Some(pod_begin::warnings),
    prepare_create: Some(pod_begin::begin),
    stamp: Some(|pod, request| pod_begin::stamp(pod, request.clock)),
    grace_period: Some(pod_status::grace_period),
    prepare_status: Some(|pod, old, _| {
        keep_quality(pod, old);
        keep_observed(pod, old);
        // Off unless switched on.
        let field = "nodeAllocatableResourceClaimStatuses";
        if old.pointer("/status").and_then(|status| status.get(field)).is_none_or(Value::is_null) {
            object::set_field(&mut pod["status"], field, None);
        }
    }),
    validate_create: Some(validate_create),
    validate_update: Some(validate_update),
    validate_status: Some(pod_status::validate),
    validate_below: Some(validate_below),
    warnings: Some(warnings),
    status_warnings: Some(pod_status::warnings),
    ..Strategy::PLAIN
};

/// Annotations that init containers were once written in.
const INIT_CONTAINERS: [&str; 4] = [
    "pod.beta.kubernetes.io/init-containers",
    "pod.alpha.kubernetes.io/init-containers",
    "pod.beta.kubernetes.io/init-container-statuses",
    "pod.alpha.kubernetes.io/init-container-statuses",
];

/// What becomes of a pod as soon as it is read (pkg/apis/core/v1/conversion.go).
fn read(pod: &mut Value) {
    agree_on_addresses(pod);
    if let Some(metadata) = pod.get_mut("metadata").filter(|metadata| metadata.get("annotations").is_some()) {
        INIT_CONTAINERS.iter().for_each(|key| object::set_field(&mut metadata["annotations"], key, None));
    }
    // No period is shorter than that of a second.
    let grace = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    if grace.is_some_and(|seconds| seconds < 0) {
        object::set_field(&mut pod["spec"], "terminationGracePeriodSeconds", Some(1.into()));
    }
}

/// The first of the addresses stands alone, too, for those who know of no others; where both are given, that one counts.
fn agree_on_addresses(pod: &mut Value) {
    let Some(status) = pod.get_mut("status") else { return };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let (one, first) = (text(status.get("podIP")), text(status.pointer("/podIPs/0/ip")));
    let has_list = status.get("podIPs").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    if !one.is_empty() && one != first {
        object::set_field(status, "podIPs", Some(json!([{"ip": one}])));
    } else if one.is_empty() && has_list {
        object::set_field(status, "podIP", Some(first.into()).filter(|first: &Value| first != ""));
    }
}

/// Older programs leave out what the server found out when the pod was made.
fn keep_quality(pod: &mut Value, old: &Value) {
    let quality = old.pointer("/status/qosClass").cloned();
    let is_left_out = pod.pointer("/status/qosClass").and_then(Value::as_str).is_none_or(str::is_empty);
    if is_left_out && quality.is_some() {
        object::set_field(&mut pod["status"], "qosClass", quality);
    }
}

/// Which generation the status and its conditions are about is not forgotten by those who do not know that it is told. There may
/// be several conditions of one type, in an order.
fn keep_observed(pod: &mut Value, old: &Value) {
    const FIELD: &str = "observedGeneration";
    let told = |part: &Value| {
        part.get(FIELD).filter(|generation| generation.as_i64().is_some_and(|told| told != 0)).cloned()
    };
    let keep = |part: &mut Value, before: Option<Value>| {
        if before.is_some() && told(part).is_none() {
            object::set_field(part, FIELD, before);
        }
    };
    let Some(status) = pod.get_mut("status").filter(|status| status.is_object()) else { return };
    keep(status, told(&old["status"]));
    let before = old.pointer("/status/conditions").and_then(Value::as_array);
    let mut left: Vec<&Value> = before.into_iter().flatten().collect();
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let same = left.iter().position(|before| before["type"] == condition["type"]);
        keep(condition, same.and_then(|at| told(left.remove(at))));
    }
}

/// What is wrong with a pod, which replaces one with the specification `old` if there is one.
fn validate(pod: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let root = Field::root(pod);
    let spec = root.get("spec");
    annotations::validate(&root.get("metadata").get("annotations"), &spec, errors);
    pod_spec::validate(&spec, &Options::pod(pod, old), errors);
    if spec.get("serviceAccountName").is_empty() {
        for volume in spec.get("volumes").items() {
            for source in volume.get("projected").get("sources").items() {
                let token = source.get("serviceAccountToken");
                if token.is_set() {
                    errors
                        .add(|| token.forbidden("must not be specified when serviceAccountName is not set"));
                }
            }
        }
    }
    pod_spec::trimmed_images(&spec, errors);
}

fn validate_create(pod: &Value, errors: &mut FieldErrors) {
    validate(pod, None, errors);
    let root = Field::root(pod);
    let (spec, given) = (root.get("spec"), root.get("metadata").get("annotations"));
    let (debugging, node) = (spec.get("ephemeralContainers"), spec.get("nodeName"));
    if !debugging.is_empty() {
        errors.add(|| debugging.forbidden("cannot be set on create"));
    }
    if !node.is_empty() && !spec.get("schedulingGates").is_empty() {
        errors.add(|| node.forbidden("cannot be set until all schedulingGates have been cleared"));
    }
    annotations::seccomp_agrees(&given, &spec, errors);
    annotations::app_armor_agrees(&given, &spec, errors);
}

fn validate_update(pod: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(pod, old.get("spec"), errors);
    annotations::updated(pod, old, errors);
    pod_update::validate(pod, old, errors);
}

fn validate_below(subresource: Subresource, pod: &Value, old: &Value, errors: &mut FieldErrors) {
    let resize = subresource == Subresource::Resize;
    if let Some(refusal) = pod_below::refused(old, resize) {
        return errors.add(|| refusal);
    }
    validate(pod, old.get("spec"), errors);
    if resize {
        pod_below::resize(pod, old, errors);
    } else {
        annotations::updated(pod, old, errors);
        pod_below::ephemeral_containers(pod, old, errors);
    }
}

/// Changes of pods are made by programs, which nobody reads the warnings of.
fn warnings(pod: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let problems = NameRule::Label.problems(object::name(pod), false);
    let name = (!problems.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is \
             recommended: [{}]",
            problems.join(", ")
        )
    });
    name.into_iter().chain(pod_spec::warnings::of(&Field::root(pod), true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    /// A pod in which nothing is wrong, as it is after its defaults.
    fn pod() -> Value {
        json!({"metadata": {"name": "p"}, "spec": {
            "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30,
            "securityContext": {}, "containers": [container("c")]
        }})
    }

    fn container(name: &str) -> Value {
        json!({"name": name, "image": "i", "terminationMessagePolicy": "File", "imagePullPolicy": "Always",
            "resources": {}})
    }

    fn with(change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut object = pod();
        change(&mut object);
        told(&STRATEGY, &object, None)
    }

    type Case = (&'static str, Value, &'static [&'static str]);

    fn all(cases: &[Case]) {
        for (place, value, texts) in cases {
            let (parent, name) = place.rsplit_once('/').expect("a place");
            let found = with(|pod| pod.pointer_mut(parent).expect("a parent")[name] = value.clone());
            assert_eq!(found, *texts, "{place}: {value}");
        }
    }

    #[test]
    fn each_part_of_the_specification_is_looked_at() {
        assert_eq!(with(|_| {}), Vec::<String>::new());
        all(&[
            (
                "/spec/volumes",
                json!([{"name": "v", "nfs": {"path": "a"}}]),
                &[
                    "spec.volumes[0].nfs.server: Required value",
                    "spec.volumes[0].nfs.path: Invalid value: \"a\": must be an absolute path",
                ],
            ),
            (
                "/spec/volumes",
                json!([{"name": "v", "emptyDir": {}, "cephfs": {}}]),
                &["spec.volumes[0].cephFS: Forbidden: may not specify more than 1 volume type"],
            ),
            (
                "/spec/volumes",
                json!([{"name": "v", "projected": {"sources": [
                {"secret": {"name": "s", "items": [{"key": "a", "path": "p"}]}},
                {"configMap": {"name": "s", "items": [{"key": "a", "path": "p"}]}}]}}]),
                &["spec.volumes[0].projected: Invalid value: \"s\": conflicting duplicate paths"],
            ),
            (
                "/spec/volumes",
                json!([{"name": "v", "iscsi": {"targetPortal": "t", "iqn": "iqn.2015-02.example.com"}}]),
                &[
                    "spec.volumes[0].iscsi.iqn: Invalid value: \"iqn.2015-02.example.com\": must be valid format",
                ],
            ),
            ("/spec/hostNetwork", json!(true), &[]),
            ("/spec/resourceClaims", json!([{"name": "a", "resourceClaimName": "b"}]), &[]),
            (
                "/spec/schedulingGates",
                json!([{"name": "a"}, {"name": "a"}]),
                &["spec.schedulingGates[1]: Duplicate value: \"a\""],
            ),
            (
                "/spec/os",
                json!({"name": "bsd"}),
                &["spec.os: Unsupported value: \"bsd\": supported values: \"linux\", \"windows\""],
            ),
            (
                "/spec/securityContext",
                json!({"windowsOptions": {"runAsUserName": "a\\b\\c"}}),
                &[
                    "spec.securityContext.windowsOptions.runAsUserName: Invalid value: \"a\\\\b\\\\c\": runAsUserName \
                 cannot contain more than one backslash",
                ],
            ),
            (
                "/spec/securityContext",
                json!({"appArmorProfile": {"type": "Localhost"}}),
                &[
                    "spec.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type \
                 is Localhost",
                ],
            ),
        ]);
    }

    #[test]
    fn each_part_of_containers_is_looked_at() {
        all(&[
            (
                "/spec/overhead",
                json!({"cpu": "-1"}),
                &["spec.overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"],
            ),
            (
                "/spec/containers/0/restartPolicyRules",
                json!([{"action": "Stop"}]),
                &[
                    "spec.containers[0].restartPolicy: Required value: must specify restartPolicy when restart rules are \
                 used",
                    "spec.containers[0].restartPolicyRules[0].action: Unsupported value: \"Stop\": supported values: \
                 \"Restart\", \"RestartAllContainers\"",
                    "spec.containers[0].restartPolicyRules[0].exitCodes: Required value: must be specified",
                ],
            ),
            (
                "/spec/containers/0/resources",
                json!({"limits": {"hugepages-2Mi": "3Mi"}}),
                &[
                    "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive \
                 integer multiple of hugepages-2Mi",
                    "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
                ],
            ),
            (
                "/spec/containers/0/resources",
                json!({"claims": [{"name": "a"}]}),
                &["spec.containers[0].resources.claims[0]: Not found: \"a\": must be one of the names in \
                 pod.spec.resourceClaims which is empty"],
            ),
            (
                "/spec/containers/0/env",
                json!([{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1",
                "fieldPath": "metadata.labels"}}}]),
                &[
                    "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"metadata.labels\": \
                 supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \
                 \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \
                 \"status.podIPs\"",
                ],
            ),
            (
                "/spec/topologySpreadConstraints",
                json!([
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"},
                {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
                &[
                    "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{z, \
                 DoNotSchedule}\"",
                ],
            ),
        ]);
    }

    #[test]
    fn pods_as_a_whole_hold_what_their_containers_ask_for() {
        let texts = with(|pod| {
            pod["spec"]["resources"] =
                json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1", "memory": "1Gi"}});
            pod["spec"]["containers"] = json!([container("a"), container("b")]);
            for at in 0..2 {
                pod["spec"]["containers"][at]["resources"] =
                    json!({"requests": {"cpu": "600m"}, "limits": {"memory": "2Gi", "cpu": "1"}});
            }
        });
        assert_eq!(
            texts,
            [
                "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate \
                 container requests of 1200m",
                "spec.resources.containers[0][memory].limits: Invalid value: \"2Gi\": must be less than or equal to \
                 pod limits of 1Gi",
                "spec.resources.containers[1][memory].limits: Invalid value: \"2Gi\": must be less than or equal to \
                 pod limits of 1Gi",
            ]
        );
    }

    #[test]
    fn mistakes_beyond_the_bound_are_counted() {
        use crate::status::Refusal;

        let object =
            json!({"spec": {"terminationGracePeriodSeconds": 1, "containers": vec![json!({}); 60_000]}});
        let causes =
            STRATEGY.errors(&object, None).into_iter().map(|error| error.cause()).collect::<Vec<_>>();
        let refusal = Refusal::invalid_kind("", "Pod", "a", causes).to_value();
        let causes = refusal["details"]["causes"].as_array().map(Vec::as_slice).unwrap_or_default();
        assert_eq!(causes.len(), 1_001);
        let message = refusal["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("Pod \"a\" is invalid: [spec.containers[0].name: Required value, "));
        let more = causes[1_000]["message"].as_str().unwrap_or_default();
        assert!(more.starts_with("and ") && more.ends_with(" more"), "{more}");
        assert!(message.ends_with(&format!(", {more}]")));
    }

    #[test]
    fn long_lists_of_names_are_looked_through_once() {
        let named =
            |prefix: &str| (0..60_000).map(|at| json!({"name": format!("{prefix}{at}")})).collect::<Vec<_>>();
        let mounts: Vec<Value> =
            (0..60_000).map(|at| json!({"name": format!("v{at}"), "mountPath": format!("/{at}")})).collect();
        let volumes: Vec<Value> =
            (0..60_000).map(|at| json!({"name": format!("v{at}"), "emptyDir": {}})).collect();
        let texts = with(|pod| {
            pod["spec"]["volumes"] = volumes.into();
            pod["spec"]["containers"][0]["volumeMounts"] = mounts.into();
            pod["spec"]["containers"][0]["env"] = named("e").into();
        });
        assert_eq!(texts, Vec::<String>::new());
    }

    #[test]
    fn statuses_agree_with_themselves() {
        let agreed = |status: Value| {
            let mut pod = json!({"status": status});
            agree_on_addresses(&mut pod);
            pod["status"].take()
        };
        let whole = json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}]});
        assert_eq!(agreed(json!({"podIP": "10.0.0.1"})), whole);
        assert_eq!(agreed(json!({"podIPs": [{"ip": "10.0.0.1"}]})), whole);
        assert_eq!(agreed(json!({"podIP": "10.0.0.1", "podIPs": [{"ip": "::1"}, {"ip": "::2"}]})), whole);
        let mut hasty = json!({"spec": {"terminationGracePeriodSeconds": -1}});
        read(&mut hasty);
        assert_eq!(hasty, json!({"spec": {"terminationGracePeriodSeconds": 1}}));
        let told = |status: Value, old: Value| {
            let [new, old] =
                [status, old].map(|status| json!({"spec": {"restartPolicy": "Never"}, "status": status}));
            STRATEGY.status_errors(&new, &old).into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        let ended = json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 0}}}]});
        let again = json!({"containerStatuses": [{"name": "c", "state": {"running": {}}}],
            "podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}], "qosClass": "Burstable"});
        assert_eq!(
            told(again, ended),
            [
                "status.qosClass: Invalid value: \"Burstable\": field is immutable",
                "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state",
                "status.podIPs: Invalid value: [{\"IP\":\"10.0.0.1\"},{\"IP\":\"10.0.0.1\"}]: may specify no more than \
                 one IP for each IP family",
            ]
        );
    }

    #[test]
    fn warnings_are_of_new_pods() {
        let mut object = pod();
        object["metadata"]["name"] = "a.b".into();
        object["spec"]["containers"][0]["ports"] = json!([{"containerPort": 1, "protocol": "TCP", "hostIP": "::1"}, {"containerPort": 1, "protocol": "TCP"}]);
        object["spec"]["volumes"] = json!([{"name": "v", "gitRepo": {"repository": "r"}}]);
        object["spec"]["nodeSelector"] = json!({"beta.kubernetes.io/os": "linux"});
        assert_eq!(
            warnings(&object, None),
            [
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label \
                 is recommended: [must not contain dots]",
                "spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                "spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+",
                "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:1 \
                 Protocol:TCP HostIP:::1}",
                "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
            ]
        );
        assert!(warnings(&object, Some(&object)).is_empty());
    }
}
