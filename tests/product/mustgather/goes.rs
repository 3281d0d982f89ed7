//! Row 36: how a MustGather goes, whatever is gone before it, whoever may not, and however it is deleted. With a further case, a whole
//! namespace, in `crash`. Under the shipped roles and policies; the server collects what is owned.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use admit::controllers::kit::clock::Clock;
use admit::controllers::kit::events::Events;
use admit::controllers::kit::manager::Term;
use admit::controllers::mustgather::{Context, Counts, FINALIZER, Known, run};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{Api, DynamicObject, PropagationPolicy};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Users, account, complete, settings, sftp};
use crate::support::cluster::PATIENCE;
use crate::support::reliability::Row;
use crate::support::testcluster::{Process, TestCluster};

const USERS: &str = "support";
const OTHER: &str = "example.dev/other";

struct Place {
    cluster: TestCluster,
    gathers: Api<DynamicObject>,
    jobs: Api<Job>,
    /// Seconds by which the controller's clock is ahead.
    ahead: Arc<AtomicI64>,
    controller: Process,
    running: tokio::task::JoinHandle<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.running.abort();
    }
}

impl Place {
    async fn new() -> Self {
        let Users { cluster, gathers, jobs } = Users::with([account()]).await;
        let ahead = Arc::new(AtomicI64::new(0));
        let controller = cluster.process("admit-mustgather");
        let running = Self::control(controller.client.clone(), ahead.clone());
        Self { cluster, gathers, jobs, ahead, controller, running }
    }

    fn control(client: Client, ahead: Arc<AtomicI64>) -> tokio::task::JoinHandle<()> {
        let mut settings = settings();
        settings.clock = Clock::new(move || {
            Timestamp::now() + Duration::from_secs(ahead.load(Ordering::SeqCst).unsigned_abs())
        });
        let events = Events::new(client.clone(), "admit-mustgather");
        let context =
            Context { client, settings, events, counts: Counts::default(), known: Known::default() };
        tokio::spawn(run(Arc::new(context), Term::alone(CancellationToken::new())))
    }

    /// The controller dies.
    async fn die(&mut self) {
        self.controller.wire.kill();
        self.running.abort();
        drop((&mut self.running).await);
    }

    /// And another takes its place.
    fn rise(&mut self) {
        self.controller = self.cluster.process("admit-mustgather");
        self.running = Self::control(self.controller.client.clone(), self.ahead.clone());
    }

    async fn create(&self, name: &str, finalizers: &[&str], more: &Value) {
        let mut spec = sftp(&json!({}));
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let object = json!({"apiVersion": "operator.openshift.io/v1alpha1", "kind": "MustGather",
            "metadata": {"name": name, "namespace": USERS, "finalizers": finalizers}, "spec": spec});
        self.cluster.create(&object).await;
    }

    /// An object whose Job runs.
    async fn running(&self, name: &str, finalizers: &[&str], more: &Value) -> Job {
        self.create(name, finalizers, more).await;
        self.until(name, |object| object["status"]["status"] == "Running").await;
        self.jobs.get(name).await.unwrap()
    }

    async fn until(&self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        self.cluster.until(&self.gathers, name, wanted).await
    }

    async fn delete(&self, name: &str, policy: PropagationPolicy) {
        let params = DeleteParams { propagation_policy: Some(policy), ..DeleteParams::default() };
        self.gathers.delete(name, &params).await.unwrap();
    }

    async fn gone(&self, name: &str) {
        self.cluster.gone(&self.gathers, name).await;
    }

    async fn job_gone(&self, name: &str) {
        let gone = await_condition(self.jobs.clone(), name, |job: Option<&Job>| job.is_none());
        drop(tokio::time::timeout(PATIENCE, gone).await.unwrap_or_else(|_| panic!("{name} stays")).unwrap());
    }

    /// Whether the controller may do that to Jobs.
    async fn may(&self, verb: &str, may: bool) {
        let roles: Api<ClusterRole> = Api::all(self.cluster.admin.clone());
        let mut role = roles.get("admit-mustgather").await.unwrap();
        let of_jobs = |rule: &&mut k8s_openapi::api::rbac::v1::PolicyRule| {
            rule.resources.as_ref().is_some_and(|resources| resources.contains(&"jobs".to_owned()))
        };
        let rule = role.rules.as_mut().unwrap().iter_mut().find(of_jobs).unwrap();
        rule.verbs.retain(|of_rule| of_rule != verb);
        rule.verbs.extend(may.then(|| verb.to_owned()));
        roles.replace("admit-mustgather", &PostParams::default(), &role).await.unwrap();
    }

    /// Whether an event says that the object was let go as it was.
    async fn abandoned(&self, name: &str) -> bool {
        let events: Api<Event> = Api::namespaced(self.cluster.admin.clone(), USERS);
        let events = events.list(&ListParams::default()).await.unwrap().items;
        events.iter().any(|event| {
            let of = event.regarding.as_ref().and_then(|regarding| regarding.name.as_deref());
            of == Some(name) && event.reason.as_deref() == Some("CleanupAbandoned")
        })
    }
}

