//! A controller of MustGathers that dies at any of its writes, from the object to its last trace; and a namespace full of objects
//! that goes. Under the shipped roles and policies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admit::controllers::kit::events::Events;
use admit::controllers::kit::manager::Term;
use admit::controllers::mustgather::{Context, Counts, Known, run};
use k8s_openapi::api::batch::v1::Job;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Users, account, complete, settings, sftp};
use crate::soak::{percent, scaled};
use crate::support::cluster::PATIENCE;
use crate::support::crashes::everywhere;
use crate::support::reliability::Row;
use crate::support::testcluster::{Moment, NAMESPACE, TestCluster};

const USERS: &str = "support";

struct Place {
    cluster: TestCluster,
    gathers: Api<DynamicObject>,
    jobs: Api<Job>,
}

impl Place {
    async fn new() -> Self {
        let Users { cluster, gathers, jobs } = Users::with([account()]).await;
        Self { cluster, gathers, jobs }
    }

    /// A controller on `client` that goes on until it is killed; Secrets are copied to a namespace of the operator.
    fn work(client: Client, copies: bool) -> impl Future<Output = ()> + Send + 'static {
        let mut settings = settings();
        settings.rules.job_namespace = copies.then(|| NAMESPACE.to_owned());
        let events = Events::new(client.clone(), "admit-mustgather");
        let context =
            Context { client, settings, events, counts: Counts::default(), known: Known::default() };
        run(Arc::new(context), Term::alone(CancellationToken::new()))
    }

    async fn create(&self, name: &str) {
        let object = json!({"apiVersion": "operator.openshift.io/v1alpha1", "kind": "MustGather",
            "metadata": {"name": name, "namespace": USERS}, "spec": sftp(&json!({}))});
        self.cluster.create(&object).await;
    }

    /// From the creation to the last trace: the Job is there once and ends well, the object completes, is deleted and goes.
    async fn play(&self, name: &str) {
        let there = await_condition(self.jobs.clone(), name, |job: Option<&Job>| job.is_some());
        let job = tokio::time::timeout(PATIENCE, there).await.unwrap().unwrap().unwrap();
        let ended = Patch::Merge(json!({"status": complete()}));
        let now = self.jobs.patch_status(name, &PatchParams::default(), &ended).await.unwrap();
        assert_eq!(now.uid(), job.uid(), "the Job was made twice");
        let over = |object: &Value| object["status"]["completed"] == true;
        let object = self.cluster.until(&self.gathers, name, over).await;
        assert_eq!(object["status"]["status"], "Completed", "{object:#}");
        self.gathers.delete(name, &DeleteParams::default()).await.unwrap();
        self.cluster.gone(&self.gathers, name).await;
        let gone = await_condition(self.jobs.clone(), name, |job: Option<&Job>| job.is_none());
        drop(tokio::time::timeout(PATIENCE, gone).await.unwrap().unwrap());
    }

    async fn dies_at(&self, number: usize, moment: Moment, seed: u64) -> Option<String> {
        let name = format!("m{number}-{moment:?}-{seed}").to_lowercase();
        self.create(&name).await;
        let mut play = std::pin::pin!(self.play(&name));
        let first = self.cluster.process("admit-mustgather");
        first.wire.shuffle(seed);
        first.wire.crash_at(number, moment);
        let lived = first.until_death(Self::work(first.client.clone(), false), &mut play).await;
        let next = self.cluster.process("admit-mustgather");
        if lived.is_none() {
            next.until_death(Self::work(next.client.clone(), false), &mut play).await.unwrap();
        }
        let at = first.wire.writes().get(number).cloned();
        for process in [&first, &next] {
            assert_eq!(process.wire.denied(), Vec::<String>::new(), "{name}, dead {moment:?} {at:?}");
        }
        at
    }

    async fn dies_everywhere(&self, seed: u64) -> usize {
        everywhere(async |number, moment| self.dies_at(number, moment, seed).await).await
    }

    /// So many MustGathers whose Jobs run, in a namespace that is then deleted; how long it takes, and how many writes of the
    /// controller.
    async fn namespace_goes(&self, count: usize) -> (Duration, usize) {
        let controller = self.cluster.process("admit-mustgather");
        let (gathers, jobs) = (self.gathers.clone(), self.jobs.clone());
        let over = async {
            for number in 0..count {
                self.create(&format!("m{number}")).await;
            }
            let all = async {
                while jobs.list_metadata(&ListParams::default()).await.unwrap().items.len() < count {
                    tokio::task::yield_now().await;
                }
            };
            tokio::time::timeout(PATIENCE * 10, all).await.unwrap();
            let namespaces = self.cluster.objects("", "v1", "Namespace");
            let (before, began) = (controller.wire.writes().len(), Instant::now());
            namespaces.delete(USERS, &DeleteParams::default()).await.unwrap();
            self.cluster.gone(&namespaces, USERS).await;
            (began.elapsed(), controller.wire.writes().len() - before)
        };
        let (took, writes) =
            controller.until_death(Self::work(controller.client.clone(), false), over).await.unwrap();
        assert_eq!(gathers.list(&ListParams::default()).await.unwrap().items.len(), 0);
        assert_eq!(jobs.list(&ListParams::default()).await.unwrap().items.len(), 0, "orphans");
        // Its Job and its finalizer, and twice again for whoever was faster; the status of a few that lose their Job first.
        assert!(writes <= 6 * count, "{writes} writes to let {count} objects go");
        (took, writes)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_34_a_mustgather_whose_controller_dies_at_any_write() {
    let mut row = Row::short(34, "MustGathers from creation to the last trace, dead at each write");
    let points = Place::new().await.dies_everywhere(1).await;
    assert!(points >= 6, "{points}");
    row.measured(json!({"crashPoints": points, "moments": 2, "seeds": 1}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: scripts/soak runs it"]
async fn row_34_mustgathers_at_full_length() {
    let mut row = Row::full(34, "MustGathers from creation to the last trace, dead at each write", percent());
    let seeds = scaled(50);
    let mut points = 0;
    for seed in 0..u64::try_from(seeds).unwrap() {
        points = Place::new().await.dies_everywhere(seed).await.max(points);
    }
    row.measured(json!({"crashPoints": points, "moments": 2, "seeds": seeds}));
}

/// How long it takes is measured; what it costs has a bound that no busy machine moves.
#[tokio::test(flavor = "multi_thread")]
async fn row_36_a_namespace_of_objects_with_finalizers_goes() {
    let mut row = Row::short(36, "a namespace of 50 MustGathers with finalizers and Jobs is deleted");
    let (took, writes) = Place::new().await.namespace_goes(50).await;
    row.measured(json!({"objects": 50, "goneMs": took.as_millis(), "writes": writes}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: scripts/soak runs it"]
async fn row_36_at_full_length() {
    let mut row = Row::full(36, "a namespace of MustGathers with finalizers and Jobs is deleted", percent());
    let count = scaled(1_000);
    let (took, writes) = Place::new().await.namespace_goes(count).await;
    row.measured(json!({"objects": count, "goneMs": took.as_millis(), "writes": writes, "within10s": took.as_secs() < 10}));
}
