//! The MustGather controller against the embedded API server with the shipped definition, and the containers of its Job as
//! processes against OpenSSH's server. Tests are named after the rows of the fact sheet: behaviours 05, bugs of others 06.

mod bugs;
mod collect;
mod containers;
mod crash;
mod ends;
mod goes;
mod hiding;
mod leaders;
mod roles;
mod rows;
mod stuck;
mod up;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use admit::controllers::kit::events::Events;
use admit::controllers::kit::manager::Term;
use admit::controllers::mustgather::crd::{MustGather, MustGatherStatus, Phase};
use admit::controllers::mustgather::{Context, Counts, Known, Settings, run};
use admit_apiserver::Server;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::conditions::is_crd_established;
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::repository::root;
use crate::support::cluster::PATIENCE;
use crate::support::testcluster::TestCluster;

pub(crate) const NAMESPACE: &str = "support";

/// A cluster of its own, with the namespace of those who gather.
struct Users {
    cluster: TestCluster,
    gathers: Api<DynamicObject>,
    jobs: Api<Job>,
}

impl Users {
    /// `objects` are created there.
    async fn with(objects: impl IntoIterator<Item = Value>) -> Self {
        let cluster = TestCluster::new().await;
        cluster
            .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))
            .await;
        for object in objects {
            cluster.create(&object).await;
        }
        let kind = GroupVersionKind::gvk("operator.openshift.io", "v1alpha1", "MustGather");
        let gathers = Api::namespaced_with(cluster.admin.clone(), NAMESPACE, &ApiResource::from_gvk(&kind));
        let jobs = Api::namespaced(cluster.admin.clone(), NAMESPACE);
        Self { cluster, gathers, jobs }
    }
}

/// The Secret with an account on a server.
fn account() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "account", "namespace": NAMESPACE},
        "stringData": {"username": "eve", "password": "canary-4713"}})
}

/// A fault: requests that are refused, so many times.
#[derive(Clone, Default)]
struct Faults(Arc<Mutex<Vec<Fault>>>);

struct Fault {
    method: Method,
    path: String,
    code: u16,
    left: Arc<AtomicUsize>,
}

impl Faults {
    /// Refuses the next `times` requests of `method` whose path holds `path`. How many are left.
    fn refuse(&self, method: Method, path: &str, code: u16, times: usize) -> Arc<AtomicUsize> {
        let left = Arc::new(AtomicUsize::new(times));
        let fault = Fault { method, path: path.to_owned(), code, left: left.clone() };
        self.0.lock().unwrap().push(fault);
        left
    }

    fn of(&self, request: &Request) -> Option<u16> {
        let faults = self.0.lock().unwrap();
        let fits = |fault: &&Fault| {
            fault.method == *request.method()
                && request.uri().path().contains(&fault.path)
                && fault
                    .left
                    .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
                    .is_ok()
        };
        faults.iter().find(fits).map(|fault| fault.code)
    }
}

/// A server with the definition, a namespace, an account and a Secret; and, once started, the controller.
struct Bench {
    client: Client,
    router: axum::Router,
    /// The client of the controller, which is refused what the faults say.
    faulty: Client,
    faults: Faults,
    counts: Counts,
    stop: CancellationToken,
}

impl Bench {
    async fn new() -> Self {
        let server = Server::builder().build().await.unwrap();
        let faults = Faults::default();
        let refusing = faults.clone();
        let refuse = move |request: Request, next: Next| {
            let refused = refusing.of(&request);
            async move {
                match refused {
                    Some(code) => {
                        let reason = match code {
                            403 => "Forbidden",
                            409 => "Conflict",
                            422 => "Invalid",
                            _ => "InternalError",
                        };
                        let status = json!({
                            "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "on purpose",
                            "reason": reason, "code": code,
                        });
                        (StatusCode::from_u16(code).unwrap(), axum::Json(status)).into_response()
                    }
                    None => next.run(request).await,
                }
            }
        };
        let faulty = Client::new(server.router().layer(from_fn(refuse)), "default");
        let client = Client::new(server.router(), "default");
        let bench = Self {
            client,
            router: server.router(),
            faulty,
            faults,
            counts: Counts::default(),
            stop: CancellationToken::new(),
        };
        bench.define("mustgathers").await;
        for namespace in [NAMESPACE, "elsewhere", "operator"] {
            bench.put("", "Namespace", "namespaces", "", json!({"metadata": {"name": namespace}})).await;
            bench.secret(namespace, "account", json!({"username": "eve", "password": "canary-4713"})).await;
        }
        bench
    }

