//! Jobs that do not begin: an image that nobody can pull, a claim that is not there, a Job that is refused.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use admit::controllers::kit::clock::Clock;
use admit::controllers::mustgather::Settings;
use admit::controllers::mustgather::crd::{MustGatherStatus, Phase};
use admit::controllers::mustgather::job::OWNER;
use axum::http::Method;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;

use super::{Bench, NAMESPACE, condition, settings, sftp};
use crate::support::cluster::PATIENCE;

/// A clock that a test moves; in seconds behind some moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Moved(Arc<AtomicI64>);

impl Moved {
    pub(super) fn by(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }

    pub(super) fn seconds(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    pub(super) fn settings(&self) -> Settings {
        let moved = self.0.clone();
        let now = move || Timestamp::constant(1_790_000_000 + moved.load(Ordering::SeqCst), 0);
        Settings { clock: Clock::new(now), ..settings() }
    }
}

/// Gives the Job of an object a Pod of which a container waits so, or changes how it does.
pub(super) async fn waits(bench: &Bench, name: &str, reason: &str, message: &str) {
    let job = bench.job(name).await;
    let uid = job.uid().unwrap();
    let owner =
        json!({"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": true});
    let labels = json!({"batch.kubernetes.io/controller-uid": uid, OWNER: job.labels()[OWNER]});
    let pod = json!({
        "metadata": {"name": format!("{name}-1"), "labels": labels, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "gather", "image": "quay.example/none:1"}]},
    });
    bench.put("", "Pod", "pods", NAMESPACE, pod).await;
    let state = json!({"waiting": {"reason": reason, "message": message}});
    let gather = json!({
        "name": "gather", "image": "quay.example/none:1", "imageID": "", "ready": false, "restartCount": 0, "state": state,
    });
    let status = Patch::Merge(json!({"status": {"phase": "Pending", "containerStatuses": [gather]}}));
    pods(bench).patch_status(&format!("{name}-1"), &PatchParams::default(), &status).await.unwrap();
}

fn pods(bench: &Bench) -> Api<Pod> {
    Api::namespaced(bench.client.clone(), NAMESPACE)
}

fn is_stuck(status: &MustGatherStatus) -> bool {
    status.conditions.iter().any(|one| one.type_ == "JobStuck" && one.status == "True")
}

