//! A server without sockets for tests of the routes, and surroundings that fail on request.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use admit_apiserver::BuiltinKinds;
use admit_policy::{
    Access, AccessAttributes, GroupVersionKind, GroupVersionResource, Host, HostError, PolicySet, Scope,
    UserInfo,
};
use axum::Router;
use axum::body::{Body, to_bytes};
use http::{Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::ServiceExt as _;

use admit::admission::{Admission, Cluster, InForce, Workers};
use admit::telemetry::{Metrics, Readiness, Traces};

pub(super) struct Server {
    router: Router,
    pub(super) metrics: Arc<Metrics>,
}

pub(super) struct Post {
    pub(super) route: String,
    pub(super) content_type: &'static str,
}

pub(super) struct Answered {
    pub(super) code: StatusCode,
    pub(super) json: Value,
}

impl Post {
    pub(super) fn to(route: &str) -> Self {
        Self { route: route.to_owned(), content_type: "application/json" }
    }
}

/// A server with the policies, bindings and definitions of `documents`, each a list of documents.
pub(super) fn server(documents: &[Vec<Value>]) -> Server {
    server_of(documents, None, false)
}

/// One that answers reviews of v1beta1 as well.
pub(super) fn server_of_beta(documents: &[Vec<Value>]) -> Server {
    server_of(documents, None, true)
}

pub(super) fn server_with(documents: &[Vec<Value>], cluster: Faulty) -> Server {
    server_of(documents, Some(Arc::new(cluster)), false)
}

pub(super) fn server_of(documents: &[Vec<Value>], cluster: Cluster, beta: bool) -> Server {
    let mut builder = PolicySet::builder();
    for document in documents.iter().flatten() {
        builder.add(document).unwrap();
    }
    let set = builder.finish().knowing(&BuiltinKinds);
    let in_force = InForce::new(Arc::new(set), "hash".to_owned());
    let metrics = Arc::new(Metrics::default());
    let admission = Admission {
        policies: watch::channel(Arc::new(in_force)).1,
        cluster,
        workers: Workers::start().unwrap(),
        metrics: Arc::clone(&metrics),
        beta,
        traces: Traces::default(),
        readiness: Readiness::default(),
        converters: admit::cli::converters(),
        timeout: std::time::Duration::from_secs(8),
    };
    Server { router: admission.router(), metrics }
}

impl Server {
    pub(super) async fn post(&self, route: &str, body: &str) -> Answered {
        self.send(Post::to(&format!("{route}?timeout=10s")), body).await
    }

    pub(super) async fn send(&self, post: Post, body: &str) -> Answered {
        self.send_bytes(post, body.as_bytes().to_vec()).await
    }

    pub(super) async fn post_bytes(&self, route: &str, body: Vec<u8>) -> Answered {
        self.send_bytes(Post::to(&format!("{route}?timeout=10s")), body).await
    }

    async fn send_bytes(&self, post: Post, body: Vec<u8>) -> Answered {
        let request = Request::post(post.route).header("content-type", post.content_type);
        let request = request.body(Body::from(body)).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let code = response.status();
        let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        Answered { code, json: serde_json::from_slice(&bytes).unwrap() }
    }

    pub(super) fn metrics(&self) -> String {
        self.metrics.text()
    }
}

pub(super) fn review(request: &Value) -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

/// The creation of an empty ConfigMap in the namespace `n`.
pub(super) fn config_map(uid: &str) -> String {
    review(&json!({
        "uid": uid, "operation": "CREATE", "name": "c", "namespace": "n",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "object": {},
    }))
}

/// A policy about ConfigMaps with a binding of its name that denies.
pub(super) fn policy(name: &str, expression: &str) -> Vec<Value> {
    bound(name, &json!({"validations": [{"expression": expression}]}), &json!({}), "Deny")
}

pub(super) fn bound(name: &str, spec: &Value, binding: &Value, action: &str) -> Vec<Value> {
    let rule =
        json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]});
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": {"matchConstraints": {"resourceRules": [rule]}},
    });
    merge(&mut policy["spec"], spec);
    let mut bound = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": {"policyName": name, "validationActions": [action]},
    });
    merge(&mut bound["spec"], binding);
    vec![policy, bound]
}

fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        if into[key].is_object() { merge(&mut into[key], value) } else { into[key] = value.clone() }
    }
}

/// One policy that denies every ConfigMap, one that warns of them.
pub(super) fn pod_policies() -> [Vec<Value>; 2] {
    let never = json!({"validations": [{"expression": "false"}]});
    [bound("denies", &never, &json!({}), "Deny"), bound("warns", &never, &json!({}), "Warn")]
}

