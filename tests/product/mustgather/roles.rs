//! The roles for must-gathers: that of the controller in `deploy/`, and that of the account that collects in the samples. Every verb of
//! them is used, and none is missing.

use admit::controllers::kit::manager::Manager;
use admit::controllers::mustgather::member;
use admit::gather::must_gather::collect::{Teller, Wanted, collect};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use k8s_openapi::api::batch::v1::Job;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::{Users, complete, settings, sftp};
use crate::support::cluster::PATIENCE;
use crate::support::refusing::refusing;
use crate::support::rights::{exactly, exactly_by};
use crate::support::shipped::{api, documents};
use crate::support::testcluster::{Process, TestCluster};

const ACCOUNT: &str = "admit-mustgather";
const USERS: &str = "support";

struct Place {
    cluster: TestCluster,
    gathers: Api<DynamicObject>,
    jobs: Api<Job>,
}

impl Place {
    /// A namespace without the Secret for the server.
    async fn new() -> Self {
        let rules = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "rules", "namespace": USERS},
            "data": {"config.yaml": ""}});
        let Users { cluster, gathers, jobs } = Users::with([rules].into_iter().chain(refused())).await;
        Self { cluster, gathers, jobs }
    }

    async fn create(&self, name: &str, more: &Value) {
        let mut spec = sftp(&json!({}));
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let object = json!({"apiVersion": "operator.openshift.io/v1alpha1", "kind": "MustGather",
            "metadata": {"name": name, "namespace": USERS}, "spec": spec});
        self.cluster.create(&object).await;
    }

    /// A Job of the controller, once it is there.
    async fn job(&self, name: &str) -> Job {
        let there = await_condition(self.jobs.clone(), name, |job: Option<&Job>| job.is_some());
        timeout(PATIENCE, there).await.unwrap().unwrap().unwrap()
    }

    /// The Job has a Pod, and ends well.
    async fn node(&self, name: &str) {
        let uid = self.job(name).await.uid().unwrap();
        let owner =
            json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("{name}-pod"), "namespace": USERS, "ownerReferences": [owner],
                "labels": {"batch.kubernetes.io/controller-uid": uid}},
            "spec": {"containers": [{"name": "gather", "image": "i"}]},
        });
        self.cluster.create(&pod).await;
        let ended = Patch::Merge(json!({"status": complete()}));
        self.jobs.patch_status(name, &PatchParams::default(), &ended).await.unwrap();
    }

    async fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.cluster.until(&self.gathers, name, wanted).await
    }

    async fn delete(&self, name: &str) {
        self.gathers.delete(name, &DeleteParams::default()).await.unwrap();
        self.cluster.gone(&self.gathers, name).await;
    }

    /// From a Secret that is missing over what is cleaned up and what is retained to the end.
    async fn play(&self, account: &Process) {
        let hides = json!({"obfuscate": {"enabled": true, "config": {"name": "rules"}},
            "imageStreamRef": {"name": "tools", "tag": "latest"}});
        self.create("streamed", &hides).await;
        self.create("plain", &json!({})).await;
        self.create("kept", &json!({"retainResourcesOnCompletion": true})).await;
        self.until("plain", |it| it["status"].to_string().contains("account")).await;
        let secret = json!({"apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "account", "namespace": USERS},
            "stringData": {"username": "eve", "password": "canary-4713"}});
        self.cluster.create(&secret).await;
        for name in ["plain", "kept"] {
            self.node(name).await;
            let over = |object: &Value| object["status"]["status"] == "Completed";
            self.until(name, over).await;
        }
        for name in ["plain", "kept", "streamed"] {
            self.delete(name).await;
        }
        // What fails twice is one event that counts.
        self.create("refused", &json!({})).await;
        let counted = async {
            while !account.wire.asked().iter().any(|it| (it.verb, &*it.resource) == ("patch", "events")) {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, counted).await.unwrap_or_else(|_| panic!("{:#?}", account.wire.asked()));
        let operators = self.cluster.objects("config.openshift.io", "v1", "ClusterOperator");
        self.cluster.until(&operators, ACCOUNT, |it| it["status"]["conditions"].is_array()).await;
    }
}

/// Denies what is said of one of them.
fn refused() -> [Value; 2] {
    refusing("operator.openshift.io", "mustgathers/status", "UPDATE", "object.metadata.name != 'refused'")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_verb_of_the_controllers_role_is_used_and_none_is_missing() {
    let place = Place::new().await;
    let account = place.cluster.process(ACCOUNT);
    let stop = CancellationToken::new();
    let manager = Manager::new(account.client.clone(), None).with(member(account.client.clone(), settings()));
    let running = tokio::spawn(manager.run(stop.clone()));
    place.play(&account).await;
    stop.cancel();
    timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    exactly(ACCOUNT, &[&account]);
}

/// As kubelets and the server's logs answer; the rest is the server's.
async fn node(request: Request, next: Next) -> axum::response::Response {
    let path = request.uri().path();
    if path.ends_with("/log") || path.contains("/proxy/logs/") {
        return "a line\n".into_response();
    }
    next.run(request).await
}

/// The account of the sample reads whatever a cluster serves, and nothing that is none of its objects.
#[tokio::test(flavor = "multi_thread")]
async fn every_verb_of_the_collectors_role_is_used_and_none_is_missing() {
    let cluster = TestCluster::new().await;
    let samples = documents("deploy/samples/mustgather.yaml");
    let rights: Vec<Value> = samples
        .into_iter()
        .filter(|document| matches!(document["kind"].as_str(), Some("ClusterRole" | "ClusterRoleBinding")))
        .collect();
    for document in &rights {
        cluster.create(document).await;
    }
    let labels = json!({"node-role.kubernetes.io/control-plane": ""});
    cluster
        .create(&json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "labels": labels}}))
        .await;
    let namespaces = api(&cluster.admin, "v1", "Namespace");
    assert!(namespaces.get_opt("default").await.unwrap().is_some());
    cluster
        .create(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
            "spec": {"containers": [{"name": "main", "image": "i"}]}}))
        .await;
    let account = cluster.process_in("default", "must-gather", |router| router.layer(from_fn(node)));
    let dir = tempfile::tempdir().unwrap();
    let wanted = Wanted { folder: dir.path().join("admit"), audit: true, since: None };
    let log = std::fs::File::create(dir.path().join("log")).unwrap();
    let collected = collect(&account.client, &wanted, &Teller::new(log)).await.unwrap();
    let told = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(collected.objects > 50 && collected.missed == 0, "{told}");
    exactly_by(&rights, ("default", "must-gather"), &[&account]);
}
