//! What comes round, on a clock that the test moves: gatherings that nobody asks for, and the end of old ones.

use std::time::Duration;

use admit::controllers::datagather::{JobSettings, RunnerKind, Settings, TokenSettings, UploadSettings};
use admit::controllers::kit::clock::Clock;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::runs::Bench;
use crate::support::cluster::{DATAGATHERS, FakeCluster};

const CONFIGURATIONS: &str = "/apis/config.openshift.io/v1/insightsdatagathers";
const CONFIGURATION: &str = "/apis/config.openshift.io/v1/insightsdatagathers/cluster";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const JOBS: &str = "/apis/batch/v1/namespaces/openshift-insights/jobs";
const HOUR: Duration = Duration::from_hours(1);
const EVERY: Duration = Duration::from_hours(2);

/// A clock that starts at noon and goes with tokio's, which is paused.
fn clock() -> Clock {
    let (noon, start) = ("2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap(), Instant::now());
    Clock::new(move || noon + start.elapsed())
}

/// Lets time pass, which a paused clock does whenever nothing else is to be done: so all that was due before has been done.
async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

struct Place {
    bench: Bench,
    clock: Clock,
}

impl Place {
    fn new() -> Self {
        let clock = clock();
        let cluster = FakeCluster::new(&[CONFIGURATIONS, DEFINITIONS, JOBS]).with_clock(clock.clone());
        let place = Self { bench: Bench { cluster, ..Bench::new() }, clock };
        place.define("True");
        place
    }

    /// The definition of the InsightsDataGather, as the cluster has it.
    fn define(&self, established: &str) {
        let versions =
            ["v1alpha2", "v1"].map(|name| json!({"name": name, "served": true, "storage": name == "v1"}));
        self.bench.cluster.put(
            DEFINITIONS,
            json!({
                "metadata": {"name": "insightsdatagathers.config.openshift.io"},
                "spec": {"group": "config.openshift.io", "scope": "Cluster", "versions": versions,
                    "names": {"kind": "InsightsDataGather", "plural": "insightsdatagathers"}},
                "status": {"conditions": [{"type": "Established", "status": established}]},
            }),
        );
    }

    fn settings(&self) -> Settings {
        Settings { gather_every: Some(EVERY), clock: self.clock.clone(), ..self.bench.settings() }
    }

    fn configure(&self, gather_config: &Value) {
        let spec = json!({"gatherConfig": gather_config});
        self.bench.cluster.put(CONFIGURATIONS, json!({"metadata": {"name": "cluster"}, "spec": spec}));
    }

    /// Puts an object that is so old.
    fn put_aged(&self, collection: &str, name: &str, hours: i64, labels: &Value) {
        let created = self.clock.now() - jiff::SignedDuration::from_hours(hours);
        let created = created.strftime("%FT%TZ").to_string();
        let object = json!({
            "metadata": {"name": name, "creationTimestamp": created, "labels": labels},
            "spec": {}, "status": {"dataGatherState": "Completed"},
        });
        self.bench.cluster.put(collection, object);
    }

    fn periodic(&self) -> Vec<Value> {
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        let all = self.bench.cluster.all(DATAGATHERS).into_iter();
        all.filter(|object| name(object).starts_with("periodic-gathering-")).collect()
    }

    /// Waits until there are so many periodic gatherings and all have ended.
    async fn until_ended(&self, count: usize) -> Vec<Value> {
        let ended = |object: &Value| object["status"]["dataGatherState"] == "Completed";
        let look = || {
            let found = self.periodic();
            assert!(found.len() <= count, "{} instead of {count}", found.len());
            (found.len() == count && found.iter().all(ended)).then_some(found)
        };
        let found = self.bench.cluster.until_found(look).await;
        found.unwrap_or_else(|| panic!("not {count} that have ended: {:#?}", self.periodic()))
    }

    /// How often the configuration was read.
    fn looks(&self) -> usize {
        self.bench.cluster.count(&Method::GET, CONFIGURATION)
    }

    async fn until_looks(&self, count: usize) {
        self.bench.cluster.until_asked(&Method::GET, CONFIGURATION, count).await;
    }

    /// Goes through the controller from end to end; what it had to do at once has been done by then.
    async fn settle(&self, name: &str) {
        self.bench.ask(name, &json!({}));
        self.bench.until_state(name, "Completed").await;
    }

    fn names(&self, collection: &str) -> Vec<String> {
        let all = self.bench.cluster.all(collection);
        all.iter().map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test(start_paused = true)]
async fn a_gathering_comes_round_and_neither_restarts_nor_leaders_bring_it_early() {
    let place = Place::new();
    place.configure(&json!({
        "dataPolicy": ["ObfuscateNetworking"],
        "gatherers": {"mode": "Custom", "custom": {"configs": [{"name": "clusterconfig/crds", "state": "Disabled"}]}},
    }));
    let controller = place.bench.start_with(place.settings());
    let first = place.until_ended(1).await;
    assert_eq!(
        first[0]["spec"],
        json!({"dataPolicy": "ObfuscateNetworking", "gatherersConfig": [{"name": "clusterconfig/crds", "state": "Disabled"}]})
    );
    for count in 2..=4 {
        pass(EVERY).await;
        place.until_ended(count).await;
    }
    pass(EVERY - Duration::from_mins(1)).await;
    place.settle("between").await;
    controller.stop().await;
    let next = place.bench.start_with(place.settings());
    place.settle("after-a-restart").await;
    assert_eq!(place.periodic().len(), 4);
    pass(Duration::from_mins(1)).await;
    place.until_ended(5).await;
    next.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_the_option_there_is_none_and_those_of_others_are_left_alone() {
    let place = Place::new();
    let controller = place.bench.start_with(Settings { gather_every: None, ..place.settings() });
    place.bench.ask("periodic-gathering-other", &json!({}));
    place.settle("first").await;
    pass(10 * EVERY).await;
    place.settle("second").await;
    assert_eq!(place.periodic().len(), 1);
    assert_eq!(place.periodic()[0]["status"], Value::Null);
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_configuration_switches_it_off_and_on() {
    let place = Place::new();
    let off = [
        json!({"gatherers": {"mode": "None"}}),
        // What is not understood, or cannot be done, might have forbidden it.
        json!({"gatherers": {"mode": "Sometimes"}}),
        json!({"dataPolicy": ["WorkloadNames"]}),
    ];
    place.configure(&off[0]);
    let controller = place.bench.start_with(place.settings());
    for (number, configuration) in off.iter().enumerate() {
        place.configure(configuration);
        let looks = place.looks();
        pass(EVERY).await;
        place.until_looks(looks + 1).await;
        place.settle(&format!("first-{number}")).await;
        assert_eq!(place.periodic().len(), 0, "{configuration}");
    }
    let before = Instant::now();
    place.configure(&json!({"gatherers": {"mode": "All"}}));
    place.until_ended(1).await;
    assert!(before.elapsed() < Duration::from_mins(1), "it was found out {:?} later", before.elapsed());
    controller.stop().await;
}

/// What can be watched is: nobody asks whether it has changed.
#[tokio::test(start_paused = true)]
async fn a_configuration_that_stays_is_read_no_more() {
    let place = Place::new();
    place.configure(&json!({"gatherers": {"mode": "None"}}));
    let controller = place.bench.start_with(place.settings());
    place.until_looks(1).await;
    place.settle("first").await;
    pass(HOUR).await;
    let looks = place.looks();
    pass(24 * HOUR).await;
    place.settle("second").await;
    assert_eq!(place.looks(), looks, "nothing has changed");
    controller.stop().await;
}

/// A definition that comes later, and one that goes for a while.
#[tokio::test(start_paused = true)]
async fn the_configuration_is_watched_from_when_it_is_served() {
    let place = Place::new();
    place.define("False");
    let controller = place.bench.start_with(place.settings());
    place.until_ended(1).await;
    place.configure(&json!({"gatherers": {"mode": "None"}}));
    place.define("True");
    pass(2 * EVERY).await;
    place.settle("first").await;
    assert_eq!(place.periodic().len(), 1);
    place.bench.cluster.delete(CONFIGURATIONS, "cluster");
    place.until_ended(2).await;
    controller.stop().await;
}

/// The interval, and what is hidden, follow the ConfigMap without a restart; values that make no sense do not count.
#[tokio::test(start_paused = true)]
async fn the_clusters_configuration_counts_over_flags_and_is_read_anew() {
    const MAPS: &str = "/api/v1/namespaces/openshift-insights/configmaps";
    const SUPPORT: &str = "/api/v1/namespaces/openshift-config/secrets";
    let place = Place::new();
    let cluster = FakeCluster::new(&[MAPS, SUPPORT, DEFINITIONS, JOBS]).with_clock(place.clock.clone());
    let place = Place { bench: Bench { cluster, ..Bench::new() }, ..place };
    let say = |text: &str| {
        let map = json!({"metadata": {"name": "insights-config"}, "data": {"config.yaml": text}});
        place.bench.cluster.put(MAPS, map);
    };
    let interval = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, "30m");
    let secret = json!({"metadata": {"name": "support"}, "data": {"interval": interval}});
    place.bench.cluster.put(SUPPORT, secret);
    say("dataReporting: {interval: 4h, obfuscation: [networking]}");
    let controller = place.bench.start_with(place.settings());
    place.settle("first").await;
    pass(EVERY - Duration::from_mins(1)).await;
    place.settle("second").await;
    assert_eq!(place.periodic().len(), 0, "the cluster is not as old as what the ConfigMap says");
    pass(Duration::from_mins(11)).await;
    let found = place.until_ended(1).await;
    let status = &found[0]["status"];
    assert_eq!(
        super::runs::condition(status, "DataRecorded"),
        "True/NamesUnknown",
        "it asked for obfuscation"
    );
    // Nobody counts: then the Secret does.
    say("dataReporting: {interval: 1m}");
    pass(Duration::from_mins(31)).await;
    place.until_ended(2).await;
    // Either is noticed at once.
    let before = Instant::now();
    pass(Duration::from_mins(11)).await;
    say("dataReporting: {interval: 10m}");
    place.until_ended(3).await;
    assert!(before.elapsed() < Duration::from_mins(12), "{:?}", before.elapsed());
    say("{}");
    place.bench.cluster.change(SUPPORT, "support", |secret| secret["data"] = json!({"interval": "MTFt"}));
    pass(Duration::from_mins(12)).await;
    place.until_ended(4).await;
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn none_is_begun_beside_one_under_way_or_without_a_token() {
    let place = Place::new();
    let first = format!("{DATAGATHERS}/periodic-gathering-2");
    // No write of its status is answered, so that it does not come on.
    place.bench.cluster.hold(&format!("{first}/status"));
    let controller = place.bench.start_with(place.settings());
    pass(EVERY).await;
    place.bench.cluster.until_asked(&Method::GET, &first, 1).await;
    pass(3 * EVERY).await;
    assert_eq!(place.periodic().len(), 1);
    assert_eq!(place.bench.cluster.count(&Method::GET, &first), 1, "its end is told");
    place.bench.cluster.release(&format!("{first}/status"));
    // The next one is long due.
    place.until_ended(2).await;
    controller.stop().await;

    let token = place.bench.dir.path().join("token");
    std::fs::write(&token, "").unwrap();
    let upload = UploadSettings::new("https://127.0.0.1:1", TokenSettings::File(token));
    let controller = place.bench.start_with(Settings { upload: Some(upload), ..place.settings() });
    let looks = place.looks();
    pass(EVERY).await;
    place.until_looks(looks + 1).await;
    pass(Duration::from_mins(1)).await;
    place.until_looks(looks + 2).await;
    assert_eq!(place.periodic().len(), 2);
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dg_07_old_gatherings_and_their_jobs_go() {
    let place = Place::new();
    let (ours, others) = (json!({"insights-gathering": ""}), json!({}));
    for (name, hours) in [("old", 25), ("young", 23)] {
        place.put_aged(DATAGATHERS, name, hours, &others);
        place.put_aged(JOBS, name, hours, &ours);
    }
    place.put_aged(JOBS, "strange", 100, &others);
    let job = JobSettings::new("admit");
    let settings = Settings {
        gather_every: None,
        prune_after: Some(24 * HOUR),
        runner: RunnerKind::Job(job),
        ..place.settings()
    };
    // One that cannot be deleted keeps no other, and is tried again.
    place.bench.cluster.refuse_once(Method::DELETE, &format!("{DATAGATHERS}/old"), 500);
    let controller = place.bench.start_with(settings);
    place.bench.cluster.until(JOBS, "old", Value::is_null).await;
    assert_eq!(place.names(DATAGATHERS), ["old", "young"]);
    pass(HOUR).await;
    place.bench.cluster.until(DATAGATHERS, "old", Value::is_null).await;
    assert_eq!(
        (place.names(DATAGATHERS), place.names(JOBS)),
        (vec!["young".to_owned()], vec!["strange".to_owned(), "young".to_owned()])
    );
    pass(HOUR).await;
    place.bench.cluster.until(JOBS, "young", Value::is_null).await;
    assert_eq!((place.names(DATAGATHERS).len(), place.names(JOBS)), (0, vec!["strange".to_owned()]));
    controller.stop().await;
}
