//! A look that changes nothing asks the server for nothing: what the watches have told is enough. Counted are requests, and looks by the
//! controllers' own metric; watches go on and are not counted.

use std::time::Duration;

use admit::controllers::datagather::{JobSettings, RunnerKind, Settings};
use admit::controllers::kit::manager::{Manager, Member};
use admit::controllers::kit::observe::Observed;
use admit::controllers::mustgather::job::OWNER;
use admit::controllers::{datagather, mustgather};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::cluster::PATIENCE;
use crate::support::testcluster::{NAMESPACE, Process, TestCluster};

const USERS: &str = "support";
/// Rounds in which what was begun before may come to its end.
const ROUNDS: usize = 5;

struct Place {
    cluster: TestCluster,
    process: Process,
    observed: Observed,
    stop: CancellationToken,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Place {
    fn start(cluster: TestCluster, account: &str, member: impl FnOnce(&Process) -> Member) -> Self {
        let process = cluster.process(account);
        let manager = Manager::new(process.client.clone(), None).with(member(&process));
        let (observed, stop) = (Observed::of(&manager), CancellationToken::new());
        tokio::spawn(manager.run(stop.clone()));
        Self { cluster, process, observed, stop }
    }

    /// How often objects were looked at.
    fn looks(&self) -> u64 {
        let text = self.observed.text();
        let counts = text.lines().filter(|line| line.starts_with("controller_runtime_reconcile_total{"));
        counts.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap()).sum()
    }

    async fn until_looks(&self, wanted: u64) {
        let looked = async {
            while self.looks() < wanted {
                tokio::task::yield_now().await;
            }
        };
        let looked = tokio::time::timeout(PATIENCE, looked).await;
        assert!(looked.is_ok(), "{} looks instead of {wanted}", self.looks());
    }

    /// Whether so many looks, which `touch` causes, make no request. Tried again, for a request that was on its way may end meanwhile;
    /// looks that ask do so each time.
    async fn is_quiet(&self, looks: u64, touch: impl AsyncFn(usize)) {
        let mut asked = Vec::new();
        for round in 0..ROUNDS {
            let (before, looked) = (self.process.wire.requests().len(), self.looks());
            touch(round).await;
            self.until_looks(looked + looks).await;
            asked = self.process.wire.requests().split_off(before);
            if asked.is_empty() {
                return;
            }
        }
        panic!("looks that change nothing ask: {asked:#?}");
    }

    /// Changes something of each that concerns nobody.
    async fn touch<K>(&self, api: &Api<K>, names: &[&str], round: usize)
    where
        K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let patch = Patch::Merge(json!({"metadata": {"labels": {"touched": round.to_string()}}}));
        for name in names {
            api.patch(name, &PatchParams::default(), &patch).await.unwrap();
        }
    }

    async fn status<K>(&self, api: &Api<K>, name: &str, status: Value)
    where
        K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
    {
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }
}

fn complete() -> Value {
    crate::mustgather::complete()
}