/// Policies that ask the surroundings, by what they ask.
pub(super) fn looking_up(failure_policy: &str) -> Vec<(&'static str, Vec<Vec<Value>>)> {
    let spec = |spec: Value| {
        let mut all = json!({"failurePolicy": failure_policy, "validations": [{"expression": "true"}]});
        merge(&mut all, &spec);
        all
    };
    let selector = json!({"matchLabels": {"a": "b"}});
    let params = json!({"apiVersion": "example.com/v1", "kind": "Limit"});
    let by_name = json!({"paramRef": {"name": "x", "parameterNotFoundAction": "Allow"}});
    let by_selector = json!({"paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"}});
    let expression = |text: &str| spec(json!({"validations": [{"expression": text}]}));
    let none = json!({});
    let cases = [
        (
            "namespace selector",
            spec(json!({"matchConstraints": {"namespaceSelector": selector}})),
            none.clone(),
        ),
        (
            "binding's namespace selector",
            spec(none.clone()),
            json!({"matchResources": {"namespaceSelector": selector}}),
        ),
        ("namespace object", expression("namespaceObject.metadata.name == 'n'"), none.clone()),
        (
            "namespace object that is negated",
            expression("!has(namespaceObject.metadata.labels)"),
            none.clone(),
        ),
        ("named param", spec(json!({"paramKind": params})), by_name),
        ("selected params", spec(json!({"paramKind": params})), by_selector),
        (
            "namespace object in a variable",
            spec(json!({"variables": [{"name": "v", "expression": "namespaceObject.metadata.name"}]})),
            none.clone(),
        ),
        (
            "namespace selector that excludes",
            spec(json!({"matchConstraints": {"namespaceSelector": {"matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": ["b"]}]}}})),
            none,
        ),
    ];
    cases.into_iter().map(|(what, spec, binding)| (what, vec![bound("p", &spec, &binding, "Deny")])).collect()
}

/// Widgets whose size must be even.
pub(super) fn definition() -> Vec<Value> {
    let rule = json!({"rule": "!has(self.size) || self.size % 2 == 0", "message": "size must be even"});
    let spec = json!({
        "type": "object", "x-kubernetes-validations": [rule],
        "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}},
    });
    vec![testing::definition(
        "widgets.example.com",
        "Widget",
        "Namespaced",
        &json!({"type": "object", "properties": {"spec": spec}}),
    )]
}

#[derive(Clone, Debug)]
pub(super) enum Fault {
    Panic,
    Error,
    /// An answer that comes once the gate is open.
    Held(Arc<Gate>),
}

/// What questions wait for until it is opened.
#[derive(Debug, Default)]
pub(super) struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    pub(super) fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }
}

/// A cluster with the namespace `n`, of whose lookups every so many fail.
#[derive(Debug)]
pub(super) struct Faulty {
    every: usize,
    fault: Fault,
    asked: AtomicUsize,
}

impl Faulty {
    pub(super) fn every(every: usize, fault: Fault) -> Self {
        Self { every, fault, asked: AtomicUsize::new(0) }
    }

    fn ask(&self) -> Result<(), HostError> {
        if !(self.asked.fetch_add(1, Ordering::SeqCst) + 1).is_multiple_of(self.every) {
            return Ok(());
        }
        match &self.fault {
            Fault::Panic => panic!("injected"),
            Fault::Error => Err(HostError("injected".to_owned())),
            Fault::Held(gate) => {
                gate.pass();
                Ok(())
            }
        }
    }
}

impl Host for Faulty {
    fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, HostError> {
        self.ask()?;
        Ok(Some(Arc::new(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))))
    }

    fn param_scope(&self, _kind: &GroupVersionKind) -> Option<Scope> {
        Some(Scope::Namespaced)
    }

    fn params(&self, _kind: &GroupVersionKind, _namespace: &str) -> Result<Vec<Arc<Value>>, HostError> {
        self.ask()?;
        Ok(Vec::new())
    }

    fn equivalents(
        &self,
        _resource: &GroupVersionResource,
        _subresource: &str,
    ) -> Vec<(GroupVersionResource, GroupVersionKind)> {
        Vec::new()
    }

    fn convert(&self, object: &Value, _kind: &GroupVersionKind) -> Result<Value, HostError> {
        self.ask()?;
        Ok(object.clone())
    }

    fn authorize(&self, _user: &UserInfo, _attributes: &AccessAttributes) -> Result<Access, HostError> {
        self.ask()?;
        Ok(Access { allowed: true, reason: String::new() })
    }
}
