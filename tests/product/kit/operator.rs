//! The ClusterOperator of a controller, on a clock that stands still: written when something changes, and not otherwise.

use std::convert::Infallible;
use std::time::Duration;

use admit::controllers::kit::conditions::{Statement, Truth};
use admit::controllers::kit::definition::Definition;
use admit::controllers::kit::manager::{Manager, Member, Term};
use admit::controllers::kit::operator::{Aspect, Operator, Says};
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::support::cluster::FakeCluster;

const OPERATORS: &str = "/apis/config.openshift.io/v1/clusteroperators";
const STATUS: &str = "/apis/config.openshift.io/v1/clusteroperators/op/status";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

struct Bench {
    cluster: FakeCluster,
    says: Says,
    stop: CancellationToken,
    running: JoinHandle<()>,
}

impl Bench {
    fn start(cluster: FakeCluster) -> Self {
        let (says, stop) = (Says::default(), CancellationToken::new());
        let operator = Operator::new("op").relating("example.dev", "widgets");
        let running = tokio::spawn(operator.run(cluster.client(), says.clone(), stop.clone()));
        Self { cluster, says, stop, running }
    }

    fn written(&self) -> usize {
        self.cluster.count(&Method::PATCH, STATUS)
    }

    fn conditions(&self) -> Vec<String> {
        let object = self.cluster.get(OPERATORS, "op");
        let said = |condition: &Value| {
            let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
            format!("{}={}/{}: {}", text("type"), text("status"), text("reason"), text("message"))
        };
        object["status"]["conditions"].as_array().into_iter().flatten().map(said).collect()
    }

    fn condition(&self, type_: &str) -> String {
        let start = format!("{type_}=");
        self.conditions().into_iter().find(|text| text.starts_with(&start)).unwrap_or_default()
    }