/// The events of this reason, as soon as there is one: they are told after what the status says.
async fn events(bench: &Bench, reason: &str) -> Vec<Event> {
    let events: Api<Event> = Api::namespaced(bench.client.clone(), NAMESPACE);
    let looking = async {
        loop {
            let all = events.list(&ListParams::default()).await.unwrap().items;
            let told: Vec<_> =
                all.into_iter().filter(|event| event.reason.as_deref() == Some(reason)).collect();
            if !told.is_empty() {
                return told;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("no event {reason}"))
}

const PULL: &str = "the image quay.example/none:1 of container gather cannot be pulled";

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_said_at_once_and_fails_the_object() {
    let bench = Bench::new().await;
    let clock = Moved::default();
    bench.job_of(clock.settings(), json!({})).await;
    waits(&bench, "sample", "ContainerCreating", "").await;
    waits(&bench, "sample", "ErrImagePull", "not found").await;
    let status = bench.until("sample", is_stuck).await.status.unwrap();
    assert_eq!((status.status, status.completed), (Some(Phase::Running), false));
    assert_eq!(condition(&status, "JobStuck"), ("True", &*format!("{PULL}: not found")));
    let told = events(&bench, "ProcessingError").await;
    assert_eq!(told.len(), 1, "{told:#?}");

    // A registry that fails once.
    clock.by(60);
    waits(&bench, "sample", "ContainerCreating", "").await;
    let status = bench.until("sample", |status| !is_stuck(status)).await.status.unwrap();
    assert_eq!(condition(&status, "JobStuck"), ("False", ""));
    waits(&bench, "sample", "ErrImagePull", "not found").await;
    bench.until("sample", is_stuck).await;

    // What is said of each try in turn does not count anew.
    clock.by(60);
    waits(&bench, "sample", "ImagePullBackOff", "Back-off").await;
    clock.by(30);
    let touch = Patch::Merge(json!({"metadata": {"labels": {"touched": "yes"}}}));
    // It may have been looked at, and failed, before this.
    let _ = pods(&bench).patch("sample-1", &PatchParams::default(), &touch).await;
    let status = bench.phase("sample", Phase::Failed).await;
    // With the words of whichever try was seen last.
    let reason = status.reason.unwrap();
    assert!(reason.starts_with(&format!("the Job's Pod does not start: {PULL}: ")), "{reason}");
    bench.gone(pods(&bench), "sample-1").await;
    bench.gone(bench.jobs(), "sample").await;
    bench.counted(1, 1).await;
}

/// Nothing changes any more about a Pod whose image has no valid name: time alone fails the object.
#[tokio::test]
async fn time_alone_fails_an_object_whose_pod_never_changes() {
    let bench = Bench::new().await;
    let mut soon = settings();
    soon.rules.stuck_for = Duration::from_secs(2);
    bench.job_of(soon, json!({"retainResourcesOnCompletion": true})).await;
    waits(&bench, "sample", "InvalidImageName", "no reference").await;
    let reason = bench.phase("sample", Phase::Failed).await.reason.unwrap();
    assert!(reason.contains(PULL), "{reason}");
    // What is retained does not begin to gather, should the image come.
    let suspended = |job: Option<&k8s_openapi::api::batch::v1::Job>| {
        job.and_then(|job| job.spec.as_ref()?.suspend) == Some(true)
    };
    let waiting = kube::runtime::wait::await_condition(bench.jobs(), "sample", suspended);
    tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap();
    assert!(pods(&bench).get_opt("sample-1").await.unwrap().is_some());
}

#[tokio::test]
async fn a_pod_that_no_node_takes_is_said_and_a_claim_that_is_missing_fails_the_object() {
    let bench = Bench::new().await;
    let clock = Moved::default();
    bench.job_of(clock.settings(), json!({})).await;
    waits(&bench, "sample", "ContainerCreating", "").await;
    let scheduled = async |message: &str| {
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let patch = Patch::Merge(json!({"status": {"conditions": [condition]}}));
        pods(&bench).patch_status("sample-1", &PatchParams::default(), &patch).await.unwrap();
    };
    scheduled("0/3 nodes are available: 3 Insufficient memory.").await;
    let said = |status: &MustGatherStatus| status.conditions.iter().any(|one| one.reason == "Unschedulable");
    let status = bench.until("sample", said).await.status.unwrap();
    assert!(condition(&status, "JobStuck").1.contains("no node takes the Pod"));
    // Room on a node comes by itself, however late.
    clock.by(100_000);
    scheduled("0/3 nodes are available: persistentvolumeclaim \"data\" not found.").await;
    bench.until("sample", is_stuck).await;
    clock.by(90);
    scheduled("0/2 nodes are available: persistentvolumeclaim \"data\" not found.").await;
    let reason = bench.phase("sample", Phase::Failed).await.reason.unwrap();
    assert!(reason.contains("a volume claim of the Pod does not exist"), "{reason}");
}

#[tokio::test]
async fn a_job_that_is_refused_is_told_once_and_made_when_it_is_allowed() {
    for code in [403, 422] {
        let bench = Bench::new().await;
        let left = bench.faults.refuse(Method::POST, "/jobs", code, 3);
        bench.start(settings());
        bench.create("sample", json!({})).await;
        let object = bench.until("sample", |status| !status.conditions.is_empty()).await;
        let status = object.status.unwrap();
        assert_eq!((status.status, status.completed), (None, false), "{status:#?}");
        assert_eq!(condition(&status, "ReconcileError"), ("True", "on purpose"));
        let status = bench.phase("sample", Phase::Running).await;
        assert_eq!(condition(&status, "ReconcileError"), ("False", ""));
        assert_eq!(left.load(Ordering::SeqCst), 0);
        let told = events(&bench, "ReconcileFailed").await;
        assert_eq!(told.len(), 1, "{told:#?}");
        bench.counted(1, 0).await;
    }
}

/// A login for each try would lock an account out, and a copy of the Secret would lie where no Job is.
#[tokio::test]
async fn nobody_logs_in_for_a_job_that_is_refused() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let bench = Bench::new().await;
    let left = bench.faults.refuse(Method::POST, "/jobs", 403, usize::MAX);
    let mut wary = settings();
    wary.rules.preflight = true;
    wary.rules.job_namespace = Some("operator".to_owned());
    wary.known_hosts = Some(String::new());
    bench.start(wary);
    bench.create("sample", sftp(&json!({"host": server.local_addr().unwrap().to_string()}))).await;
    bench.until("sample", |status| status.conditions.iter().any(|one| one.message == "on purpose")).await;
    let tried_again = async {
        while left.load(Ordering::SeqCst) > usize::MAX - 2 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::support::cluster::PATIENCE, tried_again).await.unwrap();
    assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let uid = bench.objects().get("sample").await.unwrap().uid().unwrap();
    assert!(bench.secrets("operator").get_opt(&format!("{uid}-creds")).await.unwrap().is_none());
}