    async fn define(&self, plural: &str) {
        let text = std::fs::read_to_string(root().join(format!("deploy/crds/{plural}.yaml"))).unwrap();
        let definition: Value = serde_saphyr::from_str(&text).unwrap();
        let definition: CustomResourceDefinition = serde_json::from_value(definition).unwrap();
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        definitions.create(&PostParams::default(), &definition).await.unwrap();
        let name = definition.name_any();
        let established = await_condition(definitions, &name, is_crd_established());
        tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
    }

    /// Creates an object unless the server has it already.
    async fn put(
        &self,
        group: &str,
        kind: &str,
        plural: &str,
        namespace: &str,
        object: Value,
    ) -> DynamicObject {
        let version = if group == "operator.openshift.io" { "v1alpha1" } else { "v1" };
        let resource =
            ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
        let api: Api<DynamicObject> = match namespace {
            "" => Api::all_with(self.client.clone(), &resource),
            namespace => Api::namespaced_with(self.client.clone(), namespace, &resource),
        };
        let mut whole = json!({"apiVersion": resource.api_version, "kind": kind});
        whole.as_object_mut().unwrap().extend(object.as_object().unwrap().clone());
        let object: DynamicObject = serde_json::from_value(whole).unwrap();
        match api.create(&PostParams::default(), &object).await {
            Ok(created) => created,
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {
                api.get(&object.name_any()).await.unwrap()
            }
            Err(error) => panic!("{kind} {}: {error}", object.name_any()),
        }
    }

    async fn secret(&self, namespace: &str, name: &str, data: Value) {
        self.put("", "Secret", "secrets", namespace, json!({"metadata": {"name": name}, "stringData": data}))
            .await;
    }

    /// Starts the controller; with others it is one process more.
    fn start(&self, settings: Settings) -> CancellationToken {
        let stop = self.stop.child_token();
        let events = Events::new(self.faulty.clone(), "admit-mustgather");
        let (client, counts) = (self.faulty.clone(), self.counts.clone());
        let context = Context { client, settings, events, counts, known: Known::default() };
        tokio::spawn(run(Arc::new(context), Term::alone(stop.clone())));
        stop
    }

    async fn create(&self, name: &str, spec: Value) {
        self.create_in(NAMESPACE, name, spec).await;
    }

    async fn create_in(&self, namespace: &str, name: &str, spec: Value) {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        self.put("operator.openshift.io", "MustGather", "mustgathers", namespace, object).await;
    }

