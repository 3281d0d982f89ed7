//! What operators see of the controllers: counters under well-known names, and which controller is ready.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use admit::controllers::kit::definition::Definition;
use admit::controllers::kit::manager::{Manager, Member, Term};
use admit::controllers::kit::observe::Observed;
use http::Request;
use http_body_util::BodyExt as _;
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::running::Workplace;
use crate::support::cluster::FakeCluster;
use crate::support::https::Client;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
const MUST_GATHERS: &str = "/apis/operator.openshift.io/v1alpha1/mustgathers";
/// For a process on a busy machine.
const START: Duration = Duration::from_secs(60);

async fn asked(observed: &Observed, path: &str) -> (u16, String) {
    let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
    let answer = observed.clone().router().oneshot(request).await.unwrap();
    let code = answer.status().as_u16();
    (code, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
}

#[tokio::test]
async fn a_system_shows_what_it_counts_and_each_controller_is_ready_by_name() {
    let cluster = FakeCluster::new(&[]);
    let works = |term: Term| async move {
        term.stop.cancelled().await;
        Ok::<_, Infallible>(())
    };
    let widgets = Counter::<u64>::default();
    let own = widgets.clone();
    let manager = Manager::new(cluster.client(), None)
        .with(
            Member::new("maker", cluster.client(), Vec::new(), works)
                .counting(|registry| registry.register("widgets", "Widgets made", own)),
        )
        .with(Member::new(
            "waiter",
            cluster.client(),
            vec![Definition::new("example.dev", "v1", "widgets")],
            works,
        ));
    let (observed, readiness) = (Observed::of(&manager), manager.readiness());
    widgets.inc();
    readiness.set("maker", true);
    let (code, text) = asked(&observed, "/metrics").await;
    assert_eq!(code, 200);
    for line in [
        "widgets_total 1",
        "admit_controller_ready{controller=\"maker\"} 1",
        "admit_controller_ready{controller=\"waiter\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "`{line}` is missing:\n{text}");
    }
    assert_eq!(asked(&observed, "/healthz").await, (200, "ok".to_owned()));
    let parts = "[+]maker ok\n[-]waiter failed: not started\nreadyz check failed\n";
    assert_eq!(asked(&observed, "/readyz").await, (503, parts.to_owned()));
    assert_eq!(asked(&observed, "/readyz/maker").await, (200, "ok".to_owned()));
    assert_eq!(asked(&observed, "/readyz/waiter").await, (503, "not started".to_owned()));
    assert_eq!(asked(&observed, "/readyz/nobody").await.0, 404);
    readiness.set("waiter", true);
    assert_eq!(asked(&observed, "/readyz").await.0, 200);
}

/// A started `admit controllers`; killed when the value goes, if it still runs.
struct Process {
    child: Child,
    address: SocketAddr,
}

impl Process {
    fn start(kubeconfig: &std::path::Path, archives: &std::path::Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
            .args(["controllers", "--controllers", "datagather,mustgather", "--gather-every", "never"])
            .args(["--log-format", "json", "--metrics-listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(kubeconfig)
            .arg("--archive-dir")
            .arg(archives)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let (sender, found) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines {
                let line: Value = serde_json::from_str(&line).unwrap_or_default();
                if let Some(address) = line["fields"]["metrics"].as_str() {
                    let _ = sender.send(address.parse().unwrap());
                }
            }
        });
        let found = found.recv_timeout(START);
        let address = found.unwrap_or_else(|_| panic!("it does not say where operators may look"));
        Self { child, address }
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answered = Client::plain(self.address).await.unwrap().get(path).await.unwrap();
        (answered.code.as_u16(), String::from_utf8(answered.body.to_vec()).unwrap())
    }

    /// Asks again until the answer is as wanted.
    async fn until(&self, path: &str, wanted: impl Fn(u16, &str) -> bool) {
        let mut last = (0, String::new());
        let began = std::time::Instant::now();
        while began.elapsed() < START {
            last = self.get(path).await;
            if wanted(last.0, &last.1) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("{path}: {last:?}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_controllers_lets_operators_look() {
    let cluster = FakeCluster::new(&[LEASES]);
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.serve().await).unwrap();
    let mut process = Process::start(&kubeconfig, &folder.path().join("archives"));
    assert_eq!(process.get("/healthz").await, (200, "ok".to_owned()));
    let unserved = "[-]mustgather failed: mustgathers.operator.openshift.io/v1alpha1 is not served";
    process.until("/readyz", |code, text| code == 503 && text.contains(unserved)).await;
    let leads = "leader_election_master_status{name=\"admit-controllers\"} 1";
    process.until("/metrics", |code, text| code == 200 && text.contains(leads)).await;
    process.until("/readyz/datagather", |code, text| (code, text) == (200, "ok")).await;
    cluster.define(MUST_GATHERS);
    process.until("/readyz", |code, _| code == 200).await;
    let (_, text) = process.get("/metrics").await;
    for line in [
        "controller_runtime_max_concurrent_reconciles{controller=\"datagather\"} 16",
        "controller_runtime_reconcile_total{controller=\"datagather\",result=\"error\"} 0",
        "admit_controller_ready{controller=\"mustgather\"} 1",
        "must_gather_operator_must_gather_total 0",
        "must_gather_operator_must_gather_errors 0",
    ] {
        assert!(text.lines().any(|found| found == line), "`{line}` is missing:\n{text}");
    }
    let id = process.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(process.child.wait().unwrap().success());
}

/// What dashboards and alerts that were made for others' operators ask for, as far as it is there before anything
/// happens.
const NAMES: [&str; 12] = [
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_active_workers",
    "controller_runtime_max_concurrent_reconciles",
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_retries_total",
    "admit_controller_ready",
    "health_statuses_insights",
    "must_gather_operator_must_gather_total",
    "must_gather_operator_must_gather_errors",
];
/// Numbers that go up and down all the same: upstream's names.
const GAUGES_NAMED_AS_COUNTERS: [&str; 2] = ["cyndi_hosts_total", "cyndi_inconsistency_total"];

/// The names of the series of a document, each of one type.
fn announced(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut families = BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        assert!(families.insert(name.to_owned()), "{name} is there twice");
        let shown = match kind {
            // The API server's own are in the older format, which has the whole name here.
            "counter" if name.ends_with("_total") || name.starts_with("apiserver_") => name.to_owned(),
            "counter" => format!("{name}_total"),
            "histogram" => format!("{name}_bucket"),
            "gauge" => {
                let odd = name.ends_with("_total") && !GAUGES_NAMED_AS_COUNTERS.contains(&name);
                assert!(!odd, "{name} is a gauge");
                name.to_owned()
            }
            other => panic!("{name} is of type {other}"),
        };
        assert!(!shown.contains("_total_"), "{shown}");
        names.insert(shown);
    }
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn admit_up_shows_its_controllers_among_its_metrics_each_under_one_name() {
    let place = Workplace::new();
    let _running = place.start();
    let client = place.client().await;
    let asking = async || {
        let request = Request::get("/metrics").body(Vec::new()).unwrap();
        client.request_text(request).await.unwrap()
    };
    let began = std::time::Instant::now();
    let text = loop {
        let text = asking().await;
        let announced = announced(&text);
        let missing: Vec<_> = NAMES.into_iter().filter(|name| !announced.contains(*name)).collect();
        if missing.is_empty() {
            break text;
        }
        assert!(began.elapsed() < START, "{missing:?} are missing:\n{text}");
        tokio::task::yield_now().await;
    };
    for part in ["apiserver_watches_open ", "admit_controller_ready{controller=\"datagather\"} "] {
        assert!(text.lines().any(|line| line.starts_with(part)), "`{part}` is missing:\n{text}");
    }
    let mut series = BTreeSet::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let head = line.rsplit_once(' ').unwrap().0;
        assert!(series.insert(head), "{head} is there twice");
        assert!(!head.contains("_total_total"), "{head}");
    }
}
