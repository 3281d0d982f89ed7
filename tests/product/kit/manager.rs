//! A set of controllers under one Lease: begun when what they need is served, stopped in order, never restarted in silence.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admit::controllers::kit::definition::Definition;
use admit::controllers::kit::lease::Election;
use admit::controllers::kit::manager::{Manager, ManagerError, Member, Term};
use admit::controllers::kit::observe::Observed;
use http::Method;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::support::cluster::FakeCluster;
use crate::support::logs;

const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/admit/leases";
const WIDGETS: &str = "/apis/example.dev/v1/widgets";
const GROUP: &str = "/apis/example.dev/v1";

#[derive(Clone, Default)]
struct Story(Arc<Mutex<Vec<String>>>);

impl Story {
    fn tell(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn told(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// A controller that is ready at once and works until it is told to stop.
fn patient(name: &'static str, cluster: &FakeCluster, needs: Vec<Definition>, story: &Story) -> Member {
    let story = story.clone();
    Member::new(name, cluster.client(), needs, move |term: Term| {
        let story = story.clone();
        async move {
            story.tell(format!("{name} began"));
            term.readiness.set(name, true);
            term.stop.cancelled().await;
            sleep(Duration::from_secs(1)).await;
            story.tell(format!("{name} ended"));
            Ok::<_, Infallible>(())
        }
    })
}

#[tokio::test(start_paused = true)]
async fn a_controller_begins_when_its_kind_is_served_and_others_do_not_wait_for_it() {
    let cluster = FakeCluster::new(&[]);
    let (story, logs) = (Story::default(), logs::capture());
    let needs = vec![Definition::new("example.dev", "v1", "widgets")];
    let manager = Manager::new(cluster.client(), None)
        .with(patient("widgets", &cluster, needs, &story))
        .with(patient("other", &cluster, Vec::new(), &story));
    let (readiness, shutdown) = (manager.readiness(), CancellationToken::new());
    assert_eq!(readiness.parts(), [("other", false), ("widgets", false)]);
    let running = tokio::spawn(manager.run(shutdown.clone()));
    sleep(Duration::from_mins(10)).await;
    assert_eq!(story.told(), ["other began"]);
    assert!(
        readiness.text().contains("[-]widgets failed: widgets.example.dev/v1 is not served"),
        "{}",
        readiness.text()
    );
    let asked = cluster.count(&Method::GET, GROUP);
    assert!((30..100).contains(&asked), "{asked}");
    let logged = logs.take();
    assert_eq!(logged.lines().filter(|line| line.contains("WARN")).count(), 1, "{logged}");
    cluster.define(WIDGETS);
    sleep(Duration::from_secs(16)).await;
    assert_eq!(story.told(), ["other began", "widgets began"]);
    assert!(readiness.ready(), "{}", readiness.text());
    shutdown.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_is_stopped_first_and_each_before_the_next() {
    let cluster = FakeCluster::new(&[]);
    let story = Story::default();
    let mut manager = Manager::new(cluster.client(), None);
    for name in ["a", "b", "c"] {
        manager = manager.with(patient(name, &cluster, Vec::new(), &story));
    }
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(manager.run(shutdown.clone()));
    sleep(Duration::from_secs(1)).await;
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(story.told(), ["a began", "b began", "c began", "c ended", "b ended", "a ended"]);
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_ends_fails_or_panics_ends_all_and_is_named() {
    for (how, expected) in [
        ("end", "the controller `bad` ended unexpectedly"),
        ("fail", "the controller `bad` failed: no disk"),
        ("panic", "the controller `bad` panicked: no luck"),
    ] {
        let cluster = FakeCluster::new(&[]);
        let story = Story::default();
        let bad = Member::new("bad", cluster.client(), Vec::new(), move |_| async move {
            sleep(Duration::from_secs(1)).await;
            match how {
                "end" => Ok(()),
                "fail" => Err(io::Error::other("no disk")),
                _ => panic!("no luck"),
            }
        });
        let manager = Manager::new(cluster.client(), None);
        let manager = manager.with(patient("good", &cluster, Vec::new(), &story)).with(bad);
        let error = manager.run(CancellationToken::new()).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(story.told(), ["good began", "good ended"], "{how}");
    }
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_stop_is_dropped_in_time() {
    let cluster = FakeCluster::new(&[]);
    let deaf = Member::new("deaf", cluster.client(), Vec::new(), |_| {
        std::future::pending::<Result<(), Infallible>>()
    });
    let manager = Manager::new(cluster.client(), None).with(deaf);
    let shutdown = CancellationToken::new();
    let running = tokio::spawn(manager.run(shutdown.clone()));
    sleep(Duration::from_secs(1)).await;
    let stopping = Instant::now();
    shutdown.cancel();
    running.await.unwrap().unwrap();
    assert!(stopping.elapsed() <= Duration::from_secs(21), "{:?}", stopping.elapsed());
}

#[tokio::test(start_paused = true)]
async fn one_lease_serves_all_and_who_stands_by_is_ready() {
    let cluster = FakeCluster::new(&[LEASES]);
    let manager = |identity: &str, story: &Story| {
        Manager::new(cluster.client(), Some(Election::new("admit", "controllers", identity)))
            .with(patient("a", &cluster, Vec::new(), story))
            .with(patient("b", &cluster, Vec::new(), story))
    };
    let (first, second) = (Story::default(), Story::default());
    let (leader, waiting) = (manager("one", &first), manager("two", &second));
    let (led, metrics) = (Observed::of(&leader), Observed::of(&waiting));
    let (ready, stop_leader, stop) =
        (waiting.readiness(), CancellationToken::new(), CancellationToken::new());
    let leading = tokio::spawn(leader.run(stop_leader.clone()));
    sleep(Duration::from_secs(1)).await;
    let standing_by = tokio::spawn(waiting.run(stop.clone()));
    sleep(Duration::from_mins(1)).await;
    assert_eq!((first.told().len(), second.told().len()), (2, 0));
    assert!(ready.ready(), "{}", ready.text());
    let leads = |text: String, value: u8| {
        assert!(
            text.contains(&format!("leader_election_master_status{{name=\"controllers\"}} {value}")),
            "{text}"
        );
    };
    leads(led.text(), 1);
    leads(metrics.text(), 0);
    // A lost term begins again from nothing.
    cluster.refuse_once(Method::PUT, &format!("{LEASES}/controllers"), 409);
    sleep(Duration::from_mins(1)).await;
    stop_leader.cancel();
    let ended: Result<(), ManagerError> = leading.await.unwrap();
    ended.unwrap();
    assert_eq!(first.told()[..4], ["a began", "b began", "b ended", "a ended"]);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(second.told(), ["a began", "b began"]);
    leads(metrics.text(), 1);
    stop.cancel();
    standing_by.await.unwrap().unwrap();
}
