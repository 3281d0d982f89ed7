//! Minimal valid objects of built-in kinds, with placeholder names and images.
//!
//! A kind that is not listed gets an object with a name only. Where no server accepts that, the generated test case
//! says so.

use serde_json::{Map, Value, json};

/// The fields beside `metadata` of the least object of a kind that a server takes.
pub(super) fn fields(kind: &str) -> Map<String, Value> {
    let fields = workload(kind).or_else(|| network(kind)).or_else(|| storage(kind)).or_else(|| cluster(kind));
    match fields {
        Some(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

fn labels() -> Value {
    json!({"app": "sample"})
}

fn pod(restart: Option<&str>) -> Value {
    let mut spec = json!({"containers": [{"name": "main", "image": "registry.example/app:1.0"}]});
    if let (Some(fields), Some(restart)) = (spec.as_object_mut(), restart) {
        fields.insert("restartPolicy".to_owned(), json!(restart));
    }
    spec
}

fn template() -> Value {
    json!({"metadata": {"labels": labels()}, "spec": pod(None)})
}

fn workload(kind: &str) -> Option<Value> {
    let job = || json!({"template": {"spec": pod(Some("Never"))}});
    Some(match kind {
        "Pod" => json!({"spec": pod(None)}),
        "PodTemplate" => json!({"template": template()}),
        "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" => {
            json!({"spec": {"selector": {"matchLabels": labels()}, "template": template()}})
        }
        "ReplicationController" => json!({"spec": {"selector": labels(), "template": template()}}),
        "ControllerRevision" => json!({"data": {}, "revision": 1}),
        "Job" => json!({"spec": job()}),
        "CronJob" => json!({"spec": {"schedule": "0 * * * *", "jobTemplate": {"spec": job()}}}),
        "HorizontalPodAutoscaler" => {
            let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "sample"});
            json!({"spec": {"maxReplicas": 3, "scaleTargetRef": target}})
        }
        "PodDisruptionBudget" => {
            json!({"spec": {"minAvailable": 1, "selector": {"matchLabels": labels()}}})
        }
        _ => return None,
    })
}

fn network(kind: &str) -> Option<Value> {
    Some(match kind {
        "Service" => json!({"spec": {"selector": labels(), "ports": [{"port": 80}]}}),
        "EndpointSlice" => json!({"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.1"]}]}),
        "Ingress" => {
            json!({"spec": {"defaultBackend": {"service": {"name": "sample", "port": {"number": 80}}}}})
        }
        "IngressClass" => json!({"spec": {"controller": "example.com/sample"}}),
        "NetworkPolicy" => json!({"spec": {"podSelector": {"matchLabels": labels()}}}),
        "ServiceCIDR" => json!({"spec": {"cidrs": ["192.0.2.0/24"]}}),
        "IPAddress" => {
            let parent = json!({"resource": "services", "namespace": "default", "name": "sample"});
            json!({"spec": {"parentRef": parent}})
        }
        _ => return None,
    })
}

fn storage(kind: &str) -> Option<Value> {
    let modes = ["ReadWriteOnce"];
    Some(match kind {
        "PersistentVolumeClaim" => {
            json!({"spec": {"accessModes": modes, "resources": {"requests": {"storage": "1Gi"}}}})
        }
        "PersistentVolume" => {
            let host = json!({"path": "/srv/sample"});
            json!({"spec": {"accessModes": modes, "capacity": {"storage": "1Gi"}, "hostPath": host}})
        }
        "StorageClass" => json!({"provisioner": "example.com/sample"}),
        "CSINode" => json!({"spec": {"drivers": []}}),
        "CSIDriver" => json!({"spec": {}}),
        "VolumeAttributesClass" => json!({"driverName": "example.com", "parameters": {"class": "sample"}}),
        "CSIStorageCapacity" => json!({"storageClassName": "sample"}),
        "VolumeAttachment" => {
            let source = json!({"persistentVolumeName": "sample"});
            json!({"spec": {"attacher": "example.com", "nodeName": "sample", "source": source}})
        }
        _ => return None,
    })
}

fn cluster(kind: &str) -> Option<Value> {
    let role = |kind: &str| {
        let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "sample"});
        let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "someone"});
        json!({"roleRef": role, "subjects": [subject]})
    };
    Some(match kind {
        "ClusterRole" | "Role" => {
            json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]})
        }
        "RoleBinding" => role("Role"),
        "ClusterRoleBinding" => role("ClusterRole"),
        "PriorityClass" => json!({"value": 1000}),
        "RuntimeClass" => json!({"handler": "sample"}),
        "Lease" => json!({"spec": {"holderIdentity": "sample", "leaseDurationSeconds": 15}}),
        "LimitRange" => json!({"spec": {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}}),
        "ResourceQuota" => json!({"spec": {"hard": {"pods": "10"}}}),
        "FlowSchema" => json!({"spec": {"priorityLevelConfiguration": {"name": "sample"}}}),
        "PriorityLevelConfiguration" => {
            json!({"spec": {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}})
        }
        "ValidatingAdmissionPolicyBinding" => {
            json!({"spec": {"policyName": "sample", "validationActions": ["Deny"]}})
        }
        "APIService" => json!({"spec": {
            "group": "example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 15,
            "service": {"namespace": "default", "name": "sample"},
        }}),
        "ResourceSlice" => {
            let pool = json!({"name": "sample", "generation": 1, "resourceSliceCount": 1});
            json!({"spec": {"driver": "example.com", "nodeName": "sample", "pool": pool}})
        }
        "MutatingAdmissionPolicyBinding" => json!({"spec": {"policyName": "sample"}}),
        "ValidatingAdmissionPolicy" => json!({"spec": {
            "matchConstraints": creations(),
            "validations": [{"expression": "object.metadata.name != ''"}],
        }}),
        "MutatingAdmissionPolicy" => {
            let label = r#"[JSONPatch{op: "add", path: "/metadata/labels/app", value: "sample"}]"#;
            json!({"spec": {
                "matchConstraints": creations(), "reinvocationPolicy": "Never",
                "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": label}}],
            }})
        }
        _ => return None,
    })
}

/// What the least policy matches.
fn creations() -> Value {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]});
    json!({"resourceRules": [rule]})
}

/// Returns the name of the minimal object of a kind; for some kinds it refers to another object.
pub(super) fn name(kind: &str) -> &'static str {
    match kind {
        "APIService" => "v1.example.com",
        "IPAddress" => "192.0.2.1",
        _ => "sample",
    }
}

/// Guesses the kind of an unknown resource from its plural.
pub(super) fn kind_of(plural: &str) -> String {
    let singular = match (plural.strip_suffix("ies"), plural.strip_suffix("ses"), plural.strip_suffix('s')) {
        (Some(stem), _, _) => format!("{stem}y"),
        (None, Some(stem), _) => format!("{stem}s"),
        (None, None, stem) => stem.unwrap_or(plural).to_owned(),
    };
    let mut letters = singular.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
