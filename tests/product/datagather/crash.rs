//! A process that dies at any of its writes while it gathers: who comes next finds what is there. Under the shipped roles and
//! policies, none of whose rules either process may break.

use admit::controllers::datagather::{Settings, run};
use kube::Client;
use kube::api::{Api, DynamicObject};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::runs::{Bench, condition, uploading};
use super::upload::ingress::{Answers, FakeIngress};
use crate::soak::{percent, scaled};
use crate::support::crashes::everywhere;
use crate::support::reliability::Row;
use crate::support::testcluster::{Moment, NAMESPACE, TestCluster};

struct Place {
    cluster: TestCluster,
    service: FakeIngress,
    bench: Bench,
    gathers: Api<DynamicObject>,
}

impl Place {
    async fn new() -> Self {
        let cluster = TestCluster::new().await;
        let gathers = cluster.objects("insights.openshift.io", "v1alpha1", "DataGather");
        Self {
            cluster,
            service: FakeIngress::start(Answers::accept("abc")).await,
            bench: Bench::new(),
            gathers,
        }
    }

    fn settings(&self) -> Settings {
        let mut settings = uploading(&self.bench, &self.service);
        settings.namespace = NAMESPACE.to_owned();
        settings.keep_archives = 100_000;
        settings
    }

    /// A controller on `client` that goes on until it is killed.
    async fn work(client: Client, settings: Settings) {
        drop(run(client, settings, CancellationToken::new()).await);
    }

    async fn ended(&self, name: &str) -> Value {
        let over = |object: &Value| {
            let state = object["status"]["dataGatherState"].as_str().unwrap_or_default();
            let conditions = object["status"]["conditions"].to_string();
            state == "Failed" || (state == "Completed" && conditions.contains("AnalysisAvailable"))
        };
        self.cluster.until(&self.gathers, name, over).await["status"].clone()
    }

    /// One gathering of which the first process dies at its write `number`; the name of that write, if it came to it.
    async fn dies_at(&self, number: usize, moment: Moment, seed: u64) -> Option<String> {
        let name = format!("g{number}-{moment:?}-{seed}").to_lowercase();
        let before = (self.service.uploads().len(), self.bench.archives().len());
        let settings = self.settings();
        let object = json!({"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
            "metadata": {"name": name}, "spec": {}});
        self.cluster.create(&object).await;
        let mut play = std::pin::pin!(self.ended(&name));
        let first = self.cluster.process("admit-datagather");
        first.wire.shuffle(seed);
        first.wire.crash_at(number, moment);
        let lived = first.until_death(Self::work(first.client.clone(), settings.clone()), &mut play).await;
        let at = first.wire.writes().get(number).cloned();
        let next = self.cluster.process("admit-datagather");
        let status = match lived {
            Some(status) => status,
            None => next.until_death(Self::work(next.client.clone(), settings), &mut play).await.unwrap(),
        };
        let told = || format!("{name}, dead {moment:?} {at:?}: {status:#}");
        let uploads = self.service.uploads().len() - before.0;
        let archives = self.bench.archives().len() - before.1;
        let completed = status["dataGatherState"] == "Completed";
        assert!(uploads <= 1 && archives <= 1, "{uploads} uploads, {archives} archives: {}", told());
        assert!(!completed || (uploads, archives) == (1, 1), "{}", told());
        let uploaded = condition(&status, "DataUploaded");
        assert_eq!(uploaded == "True/HttpStatus202", completed || uploaded.starts_with("True"), "{}", told());
        assert!(completed || status.to_string().contains("interrupted"), "{}", told());
        for process in [&first, &next] {
            assert_eq!(process.wire.denied(), Vec::<String>::new(), "{}", told());
        }
        at
    }

    /// Dies once at every write, in both moments; how many there are.
    async fn dies_everywhere(&self, seed: u64) -> usize {
        everywhere(async |number, moment| self.dies_at(number, moment, seed).await).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn row_34_a_gathering_whose_process_dies_at_any_write() {
    let mut row = Row::short(34, "gatherings in process, dead at each write");
    let points = Place::new().await.dies_everywhere(1).await;
    assert!(points >= 8, "{points}");
    row.measured(json!({"crashPoints": points, "moments": 2, "seeds": 1}));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes: scripts/soak runs it"]
async fn row_34_gatherings_at_full_length() {
    let mut row = Row::full(34, "gatherings in process, dead at each write", percent());
    let seeds = scaled(50);
    let mut points = 0;
    for seed in 0..u64::try_from(seeds).unwrap() {
        points = Place::new().await.dies_everywhere(seed).await.max(points);
    }
    row.measured(json!({"crashPoints": points, "moments": 2, "seeds": seeds}));
}
