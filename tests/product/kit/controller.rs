//! The loop of a controller, on ConfigMaps that stand for any kind: what is looked at, when, and what one object may do to others.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admit::controllers::kit::controller::{Controller, Failure, Next, Reconcile, Surroundings};
use admit::controllers::kit::events::Events;
use admit::controllers::kit::key::Key;
use admit::controllers::kit::operator::{Aspect, Says};
use admit::controllers::kit::retry::{Remedy, remedy};
use admit::telemetry::{ControllerMetrics, Readiness};
use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::core::{DeserializeGuard, PartialObjectMeta};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::cluster::{FakeCluster, PATIENCE};
use crate::support::logs;

const MAPS: &str = "/api/v1/namespaces/n/configmaps";
const SECRETS: &str = "/api/v1/namespaces/n/secrets";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/n/events";
/// What a look asks for, so that tests may refuse it.
const ASKED: &str = "/api/v1/namespaces/n/secrets/asked";

/// Longer than any wait that a test is about; the clock stands still, so that it costs nothing.
const LONG: Duration = Duration::from_hours(1);

/// Looks that began, by name; what an object's data asks for is done.
struct Looker {
    client: Client,
    looks: watch::Sender<BTreeMap<String, usize>>,
    gone: Mutex<Vec<Key>>,
    /// Looks at objects that ask to be held wait here.
    gate: Semaphore,
    most: Mutex<(usize, usize)>,
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(#[from] kube::Error);

impl Failure for Refused {
    fn remedy(&self) -> Remedy {
        remedy(&self.0)
    }
}

impl Reconcile for Looker {
    type Object = ConfigMap;
    type Error = Refused;

    async fn reconcile(&self, object: &ConfigMap) -> Result<Next, Refused> {
        let wants = |what: &str| object.data.as_ref().is_some_and(|data| data.contains_key(what));
        self.looks.send_modify(|looks| *looks.entry(object.name_any()).or_default() += 1);
        assert!(!wants("panic"), "asked to");
        if wants("hold") {
            {
                let mut most = self.most.lock().unwrap();
                most.0 += 1;
                most.1 = most.1.max(most.0);
            }
            self.gate.acquire().await.unwrap().forget();
            self.most.lock().unwrap().0 -= 1;
        }
        if wants("ask") {
            Api::<Secret>::namespaced(self.client.clone(), "n").get("asked").await?;
        }
        Ok(if wants("again") { Next::After(Duration::from_mins(1)) } else { Next::Settled })
    }

    fn gone(&self, object: &Key) {
        self.gone.lock().unwrap().push(object.clone());
    }
}

struct Bench {
    cluster: FakeCluster,
    looker: Arc<Looker>,
    around: Surroundings,
    stop: CancellationToken,
}

impl Bench {
    fn new() -> Self {
        let cluster = FakeCluster::new(&[MAPS, SECRETS, EVENTS]);
        cluster.put(SECRETS, json!({"metadata": {"name": "asked", "namespace": "n"}}));
        let looker = Looker {
            client: cluster.client(),
            looks: watch::Sender::default(),
            gone: Mutex::default(),
            gate: Semaphore::new(0),
            most: Mutex::default(),
        };
        let around = Surroundings {
            events: Events::new(cluster.client(), "looker"),
            metrics: Arc::new(ControllerMetrics::default()),
            readiness: Readiness::default(),
            says: Says::default(),
        };
        Self { cluster, looker: Arc::new(looker), around, stop: CancellationToken::new() }
    }

    fn start(&self, made: impl FnOnce(Controller<ConfigMap>) -> Controller<ConfigMap>) -> JoinHandle<()> {
        let maps: Api<DeserializeGuard<ConfigMap>> = Api::namespaced(self.cluster.client(), "n");
        let controller = made(Controller::new("looker", maps, watcher::Config::default()));
        tokio::spawn(controller.run(Arc::clone(&self.looker), self.around.clone(), self.stop.clone()))
    }

    fn put(&self, name: &str, wants: &[&str]) -> Value {
        let data: BTreeMap<_, _> = wants.iter().map(|what| (*what, "")).collect();
        let metadata = json!({"name": name, "namespace": "n"});
        self.cluster
            .put(MAPS, json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
    }

    async fn until_looked(&self, name: &str, at_least: usize) {
        let mut looks = self.looker.looks.subscribe();
        let enough = looks.wait_for(|looks| looks.get(name).is_some_and(|looks| *looks >= at_least));
        timeout(LONG, enough).await.unwrap_or_else(|_| panic!("{name}: never {at_least} looks")).unwrap();
    }

    fn looks(&self, name: &str) -> usize {
        self.looker.looks.borrow().get(name).copied().unwrap_or_default()
    }

    fn gone(&self) -> Vec<String> {
        self.looker.gone.lock().unwrap().iter().map(|key| format!("{key}:{}", key.uid)).collect()
    }

    async fn end(self, running: JoinHandle<()>) {
        self.stop.cancel();
        timeout(PATIENCE, running).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn every_object_is_looked_at_once_after_the_first_list_and_then_when_it_changes() {
    let bench = Bench::new();
    bench.put("a", &[]);
    bench.put("b", &[]);
    let running = bench.start(|controller| controller);
    assert!(!bench.around.readiness.ready());
    bench.until_looked("a", 1).await;
    bench.until_looked("b", 1).await;
    assert!(bench.around.readiness.ready(), "all objects are known");
    // A list that shows nothing new is no reason to look again.
    bench.cluster.refuse_once(Method::GET, MAPS, 410);
    bench.cluster.cut_watches();
    sleep(Duration::from_mins(1)).await;
    assert_eq!((bench.looks("a"), bench.looks("b")), (1, 1));
    bench.cluster.change(MAPS, "a", |map| map["data"] = json!({"again": ""}));
    bench.until_looked("a", 2).await;
    sleep(Duration::from_secs(63)).await;
    assert_eq!((bench.looks("a"), bench.looks("b")), (3, 1), "looked at again when it asked for it");
    bench.end(running).await;
}

#[tokio::test(start_paused = true)]
async fn owners_and_mapped_objects_are_looked_at_and_wakeups_obeyed() {
    let bench = Bench::new();
    let owner = bench.put("owner", &[]);
    let woken = Key::of(&serde_json::from_value::<ConfigMap>(bench.put("woken", &[])).unwrap());
    bench.put("mapped", &[]);
    let secrets: Api<PartialObjectMeta<Secret>> = Api::namespaced(bench.cluster.client(), "n");
    let (wake, wakeups) = tokio::sync::mpsc::unbounded_channel::<Key>();
    let wakeups =
        futures::stream::unfold(wakeups, |mut keys| async { keys.recv().await.map(|key| (key, keys)) });
    let running = bench.start(|controller| {
        controller
            .owns(secrets.clone(), watcher::Config::default())
            .watches(secrets, watcher::Config::default(), |secret, maps| {
                let named = |map: &DeserializeGuard<ConfigMap>| {
                    secret.name_any() == "for-mapped" && Key::of(map).name == "mapped"
                };
                maps.state_filter(named).iter().map(|map| Key::of(map.as_ref())).collect()
            })
            .wakes(wakeups)
    });
    for name in ["owner", "woken", "mapped"] {
        bench.until_looked(name, 1).await;
    }
    let reference =
        |uid: &Value| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}]);
    let owned = |name: &str, uid: &Value| json!({"metadata": {"name": name, "namespace": "n", "ownerReferences": reference(uid)}});
    bench.cluster.put(SECRETS, owned("owned", &owner["metadata"]["uid"]));
    bench.until_looked("owner", 2).await;
    bench.cluster.put(SECRETS, json!({"metadata": {"name": "for-mapped", "namespace": "n"}}));
    bench.until_looked("mapped", 2).await;
    wake.send(woken.clone()).unwrap();
    bench.until_looked("woken", 2).await;
    // Another object of the name is not the one that was meant.
    bench.cluster.put(SECRETS, owned("stale", &json!("another")));
    wake.send(Key { uid: "another".to_owned(), ..woken }).unwrap();
    sleep(Duration::from_mins(1)).await;
    assert_eq!((bench.looks("owner"), bench.looks("woken"), bench.looks("mapped")), (2, 2, 2));
    bench.end(running).await;
}

#[tokio::test(start_paused = true)]
async fn one_object_is_looked_at_once_at_a_time_and_so_many_together() {
    let bench = Bench::new();
    (0..6).for_each(|n| drop(bench.put(&format!("m{n}"), &["hold"])));
    let running = bench.start(|controller| controller.concurrency(NonZeroUsize::new(2).unwrap()));
    bench.until_looked("m1", 1).await;
    // Changed while it is looked at: looked at again, afterwards.
    bench.cluster.change(MAPS, "m0", |map| map["data"]["hold"] = json!("still"));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.looks("m0"), 1);
    let waiting = "workqueue_depth{controller=\"looker\",name=\"looker\"} ";
    let shown = || bench.around.metrics.text(&bench.around.readiness);
    assert!(shown().contains(&format!("{waiting}4")), "{}", shown());
    let active = "controller_runtime_active_workers{controller=\"looker\"} ";
    assert!(shown().contains(&format!("{active}2")), "{}", shown());
    bench.looker.gate.add_permits(7);
    bench.until_looked("m0", 2).await;
    bench.until_looked("m5", 1).await;
    sleep(Duration::from_secs(1)).await;
    assert_eq!(*bench.looker.most.lock().unwrap(), (0, 2));
    assert!(shown().contains(&format!("{waiting}0")) && shown().contains(&format!("{active}0")));
    for line in ["workqueue_adds_total", "workqueue_queue_duration_seconds_count"] {
        let counted = format!("{line}{{controller=\"looker\",name=\"looker\"}} 7");
        assert!(shown().contains(&counted), "{}", shown());
    }
    bench.end(running).await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_and_what_cannot_be_understood_disturb_no_other_and_are_told_in_events() {
    let bench = Bench::new();
    let logs = logs::capture();
    bench.put("bad", &["panic"]);
    let broken = json!({"metadata": {"name": "broken", "namespace": "n"}, "data": 7});
    bench.cluster.put(MAPS, broken);
    bench.put("good", &[]);
    let running = bench.start(|controller| controller);
    bench.until_looked("good", 1).await;
    bench.until_looked("bad", 4).await;
    bench.cluster.change(MAPS, "good", |map| map["data"] = json!({"x": ""}));
    bench.until_looked("good", 2).await;
    // What only a change of the object helps says nothing about the controller.
    let said = |aspect| bench.around.says.said("Controller", aspect).unwrap();
    assert!(said(Aspect::Degraded).message.starts_with("looks at 1 objects fail, for example: n/bad: "));
    assert_eq!(said(Aspect::Available).reason, "AsExpected");
    let events = bench.cluster.all(EVENTS);
    let notes: BTreeMap<_, _> = events
        .iter()
        .map(|event| (event["regarding"]["name"].as_str().unwrap(), event["note"].to_string()))
        .collect();
    assert_eq!(notes.keys().collect::<Vec<_>>(), [&"bad", &"broken"]);
    assert!(notes["bad"].contains("panicked: asked to"), "{notes:?}");
    assert!(notes["broken"].contains("cannot be understood"), "{notes:?}");
    bench.end(running).await;
    let logged = logs.take();
    let told: Vec<_> = logged.lines().filter(|line| line.contains("WARN")).collect();
    assert_eq!(told.len(), 2, "each told once: {told:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_one_event_that_counts_one_line_of_log_and_ever_longer_waits() {
    let bench = Bench::new();
    let logs = logs::capture();
    for _ in 0..9 {
        bench.cluster.refuse_once(Method::GET, ASKED, 403);
    }
    bench.put("a", &["ask"]);
    let (running, began) = (bench.start(|controller| controller), Instant::now());
    bench.until_looked("a", 10).await;
    // 0.5 + 1 + 2 + … + 64 + 120 s, half of each left to chance.
    let took = began.elapsed().as_secs();
    assert!((123..=248).contains(&took), "{took}");
    let events = bench.cluster.all(EVENTS);
    assert_eq!(events.len(), 1, "{events:#?}");
    assert_eq!((&events[0]["type"], &events[0]["reason"]), (&json!("Warning"), &json!("ReconcileFailed")));
    assert!(events[0]["series"]["count"].as_u64().unwrap() >= 5, "{events:#?}");
    let degraded = bench.around.says.said("Controller", Aspect::Degraded).unwrap();
    assert_eq!((degraded.reason.as_str(), degraded.message.as_str()), ("AsExpected", ""));
    assert_eq!(events[0]["regarding"]["name"], "a");
    bench.end(running).await;
    let logged = logs.take();
    assert_eq!(logged.lines().filter(|line| line.contains("WARN")).count(), 1, "{logged}");
}

#[tokio::test(start_paused = true)]
async fn a_deletion_is_heard_of_after_the_look_that_was_under_way() {
    let bench = Bench::new();
    let uid = bench.put("a", &["hold"])["metadata"]["uid"].as_str().unwrap().to_owned();
    let running = bench.start(|controller| controller);
    bench.until_looked("a", 1).await;
    bench.cluster.delete(MAPS, "a");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.gone(), Vec::<String>::new(), "it is being looked at");
    bench.looker.gate.add_permits(1);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(bench.gone(), [format!("n/a:{uid}")]);
    bench.end(running).await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_is_obeyed_before_the_first_list_and_during_a_look_that_does_not_end() {
    let bench = Bench::new();
    bench.cluster.hold(MAPS);
    let running = bench.start(|controller| controller);
    sleep(Duration::from_secs(1)).await;
    let stopping = Instant::now();
    bench.end(running).await;
    assert!(stopping.elapsed() < Duration::from_secs(1), "{:?}", stopping.elapsed());

    let bench = Bench::new();
    bench.put("a", &["hold"]);
    let running = bench.start(|controller| controller);
    bench.until_looked("a", 1).await;
    let stopping = Instant::now();
    bench.end(running).await;
    assert!(stopping.elapsed() <= Duration::from_secs(6), "{:?}", stopping.elapsed());
}
