//! Behaviours of the keeper (OB §7) that need nothing but an add-on and its components, under the shipped policies and roles.

use std::time::Duration;

use admit::controllers::observability::Settings;
use admit::controllers::observability::crd::ObservabilityAddon;
use admit::controllers::observability::report::{Outcome, Report, Reporter};
use admit::controllers::observability::vocabulary::Meaning::{
    self, ForwardFailure, ForwardSuccessful, UpdateSuccessful,
};
use admit::controllers::observability::vocabulary::SEED;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::place::{NAME, Place};
use super::{Running, SPOKE, addon};
use crate::support::testcluster::Process;

const LOOKED: &str = "controller_runtime_reconcile_total{controller=\"observability\",result=\"success\"}";
/// How often an add-on is looked at although nothing changed.
const RESYNC: Duration = Duration::from_mins(5);

struct Bench {
    place: Place,
    account: Process,
    keeper: Running,
}

impl Bench {
    /// A keeper, and an add-on that says nothing yet.
    async fn new() -> Self {
        let place = Place::new().await;
        place.create(&addon(SPOKE)).await;
        Self::on(place)
    }

    fn on(place: Place) -> Self {
        let account = place.account();
        let keeper = Running::start(account.client.clone(), Settings::new(&SEED));
        Self { place, account, keeper }
    }

    async fn report(&self, component: &'static str, meaning: Meaning, message: &str) -> Outcome {
        let report = Report::of(&SEED, component, meaning, message).unwrap();
        Reporter::new(self.place.account().client, &SEED).report(&report).await.unwrap()
    }

    /// Waits for a look, and for the one that the next five minutes bring.
    async fn looks_again(&self) {
        self.keeper.until_counted(LOOKED, |looks| looks >= 1).await;
        let before = self.keeper.counted(LOOKED).unwrap();
        tokio::time::pause();
        tokio::time::advance(RESYNC + Duration::from_secs(1)).await;
        tokio::time::resume();
        self.keeper.until_counted(LOOKED, |looks| looks > before).await;
    }

    async fn end(self) {
        self.keeper.end().await;
        assert_eq!(self.account.wire.denied(), Vec::<String>::new());
    }
}

fn of<'c>(object: &'c ObservabilityAddon, type_: &str) -> &'c Condition {
    object.conditions().iter().find(|it| it.type_ == type_).unwrap()
}

#[tokio::test]
async fn ob_07_01_nothing_is_written_where_nothing_is_said_and_it_is_looked_at_every_five_minutes() {
    let bench = Bench::new().await;
    bench.looks_again().await;
    assert_eq!(bench.account.wire.writes(), Vec::<String>::new());
    bench.end().await;
}

#[tokio::test]
async fn ob_07_02_what_stands_without_a_component_is_left() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    let available = json!({"type": "Available", "status": "True", "reason": "ForwardSuccessful",
        "message": "of another", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = Patch::Merge(json!({"status": {"conditions": [available]}}));
    let before = place.addons(SPOKE).patch_status(NAME, &PatchParams::default(), &patch).await.unwrap();
    let bench = Bench::on(place);
    bench.looks_again().await;
    assert_eq!(bench.place.addons(SPOKE).get(NAME).await.unwrap(), before);
    bench.end().await;
}

#[tokio::test]
async fn ob_07_03_a_collector_that_forwards_makes_it_available() {
    let bench = Bench::new().await;
    bench.report(SEED.collector, ForwardSuccessful, "Cluster metrics sent successfully").await;
    let object = bench.place.until_told(SPOKE, "Available/ForwardSuccessful").await;
    assert_eq!(of(&object, "Available").message, "observability-controller add-on is available.");
    bench.end().await;
}

#[tokio::test]
async fn ob_07_04_workloads_whose_metrics_fail_make_it_degraded() {
    let bench = Bench::new().await;
    bench.report(SEED.collector, ForwardSuccessful, "sent").await;
    bench.report(SEED.workloads_collector, ForwardFailure, "Metrics failed").await;
    let object = bench.place.until_told(SPOKE, "Degraded/ForwardFailure").await;
    assert_eq!(of(&object, "Degraded").message, "UwlMetricsCollectorStatus: Metrics failed");
    bench.end().await;
}

#[tokio::test]
async fn ob_07_05_a_failure_makes_available_false_with_its_time_kept() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    let condition = |type_: &str, message: &str| {
        json!({"type": type_, "status": "True", "reason": "ForwardSuccessful", "message": message,
            "lastTransitionTime": "2020-01-01T00:00:00Z"})
    };
    let told = [
        condition(SEED.collector, "sent"),
        condition("Available", "observability-controller add-on is available."),
    ];
    let patch = Patch::Merge(json!({"status": {"conditions": told}}));
    place.addons(SPOKE).patch_status(NAME, &PatchParams::default(), &patch).await.unwrap();
    let bench = Bench::on(place);
    bench.report(SEED.collector, ForwardFailure, "no route").await;
    let object = bench.place.until_told(SPOKE, "Degraded/ForwardFailure").await;
    let available = of(&object, "Available");
    assert_eq!((available.status.as_str(), available.reason.as_str()), ("False", "ForwardSuccessful"));
    assert_eq!(available.last_transition_time.0.to_string(), "2020-01-01T00:00:00Z");
    assert!(of(&object, "Degraded").last_transition_time > available.last_transition_time);
    bench.end().await;
}

#[tokio::test]
async fn ob_07_07_an_update_makes_it_progressing() {
    let bench = Bench::new().await;
    bench.report(SEED.collector, UpdateSuccessful, "Metrics collector updated").await;
    let object = bench.place.until_told(SPOKE, "Progressing/UpdateSuccesful").await;
    assert_eq!(of(&object, "Progressing").message, "observability-controller add-on is progressing.");
    bench.end().await;
}

#[tokio::test]
async fn ob_07_09_the_same_words_again_are_not_written_and_said_to_be_the_same() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    let account = place.account();
    let reporter = Reporter::new(account.client.clone(), &SEED);
    let report = async |message: &str| {
        let report = Report::of(&SEED, SEED.collector, ForwardSuccessful, message).unwrap();
        reporter.report(&report).await.unwrap()
    };
    assert_eq!(report("sent").await, Outcome::Written);
    let before = place.addons(SPOKE).get(NAME).await.unwrap();
    assert_eq!(report("sent").await, Outcome::Same);
    assert_eq!(place.addons(SPOKE).get(NAME).await.unwrap(), before);
    assert_eq!(account.wire.writes().len(), 1);
    // Other words of the same are news, and no transition.
    assert_eq!(report("No metrics to send").await, Outcome::Written);
    let after = place.addons(SPOKE).get(NAME).await.unwrap();
    let [before, after] = [&before, &after].map(|it| of(it, SEED.collector).last_transition_time.clone());
    assert_eq!(before, after);
}