/// Each with objects of its own; what is refused by right is refused on purpose.
#[tokio::test(flavor = "multi_thread")]
async fn row_36_however_an_object_goes_it_goes() {
    let mut row = Row::short(36, "MustGathers with finalizers that are deleted");
    let mut place = Place::new().await;
    whose_job_is_not_there(&place).await;
    however_it_is_deleted(&place).await;
    beside_others(&place).await;
    while_nobody_looks(&mut place).await;
    assert_eq!(place.controller.wire.denied(), Vec::<String>::new());
    whom_rights_are_taken_from(&place).await;
    row.measured(json!({"scenarios": 13, "stuck": 0}));
}

/// 1 to 3: the Job is deleted, never was, or is a stranger's.
async fn whose_job_is_not_there(place: &Place) {
    place.running("deleted", &[], &json!({})).await;
    place.jobs.delete("deleted", &DeleteParams::background()).await.unwrap();
    place.until("deleted", |object| object["status"]["completed"] == true).await;
    place.delete("deleted", PropagationPolicy::Background).await;
    place.gone("deleted").await;

    place.create("never", &[], &json!({"serviceAccountRef": {"name": "late"}})).await;
    place.until("never", |object| object["status"]["status"] == "Failed").await;
    place.delete("never", PropagationPolicy::Background).await;
    place.gone("never").await;

    let stranger = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "taken", "namespace": USERS},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    place.cluster.create(&stranger).await;
    let stranger = place.jobs.get("taken").await.unwrap();
    place.create("taken", &[], &json!({})).await;
    place.until("taken", |object| object["status"]["status"] == "Failed").await;
    place.delete("taken", PropagationPolicy::Background).await;
    place.gone("taken").await;
    assert_eq!(place.jobs.get("taken").await.unwrap().uid(), stranger.uid());
}

/// 4 to 7: in the background, in the foreground, as an orphan's parent; and what is to be retained.
async fn however_it_is_deleted(place: &Place) {
    for (name, policy) in [("back", PropagationPolicy::Background), ("fore", PropagationPolicy::Foreground)] {
        place.running(name, &[], &json!({})).await;
        place.delete(name, policy).await;
        place.gone(name).await;
        place.job_gone(name).await;
    }
    let retained = json!({"retainResourcesOnCompletion": true});
    for (name, policy) in [("orphan", PropagationPolicy::Orphan), ("kept", PropagationPolicy::Background)] {
        let job = place.running(name, &[], &retained).await;
        let ended = Patch::Merge(json!({"status": complete()}));
        place.jobs.patch_status(name, &PatchParams::default(), &ended).await.unwrap();
        place.until(name, |object| object["status"]["completed"] == true).await;
        place.delete(name, policy).await;
        place.gone(name).await;
        let now = place.jobs.get(name).await.unwrap();
        assert_eq!((now.uid(), now.owner_references().len()), (job.uid(), 0), "{name}");
        assert!(now.metadata.deletion_timestamp.is_none(), "{name}");
    }
}

/// 8: another's finalizer keeps it, ours is gone.
async fn beside_others(place: &Place) {
    place.running("shared", &[OTHER], &json!({})).await;
    place.delete("shared", PropagationPolicy::Background).await;
    place.job_gone("shared").await;
    let only_theirs =
        |object: Option<&DynamicObject>| object.is_some_and(|object| object.finalizers() == [OTHER]);
    let ours_gone = await_condition(place.gathers.clone(), "shared", only_theirs);
    drop(tokio::time::timeout(PATIENCE, ours_gone).await.unwrap().unwrap());
    let let_go = Patch::Merge(json!({"metadata": {"finalizers": []}}));
    place.gathers.patch("shared", &PatchParams::default(), &let_go).await.unwrap();
    place.gone("shared").await;
}

/// 9: deleted while there is no controller.
async fn while_nobody_looks(place: &mut Place) {
    place.running("alone", &[], &json!({})).await;
    place.die().await;
    place.delete("alone", PropagationPolicy::Background).await;
    let object = place.gathers.get("alone").await.unwrap();
    assert_eq!(object.finalizers(), [FINALIZER]);
    place.rise();
    place.gone("alone").await;
    place.job_gone("alone").await;
}

/// 10 to 13: a right that comes back, and one that does not. Until then a condition says what is missing.
async fn whom_rights_are_taken_from(place: &Place) {
    for (name, verb, comes_back) in [
        ("waits-to-look", "get", true),
        ("waits", "delete", true),
        ("leaves", "delete", false),
        ("leaves-unseen", "get", false),
    ] {
        place.ahead.store(0, Ordering::SeqCst);
        place.running(name, &[], &json!({})).await;
        place.may(verb, false).await;
        place.delete(name, PropagationPolicy::Background).await;
        let refused = |object: &Value| {
            let told = object["status"]["conditions"].to_string();
            told.contains("not cleaned up yet") && told.contains("forbidden")
        };
        let object = place.until(name, refused).await;
        assert_eq!(object["status"]["status"], "Running", "{object:#}");
        if comes_back {
            place.may(verb, true).await;
        } else {
            place.ahead.store(3_601, Ordering::SeqCst);
        }
        place.gone(name).await;
        place.job_gone(name).await;
        assert_eq!(place.abandoned(name).await, !comes_back, "{name}");
        place.may(verb, true).await;
    }
}