    fn objects(&self) -> Api<MustGather> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    fn jobs(&self) -> Api<Job> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Waits until the status of an object is so.
    async fn until(&self, name: &str, so: impl Fn(&MustGatherStatus) -> bool) -> MustGather {
        let looked =
            |object: Option<&MustGather>| object.is_some_and(|it| it.status.as_ref().is_some_and(&so));
        let waiting = await_condition(self.objects(), name, looked);
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found.unwrap().unwrap(),
            Err(_) => panic!("{:#?}", self.objects().get(name).await),
        }
    }

    async fn phase(&self, name: &str, phase: Phase) -> MustGatherStatus {
        let object = self.until(name, |status| status.status == Some(phase)).await;
        let status = object.status.unwrap();
        assert_eq!(status.completed, phase != Phase::Running);
        assert!(status.last_update.is_some());
        status
    }

    /// The Job of an object, once there is one.
    async fn job(&self, name: &str) -> Job {
        let there = |job: Option<&Job>| job.is_some();
        let waiting = await_condition(self.jobs(), name, there);
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found.unwrap().unwrap(),
            Err(_) => panic!("no Job: {:#?}", self.objects().get(name).await),
        }
    }

    /// What becomes of a spec: the Job as JSON.
    async fn job_of(&self, settings: Settings, spec: Value) -> Value {
        self.start(settings);
        self.create("sample", spec).await;
        self.phase("sample", Phase::Running).await;
        serde_json::to_value(self.job("sample").await).unwrap()
    }

    /// Says how a Job fares, as the Job controller would.
    async fn job_status(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.jobs().patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until an object is gone.
    async fn gone<K>(&self, api: Api<K>, name: &str)
    where
        K: kube::Resource + Clone + std::fmt::Debug + Send + serde::de::DeserializeOwned + 'static,
    {
        let waiting = await_condition(api, name, |object: Option<&K>| object.is_none());
        tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
    }

    /// A Pod of a Job.
    async fn pod_of(&self, job: &Job, name: &str) -> Api<Pod> {
        let uid = job.uid().unwrap();
        let owner = json!({"apiVersion": "batch/v1", "kind": "Job", "name": job.name_any(), "uid": uid, "controller": true});
        let pod = json!({
            "metadata": {"name": name, "labels": {"batch.kubernetes.io/controller-uid": uid}, "ownerReferences": [owner]},
            "spec": {"containers": [{"name": "gather", "image": "i"}]},
        });
        self.put("", "Pod", "pods", NAMESPACE, pod).await;
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Waits until so many Jobs are counted, and so many failures.
    async fn counted(&self, jobs: u64, failures: u64) {
        let counting = async {
            while self.counts.counted() != (jobs, failures) {
                tokio::task::yield_now().await;
            }
        };
        if tokio::time::timeout(PATIENCE, counting).await.is_err() {
            panic!("{:?} were counted", self.counts.counted());
        }
    }

    fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Without a look at a server that no test has.
fn settings() -> Settings {
    let mut settings = Settings::new("example.com/admit:1");
    settings.rules.preflight = false;
    settings
}

pub(crate) fn complete() -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "CompletionsReached"});
    json!({
        "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z", "active": 0,
        "succeeded": 1, "ready": 0,
        "terminating": 0, "uncountedTerminatedPods": {}, "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    })
}

pub(crate) fn failed() -> Value {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the limit"});
    json!({
        "startTime": "2026-01-01T00:00:00Z", "active": 0, "failed": 4, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {},
        "conditions": [condition("FailureTarget"), condition("Failed")],
    })
}

fn sftp(extra: &Value) -> Value {
    let mut sftp = json!({
        "caseID": "04123456", "host": "sftp.example.com", "caseManagementAccountSecretRef": {"name": "account"},
    });
    sftp.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    json!({"uploadTarget": {"type": "SFTP", "sftp": sftp}})
}

/// The containers of a Job by name.
fn container<'j>(job: &'j Value, name: &str) -> &'j Value {
    let containers = job["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    containers.iter().find(|container| container["name"] == name).unwrap_or(&Value::Null)
}

/// The value of a variable of a container.
fn variable(container: &Value, name: &str) -> Value {
    let mut variables = container["env"].as_array().into_iter().flatten();
    let found = variables.find(|variable| variable["name"] == name);
    found.map_or(Value::Null, |variable| variable.get("value").unwrap_or(&variable["valueFrom"]).clone())
}

fn condition<'s>(status: &'s MustGatherStatus, kind: &str) -> (&'s str, &'s str) {
    let found = status.conditions.iter().find(|condition| condition.type_ == kind).unwrap();
    (found.status.as_str(), found.message.as_str())
}
