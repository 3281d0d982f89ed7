//! Runs an API server in process, with one object of several kinds to change.

use std::fmt;

use admit_apiserver::{Identity, Server};
use axum::body::{Body, Bytes};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tower::ServiceExt as _;

/// The content types of patches.
pub const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

pub const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub const PODS: &str = "/api/v1/namespaces/default/pods";
pub const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
pub const ADMISSION_POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
pub const MUTATING: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies";
pub const MUTATING_BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings";
pub const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A user who is not an administrator, and has the rights granted here.
const TENANT: &str = "tenant";

/// A server, and the runtime that it runs on.
pub struct Cluster {
    runtime: Runtime,
    server: Server,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts a server with a ConfigMap, a Pod and a custom object, each named `a`, and a user who may only write roles.
    ///
    /// # Errors
    /// If the server or an object cannot be created.
    pub fn new() -> Result<Self, String> {
        // The stack size of threads is that of `admit`.
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_stack_size(8 << 20).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let server = runtime.block_on(Server::builder().build()).map_err(|refusal| format!("{refusal:?}"))?;
        let cluster = Self { runtime, server };
        let metadata = json!({"name": "a", "namespace": "default"});
        let container = json!({"name": "c", "image": "i:1"});
        let objects = [
            (DEFINITIONS, definition()),
            (
                CONFIG_MAPS,
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}),
            ),
            (
                PODS,
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}),
            ),
            (THINGS, json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": metadata})),
            (
                ROLES,
                json!({"metadata": {"name": TENANT}, "rules": [
                    {"verbs": ["create", "patch"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"]},
                ]}),
            ),
            (
                BINDINGS,
                json!({"metadata": {"name": TENANT},
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": TENANT}],
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": TENANT}}),
            ),
        ];
        for (path, object) in objects {
            let (code, answer) = cluster.send("POST", path, "application/json", object.to_string().into());
            if code != 201 {
                return Err(format!("{path}: {code} {}", String::from_utf8_lossy(&answer)));
            }
        }
        Ok(cluster)
    }

    /// Sends a request as an administrator; returns the status code and the body.
    pub fn send(&self, method: &str, path: &str, content_type: &str, body: Bytes) -> (u16, Bytes) {
        self.send_as(Identity::admin(), (method, path, content_type), body)
    }

    /// Creates an object as the user who may write roles.
    pub fn tenant_posts(&self, path: &str, body: Bytes) -> (u16, Bytes) {
        self.send_as(Identity::new(TENANT, []), ("POST", path, "application/json"), body)
    }

    fn send_as(
        &self,
        who: Identity,
        (method, path, content_type): (&str, &str, &str),
        body: Bytes,
    ) -> (u16, Bytes) {
        let request = Request::builder().method(method).uri(path).header("content-type", content_type);
        let request = request.extension(who);
        let Ok(request) = request.body(Body::from(body)) else { return (0, Bytes::new()) };
        self.runtime.block_on(async {
            let Ok(response) = self.server.router().oneshot(request).await;
            let code = response.status().as_u16();
            let body = response.into_body().collect().await;
            (code, body.map(http_body_util::Collected::to_bytes).unwrap_or_default())
        })
    }
}

/// Defines a kind that preserves unknown fields, with a list whose items have defaults.
fn definition() -> Value {
    let defaulted = json!({"type": "string", "default": "d".repeat(2_000)});
    let item = json!({"type": "object", "properties": {"d": defaulted}});
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "known": {"type": "object", "additionalProperties": {
                "type": "object", "properties": {"a": {"type": "string"}},
            }},
            "texts": {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "string"}}},
            "items": {"type": "array", "items": item},
        },
    });
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "versions": [version],
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        },
    })
}
