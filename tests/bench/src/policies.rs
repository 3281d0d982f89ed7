//! Provides pod security policies, and a request that all of them evaluate.

use admit_policy::{Documents, PolicySet, Request};
use serde_json::{Value, json};

/// Sixteen rules for the containers of a Pod.
const RULES: [&str; 16] = [
    "!has(object.spec.hostNetwork) || !object.spec.hostNetwork",
    "!has(object.spec.hostPID) || !object.spec.hostPID",
    "!has(object.spec.hostIPC) || !object.spec.hostIPC",
    "!has(object.spec.volumes) || object.spec.volumes.all(v, !has(v.hostPath))",
    "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) \
     || !c.securityContext.privileged)",
    "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.allowPrivilegeEscalation) \
     && !c.securityContext.allowPrivilegeEscalation)",
    "object.spec.containers.all(c, has(c.securityContext) && has(c.securityContext.capabilities) \
     && has(c.securityContext.capabilities.drop) && 'ALL' in c.securityContext.capabilities.drop)",
    "object.spec.containers.all(c, !has(c.securityContext.capabilities.add) \
     || c.securityContext.capabilities.add.all(a, a in ['NET_BIND_SERVICE', 'CHOWN']))",
    "object.spec.containers.all(c, !has(c.ports) || c.ports.all(p, !has(p.hostPort) || p.hostPort == 0))",
    "object.spec.containers.all(c, c.image.startsWith('registry.example.com/'))",
    "object.spec.containers.all(c, c.image.matches('^[a-z0-9./-]+:[a-z0-9.-]+$') && !c.image.endsWith(':latest'))",
    "object.spec.containers.all(c, has(c.resources) && has(c.resources.limits) && 'memory' in c.resources.limits)",
    "has(object.spec.securityContext) && has(object.spec.securityContext.runAsNonRoot) \
     && object.spec.securityContext.runAsNonRoot",
    "has(object.spec.securityContext.seccompProfile) \
     && object.spec.securityContext.seccompProfile.type in ['RuntimeDefault', 'Localhost']",
    "object.spec.containers.all(c, c.securityContext.?readOnlyRootFilesystem.orValue(false))",
    "has(object.metadata.labels) && 'app.kubernetes.io/name' in object.metadata.labels",
];

/// Returns `count` policies with a binding each; those after the first sixteen match other resources.
pub fn documents(count: usize) -> impl Iterator<Item = Value> {
    (0..count).flat_map(|n| {
        let resource = if n < RULES.len() { "pods".to_owned() } else { format!("widgets{n}") };
        let rule = RULES.get(n % RULES.len()).copied().unwrap_or_default();
        [policy(n, &resource, rule), binding(n)]
    })
}

fn policy(n: usize, resource: &str, rule: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("policy-{n}")},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [resource],
            }]},
            "validations": [{"expression": rule, "message": "not as the policy has it"}],
        },
    })
}

fn binding(n: usize) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("binding-{n}")},
        "spec": {"policyName": format!("policy-{n}"), "validationActions": ["Deny"]},
    })
}

/// Compiles the policy set of [`documents`].
///
/// # Panics
///
/// When a policy does not compile.
#[must_use]
#[expect(clippy::unwrap_used, reason = "a policy that does not compile is a mistake of this package")]
pub fn set(count: usize) -> PolicySet {
    let mut builder = PolicySet::builder();
    for document in documents(count) {
        builder.add(&document).unwrap();
    }
    builder.finish()
}

/// Returns the environment of decisions: the Namespace of the request.
#[must_use]
pub fn host() -> Documents {
    let mut documents = Documents::default();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}});
    documents.insert(std::sync::Arc::new(namespace));
    documents
}

/// Returns a request to create a Pod of three containers that every policy allows, with `annotations` annotations that no
/// policy reads.
///
/// # Panics
///
/// When the request is not one.
#[must_use]
#[expect(clippy::unwrap_used, reason = "a request that is none is a mistake of this package")]
pub fn request(annotations: usize) -> Request<'static> {
    Request::from_value(&asked(annotations)).unwrap()
}

/// Returns the AdmissionReview of that request, as an API server sends it.
#[must_use]
pub fn review(annotations: usize) -> Vec<u8> {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": asked(annotations),
    });
    review.to_string().into_bytes()
}

fn asked(annotations: usize) -> Value {
    let container = |n: usize| {
        json!({
            "name": format!("c{n}"),
            "image": format!("registry.example.com/team/service-{n}:1.{n}.0"),
            "ports": [{"containerPort": 8080 + n, "protocol": "TCP"}],
            "resources": {"limits": {"cpu": "1", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}},
            "securityContext": {
                "privileged": false,
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
            },
            "env": [{"name": "MODE", "value": "production"}],
        })
    };
    let annotations: serde_json::Map<_, _> =
        (0..annotations).map(|n| (format!("example.com/note-{n}"), json!("remember"))).collect();
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "web",
            "namespace": "prod",
            "labels": {"app.kubernetes.io/name": "web"},
            "annotations": annotations,
        },
        "spec": {
            "containers": (0..3).map(container).collect::<Vec<_>>(),
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "tmp", "emptyDir": {}}],
        },
    });
    json!({
        "uid": "1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "web",
        "namespace": "prod",
        "operation": "CREATE",
        "userInfo": {"username": "alice", "groups": ["staff"]},
        "object": pod,
    })
}