    async fn end(self) {
        self.stop.cancel();
        self.running.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_said_is_written_once_and_comes_back_when_it_is_deleted() {
    let bench = Bench::start(FakeCluster::new(&[OPERATORS]));
    sleep(Duration::from_mins(3)).await;
    assert_eq!(bench.cluster.get(OPERATORS, "op"), Value::Null, "nothing was said yet");
    bench.says.works();
    bench.says.show(Statement::new("Disabled", Truth::True, "ByFlag", "never"));
    sleep(Duration::from_secs(1)).await;
    let expected = [
        "Available=True/AsExpected: ControllerAvailable: its objects are watched",
        "Progressing=False/AsExpected: All is well",
        "Degraded=False/AsExpected: All is well",
        "Disabled=True/ByFlag: never",
    ];
    assert_eq!(bench.conditions(), expected);
    let object = bench.cluster.get(OPERATORS, "op");
    assert_eq!(object["status"]["versions"][0]["name"], "operator");
    let related = json!([{"group": "example.dev", "resource": "widgets", "name": ""}]);
    assert_eq!(object["status"]["relatedObjects"], related);
    assert_eq!(bench.written(), 1);
    bench.says.works();
    sleep(Duration::from_mins(30)).await;
    assert_eq!(bench.written(), 1, "nothing changed, and nothing is written");
    let told = bench.cluster.all(EVENTS);
    assert_eq!(told.len(), 3, "{told:#?}");
    let first = "Status for clusteroperator/op changed: Available set from nothing to True";
    assert!(told.iter().any(|event| event["note"] == first), "{told:#?}");
    bench.cluster.delete(OPERATORS, "op");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.conditions(), expected);
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn degraded_is_told_after_two_minutes_and_taken_back_at_once() {
    let bench = Bench::start(FakeCluster::new(&[OPERATORS]));
    bench.says.works();
    sleep(Duration::from_secs(10)).await;
    bench.says.fails(3, "n/a: the server refuses");
    sleep(Duration::from_secs(100)).await;
    assert!(bench.condition("Degraded").starts_with("Degraded=False/"), "{}", bench.condition("Degraded"));
    sleep(Duration::from_secs(21)).await;
    let told = "Degraded=True/Controller_ReconcileFailed: ControllerDegraded: looks at 3 objects fail, for example: n/a: the server refuses";
    assert_eq!(bench.condition("Degraded"), told);
    // Another process takes over: what is Degraded still does not become well for two minutes.
    bench.stop.cancel();
    let cluster = bench.cluster.clone();
    bench.running.await.unwrap();
    let next = Bench::start(cluster);
    next.says.works();
    next.says.fails(1, "again");
    sleep(Duration::from_secs(10)).await;
    assert!(next.condition("Degraded").starts_with("Degraded=True/"), "{}", next.condition("Degraded"));
    next.says.recovers();
    sleep(Duration::from_secs(6)).await;
    assert!(next.condition("Degraded").starts_with("Degraded=False/"), "{}", next.condition("Degraded"));
    next.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_changes_of_words_are_a_few_writes() {
    let bench = Bench::start(FakeCluster::new(&[OPERATORS]));
    bench.says.works();
    sleep(Duration::from_secs(10)).await;
    for count in 1..=1_000 {
        bench.says.fails(count, "on purpose");
        sleep(Duration::from_millis(10)).await;
    }
    sleep(Duration::from_secs(10)).await;
    assert!((2..=6).contains(&bench.written()), "{}", bench.written());
    assert!(bench.condition("Degraded").contains("looks at 1000 objects"), "{}", bench.condition("Degraded"));
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_others_say_stays_and_who_meets_another_writer_writes_again() {
    let cluster = FakeCluster::new(&[OPERATORS]);
    let theirs = json!({"type": "Upgradeable", "status": "False", "reason": "Theirs", "message": "not now",
        "lastTransitionTime": "2026-11-21T09:00:00Z"});
    cluster.put(
        OPERATORS,
        json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": "op"}, "spec": {},
            "status": {"conditions": [theirs], "versions": [{"name": "operand", "version": "7"}]}}),
    );
    let bench = Bench::start(cluster);
    bench.cluster.refuse_once(Method::PATCH, STATUS, 409);
    bench.cluster.refuse_once(Method::PATCH, STATUS, 500);
    bench.says.works();
    bench.says.say("Upload", Aspect::Available, Truth::Unknown, "Silent", "no answer");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(bench.conditions()[0], "Upgradeable=False/Theirs: not now");
    assert_eq!(bench.condition("Available"), "Available=Unknown/Upload_Silent: UploadAvailable: no answer");
    let versions = bench.cluster.get(OPERATORS, "op")["status"]["versions"].clone();
    assert_eq!((&versions[0]["name"], &versions[1]["name"]), (&json!("operand"), &json!("operator")));
    bench.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_manager_reports_what_its_members_wait_for_and_says_nothing_where_nobody_listens() {
    let cluster = FakeCluster::new(&[OPERATORS]);
    let member = |cluster: &FakeCluster| {
        let needs = vec![Definition::new("example.dev", "v1", "widgets")];
        let works = |term: Term| async move {
            term.says.works();
            term.stop.cancelled().await;
            Ok::<_, Infallible>(())
        };
        Member::new("maker", cluster.client(), needs, works).reporting(Operator::new("op"))
    };
    let stop = CancellationToken::new();
    let manager = Manager::new(cluster.client(), None).with(member(&cluster));
    let running = tokio::spawn(manager.run(stop.clone()));
    sleep(Duration::from_mins(1)).await;
    let available = |cluster: &FakeCluster| cluster.get(OPERATORS, "op")["status"]["conditions"][0].clone();
    assert_eq!(
        (&available(&cluster)["status"], &available(&cluster)["reason"]),
        (&json!("False"), &json!("Controller_NotServed"))
    );
    cluster.define("/apis/example.dev/v1/widgets");
    sleep(Duration::from_mins(1)).await;
    assert_eq!(available(&cluster)["status"], "True");
    stop.cancel();
    running.await.unwrap().unwrap();

    for (cluster, reports) in [(FakeCluster::new(&[]), true), (FakeCluster::new(&[OPERATORS]), false)] {
        let stop = CancellationToken::new();
        let manager = Manager::new(cluster.client(), None).reports(reports).with(member(&cluster));
        let running = tokio::spawn(manager.run(stop.clone()));
        sleep(Duration::from_mins(30)).await;
        assert_eq!(cluster.count(&Method::POST, OPERATORS), 0);
        let looks = cluster.count(&Method::GET, "/apis/config.openshift.io/v1");
        assert!(looks < 20 && (looks > 0) == reports, "{looks}");
        stop.cancel();
        running.await.unwrap().unwrap();
    }
}
