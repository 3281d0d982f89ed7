//! Row 34 where gatherings run as Jobs: two processes, either of which dies at any of its writes; the controller, whom the next one
//! follows, or the container, whom nobody does. Under the roles of `runner=job` and the shipped policies.

use std::fs;

use admit::controllers::datagather::{JobSettings, RunnerKind, Settings, TokenSettings, run, run_one};
use k8s_openapi::ByteString;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Client, Resource, ResourceExt as _};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::runs::{Bench, condition, uploading};
use super::upload::ingress::{Answers, FakeIngress};
use crate::mustgather::{complete, failed};
use crate::soak::{percent, scaled};
use crate::support::cluster::PATIENCE;
use crate::support::crashes::everywhere;
use crate::support::reliability::Row;
use crate::support::testcluster::{Moment, NAMESPACE, Process, TestCluster};

/// Who dies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Controller,
    Container,
}

struct Place {
    cluster: TestCluster,
    service: FakeIngress,
    bench: Bench,
    gathers: Api<DynamicObject>,
    jobs: Api<Job>,
}

/// What there was in the end.
struct Ended {
    status: Value,
    job: Job,
    /// Whether the container ended by itself.
    lived: bool,
}

impl Place {
    async fn new() -> Self {
        let cluster = TestCluster::with_jobs().await;
        let gathers = cluster.objects("insights.openshift.io", "v1alpha1", "DataGather");
        let jobs = Api::namespaced(cluster.admin.clone(), NAMESPACE);
        let mut answers = Answers::accept("abc");
        answers.report = (200, r#"{"requestID":"abc","report":[]}"#.to_owned());
        Self { cluster, service: FakeIngress::start(answers).await, bench: Bench::new(), gathers, jobs }
    }

    fn settings(&self) -> Settings {
        let mut settings = uploading(&self.bench, &self.service);
        settings.namespace = NAMESPACE.to_owned();
        settings.keep_archives = 100_000;
        settings
    }

    /// A controller on `client` that goes on until it is killed.
    async fn control(client: Client, mut settings: Settings) {
        settings.runner = RunnerKind::Job(JobSettings::new("admit"));
        drop(run(client, settings, CancellationToken::new()).await);
    }

    /// What a node does with the Job once it is there: its container runs to its end or to its death, and the Job says which.
    async fn node(&self, name: &str, container: &Process) -> (Job, bool) {
        let there = await_condition(self.jobs.clone(), name, |job: Option<&Job>| job.is_some());
        let job = tokio::time::timeout(PATIENCE, there).await.unwrap().unwrap().unwrap();
        let settings = handed(&self.cluster, &self.bench, &job, self.settings()).await;
        let (client, name) = (container.client.clone(), name.to_owned());
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        let work = async move {
            let gathered = run_one(client, settings, &name, CancellationToken::new()).await;
            let _ = ended.send(gathered.is_ok());
        };
        let lived = container.until_death(work, async { has_ended.await == Ok(true) }).await == Some(true);
        let status = if lived { complete() } else { failed() };
        let ended = Patch::Merge(json!({"status": status}));
        let now = self.jobs.patch_status(&job.name_any(), &PatchParams::default(), &ended).await.unwrap();
        assert_eq!(now.uid(), job.uid(), "the Job was made twice");
        (job, lived)
    }

    /// From the creation to the end: the Job is run once, and the controller knows the report of what was completed.
    async fn play(&self, name: &str, container: &Process) -> Ended {
        let (job, lived) = self.node(name, container).await;
        let over = |object: &Value| {
            let state = object["status"]["dataGatherState"].as_str().unwrap_or_default();
            let conditions = object["status"]["conditions"].to_string();
            state == "Failed" || (state == "Completed" && conditions.contains("AnalysisAvailable"))
        };
        let status = self.cluster.until(&self.gathers, name, over).await["status"].clone();
        Ended { status, job, lived }
    }

    /// One gathering of which the `victim` dies at its write `number`; the name of that write, if it came to it.
    async fn dies_at(&self, victim: Victim, number: usize, moment: Moment, seed: u64) -> Option<String> {
        let name = format!("g{number}-{victim:?}-{moment:?}-{seed}").to_lowercase();
        let before = (self.service.uploads().len(), self.bench.archives().len());
        let object = json!({"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
            "metadata": {"name": name}, "spec": {}});
        self.cluster.create(&object).await;
        let [first, next] = [(); 2].map(|()| self.cluster.process("admit-datagather"));
        let container = self.cluster.process("gather");
        let dying = if victim == Victim::Controller { &first } else { &container };
        for process in [&first, &container] {
            process.wire.shuffle(seed);
        }
        dying.wire.crash_at(number, moment);
        let mut play = std::pin::pin!(self.play(&name, &container));
        let lived = first.until_death(Self::control(first.client.clone(), self.settings()), &mut play).await;
        let ended = match lived {
            Some(ended) => ended,
            None => {
                let work = Self::control(next.client.clone(), self.settings());
                next.until_death(work, &mut play).await.unwrap()
            }
        };
        let at = dying.wire.writes().get(number).cloned();
        let uploads = self.service.uploads().len() - before.0;
        let archives = self.bench.archives().len() - before.1;
        let told = format!(
            "{name}, dead {moment:?} {at:?}: {uploads} uploads, {archives} archives: {:#}",
            ended.status
        );
        Self::judge(victim, &ended, (uploads, archives), &told);
        for process in [&first, &next, &container] {
            assert_eq!(process.wire.denied(), Vec::<String>::new(), "{told}");
        }
        self.leaves_nothing(&ended.job, &told).await;
        at
    }

    /// The right end: the death of a controller costs nothing, and that of a container its gathering, unless it had told its end.
    fn judge(victim: Victim, ended: &Ended, (uploads, archives): (usize, usize), told: &str) {
        assert!(uploads <= 1 && archives <= 1, "{told}");
        let completed = ended.status["dataGatherState"] == "Completed";
        assert!(!completed || (uploads, archives) == (1, 1), "{told}");
        assert!(completed || !ended.lived, "{told}");
        assert!(completed || victim == Victim::Container, "{told}");
        assert!(completed || ended.status.to_string().contains("the Job failed"), "{told}");
        let uploaded = condition(&ended.status, "DataUploaded");
        assert!(!uploaded.starts_with("True") || uploads == 1, "{told}");
        assert!(!completed || uploaded == "True/HttpStatus202", "{told}");
        assert!(ended.status["finishTime"].is_string(), "{told}");
    }

    /// Once the DataGather is deleted, its Job and all that the Job was handed go as well.
    async fn leaves_nothing(&self, job: &Job, told: &str) {
        let all = self.jobs.list_metadata(&ListParams::default()).await.unwrap().items;
        assert_eq!(all.len(), 1, "{told}");
        self.gathers.delete(&job.name_any(), &DeleteParams::default()).await.unwrap();
        self.cluster.gone(&self.gathers, &job.name_any()).await;
        let handed = format!("gather-{}", job.owner_references()[0].uid);
        let admin = || self.cluster.admin.clone();
        gone(&self.jobs, &job.name_any(), told).await;
        gone(&Api::<Secret>::namespaced(admin(), NAMESPACE), &handed, told).await;
        gone(&Api::<ConfigMap>::namespaced(admin(), NAMESPACE), &handed, told).await;
    }

    /// Dies once at every write of the `victim`, in both moments; how many there are.
    async fn dies_everywhere(&self, victim: Victim, seed: u64) -> usize {
        everywhere(async |number, moment| self.dies_at(victim, number, moment, seed).await).await
    }
}

/// The settings of a Job's container: those of the controller with what the flags, the Secret and the ConfigMap of the Job say.
pub(super) async fn handed(cluster: &TestCluster, bench: &Bench, job: &Job, settings: Settings) -> Settings {
    let job = serde_json::to_value(job).unwrap();
    let pod = &job["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array().unwrap();
    let secret = volumes.iter().find_map(|volume| volume["secret"]["secretName"].as_str()).unwrap();
    let map = volumes.iter().find_map(|volume| volume["configMap"]["name"].as_str()).unwrap();
    let secrets: Api<Secret> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    let maps: Api<ConfigMap> = Api::namespaced(cluster.admin.clone(), NAMESPACE);
    let ByteString(token) = secrets.get(secret).await.unwrap().data.unwrap().remove("token").unwrap();
    let ca = maps.get(map).await.unwrap().data.unwrap().remove("ca-bundle.crt").unwrap();
    let path = |leaf: &str| bench.dir.path().join(format!("{map}-{leaf}"));
    fs::write(path("token"), token).unwrap();
    fs::write(path("ca.pem"), ca).unwrap();
    let mut settings = Settings { follow_cluster: false, ..settings };
    let upload = settings.upload.as_mut().unwrap();
    (upload.token, upload.ca) = (TokenSettings::File(path("token")), Some(path("ca.pem")));
    settings
}

async fn gone<K>(objects: &Api<K>, name: &str, told: &str)
where
    K: Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let gone = await_condition(objects.clone(), name, |object: Option<&K>| object.is_none());
    let gone = tokio::time::timeout(PATIENCE, gone).await;
    drop(gone.unwrap_or_else(|_| panic!("`{name}` is left over: {told}")).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn row_34_a_gathering_job_whose_controller_or_container_dies_at_any_write() {
    let mut row = Row::short(34, "gatherings as Jobs, dead at each write");
    for (victim, least, told) in
        [(Victim::Controller, 6, "pointsOfTheController"), (Victim::Container, 4, "pointsOfTheContainer")]
    {
        let points = Place::new().await.dies_everywhere(victim, 1).await;
        assert!(points >= least, "{victim:?}: {points}");
        row.measured(json!({told: points, "moments": 2, "seeds": 1}));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: scripts/soak runs it"]
async fn row_34_gathering_jobs_at_full_length() {
    let mut row = Row::full(34, "gatherings as Jobs, dead at each write", percent());
    let seeds = scaled(50);
    for (victim, told) in
        [(Victim::Controller, "pointsOfTheController"), (Victim::Container, "pointsOfTheContainer")]
    {
        let mut points = 0;
        for seed in 0..u64::try_from(seeds).unwrap() {
            points = Place::new().await.dies_everywhere(victim, seed).await.max(points);
        }
        row.measured(json!({told: points, "moments": 2, "seeds": seeds}));
    }
}