#[tokio::test]
async fn looks_at_data_gathers_that_change_nothing_ask_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let settings = Settings {
        namespace: NAMESPACE.to_owned(),
        runner: RunnerKind::Job(JobSettings::new("admit")),
        ..Settings::new(folder.path())
    };
    let place = Place::start(TestCluster::with_jobs().await, "admit-datagather", |process| {
        datagather::member(process.client.clone(), settings).unwrap()
    });
    let objects = place.cluster.objects("insights.openshift.io", "v1alpha1", "DataGather");
    let jobs: Api<Job> = Api::namespaced(place.cluster.admin.clone(), NAMESPACE);
    let names = ["pending", "running", "completed", "failed"];
    for name in names {
        place
            .cluster
            .create(&json!({"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
                "metadata": {"name": name}, "spec": {}}))
            .await;
        let related = |object: &Value| object["status"]["relatedObjects"].is_array();
        place.cluster.until(&objects, name, related).await;
    }
    let running = json!({"dataGatherState": "Running", "startTime": "2026-11-21T10:00:00Z"});
    for name in ["running", "completed"] {
        place.status(&objects, name, running.clone()).await;
        place
            .status(&jobs, name, json!({"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 1}))
            .await;
    }
    let kept = json!([{"type": "DataUploaded", "status": "False", "reason": "UploadNotConfigured", "message": "",
        "lastTransitionTime": "2026-11-21T10:00:00Z"}]);
    let ended =
        json!({"dataGatherState": "Completed", "finishTime": "2026-11-21T10:01:00Z", "conditions": kept});
    place.status(&objects, "completed", ended).await;
    place.status(&jobs, "completed", complete()).await;
    jobs.delete("failed", &kube::api::DeleteParams::background()).await.unwrap();
    place.cluster.until(&objects, "failed", |object| object["status"]["dataGatherState"] == "Failed").await;

    place.is_quiet(4, async |round| place.touch(&objects, &names, round).await).await;
    place.is_quiet(2, async |round| place.touch(&jobs, &["pending", "running"], round).await).await;
    assert_eq!(place.process.wire.denied(), Vec::<String>::new());
}

async fn must_gather(place: &Place, objects: &Api<DynamicObject>, name: &str) -> Job {
    let spec = json!({"retainResourcesOnCompletion": name == "retained"});
    place
        .cluster
        .create(&json!({"apiVersion": "operator.openshift.io/v1alpha1", "kind": "MustGather",
            "metadata": {"name": name, "namespace": USERS}, "spec": spec}))
        .await;
    place.cluster.until(objects, name, |object| object["status"]["status"] == "Running").await;
    let jobs: Api<Job> = Api::namespaced(place.cluster.admin.clone(), USERS);
    jobs.get(name).await.unwrap()
}

#[tokio::test]
async fn looks_at_must_gathers_that_change_nothing_ask_for_nothing() {
    let mut settings = mustgather::Settings::new("example.com/admit:1");
    settings.rules.preflight = false;
    settings.rules.stuck_for = Duration::from_hours(1);
    let place = Place::start(TestCluster::new().await, "admit-mustgather", |process| {
        mustgather::member(process.client.clone(), settings)
    });
    place
        .cluster
        .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": USERS}}))
        .await;
    let kind = kube::core::GroupVersionKind::gvk("operator.openshift.io", "v1alpha1", "MustGather");
    let resource = kube::api::ApiResource::from_gvk(&kind);
    let objects: Api<DynamicObject> = Api::namespaced_with(place.cluster.admin.clone(), USERS, &resource);
    let jobs: Api<Job> = Api::namespaced(place.cluster.admin.clone(), USERS);
    let names = ["waits", "runs", "retained"];
    for name in names {
        let job = must_gather(&place, &objects, name).await;
        let uid = job.metadata.uid.clone().unwrap();
        let labels =
            json!({"batch.kubernetes.io/controller-uid": uid, OWNER: job.metadata.labels.unwrap()[OWNER]});
        let owner =
            json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true});
        place
            .cluster
            .create(&json!({"apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "namespace": USERS, "labels": labels, "ownerReferences": [owner]},
                "spec": {"containers": [{"name": "gather", "image": "i"}]}}))
            .await;
    }
    place.status(&jobs, "runs", json!({"startTime": "2026-01-01T00:00:00Z", "active": 1, "ready": 1})).await;
    place.status(&jobs, "retained", complete()).await;
    place.cluster.until(&objects, "retained", |object| object["status"]["status"] == "Completed").await;

    place.is_quiet(3, async |round| place.touch(&jobs, &names, round).await).await;
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(place.cluster.admin.clone(), USERS);
    place.is_quiet(3, async |round| place.touch(&pods, &names, round).await).await;
    assert_eq!(place.process.wire.denied(), Vec::<String>::new());
}
