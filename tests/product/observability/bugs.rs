//! What went wrong in other implementations (OB §8), a test for each. That of a stale hub object, of credentials and of broken
//! connections are in `faults`, that of waits in the controller's own tests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use admit::controllers::observability::Settings;
use admit::controllers::observability::aggregate::aggregated;
use admit::controllers::observability::report::{Outcome, Report, Reporter};
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use admit_apiserver::Identity;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use http::Method;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Client;

use super::hub::{ALL, addons, hub, says_available, settings, spoke};
use super::place::{NAME, Place};
use super::{Running, SPOKE, addon};
use crate::support::cluster::FakeCluster;

/// The keeper's own read, and that of the link to the hub.
#[tokio::test]
async fn ob_08_02_what_cannot_be_read_on_the_spoke_is_an_error_and_tried_again() {
    let (cluster, path) = (spoke(), format!("{}/{NAME}", addons(SPOKE)));
    cluster.refuse_once(Method::GET, &path, 500);
    let keeper = Running::start(cluster.client(), Settings::new(&SEED));
    let failed = "controller_runtime_reconcile_total{controller=\"observability\",result=\"error\"}";
    keeper.until_counted(failed, |count| count >= 1).await;
    cluster.until(&addons(SPOKE), NAME, says_available).await;
    keeper.end().await;

    let (bare, hub, folder) = (FakeCluster::new(&[&addons(SPOKE), ALL]), hub(), tempfile::tempdir().unwrap());
    bare.refuse_once(Method::GET, &path, 500);
    let keeper = Running::start(bare.client(), settings(&hub, folder.path()).await);
    let failed = "observability_addon_hub_replication_total{result=\"spoke_error\"}";
    keeper.until_counted(failed, |count| count >= 1).await;
    bare.until(&addons(SPOKE), NAME, |it| it["metadata"]["name"] == NAME).await;
    keeper.end().await;
}

fn condition(type_: &str, reason: &str, status: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: "m".to_owned(),
        observed_generation: None,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// All orders of `items`, by Heap's algorithm.
fn orders<T>(items: &mut [T], length: usize, visit: &mut impl FnMut(&[T])) {
    if length <= 1 {
        return visit(items);
    }
    for at in 0..length {
        orders(items, length - 1, visit);
        items.swap(if length.is_multiple_of(2) { at } else { 0 }, length - 1);
    }
}

/// Whatever the order, with several standard conditions that are True as well.
#[test]
fn ob_08_04_the_order_of_conditions_changes_nothing() {
    let mut conditions = vec![
        condition(SEED.collector, "UpdateFailure", "True"),
        condition(SEED.workloads_collector, "ForwardFailure", "True"),
        condition("Available", "ForwardSuccessful", "True"),
        condition("Degraded", "UpdateFailure", "False"),
        condition("Progressing", "UpdateSuccesful", "True"),
        condition("SomebodyElses", "Other", "True"),
    ];
    let (length, mut seen) = (conditions.len(), 0);
    orders(&mut conditions, length, &mut |conditions| {
        seen += 1;
        let now = Timestamp::from_second(9).unwrap();
        let mended = aggregated(conditions, &SEED, now).unwrap();
        let told: Vec<_> = mended.iter().filter(|it| SEED.is_standard(it) && it.status == "True").collect();
        assert_eq!(told.len(), 1, "{conditions:#?}");
        assert_eq!((told[0].type_.as_str(), told[0].reason.as_str()), ("Degraded", "ForwardFailure"));
        assert_eq!(told[0].message, "UwlMetricsCollectorStatus: m");
        let order = |all: &[Condition]| all.iter().map(|it| it.type_.clone()).collect::<Vec<_>>();
        assert_eq!(order(&mended), order(conditions), "in their places");
        assert_eq!(aggregated(&mended, &SEED, now), None, "again: {conditions:#?}");
    });
    assert_eq!(seen, 720);
}

#[tokio::test]
async fn ob_08_06_conditions_do_not_grow_in_number() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    let keeper = Running::start(place.account().client, Settings::new(&SEED));
    let turns = [
        (Meaning::NotSupported, "NotSupported/NotSupported"),
        (Meaning::Disabled, "Disabled/DisabledMetrics"),
        (Meaning::UpdateFailure, "Degraded/UpdateFailure"),
        (Meaning::UpdateSuccessful, "Progressing/UpdateSuccesful"),
        (Meaning::ForwardFailure, "Degraded/ForwardFailure"),
        (Meaning::ForwardSuccessful, "Available/ForwardSuccessful"),
    ];
    for (meaning, told) in turns.iter().cycle().take(30) {
        for component in [SEED.collector, SEED.workloads_collector] {
            assert_eq!(place.report(component, *meaning).await, Outcome::Written, "{meaning:?}");
        }
        let object = place.until_told(SPOKE, told).await;
        let mut types: Vec<_> = object.conditions().iter().map(|it| it.type_.as_str()).collect();
        let all = types.len();
        types.sort_unstable();
        types.dedup();
        assert_eq!(types.len(), all, "{types:?}");
        assert!(all <= SEED.standards.len() + 2, "{types:?}");
    }
    keeper.end().await;
}

/// The first attempt would have changed something; when it is made again, somebody has said the very same.
#[tokio::test]
async fn ob_08_07_whether_it_was_written_is_said_of_the_last_attempt() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    let report = Report::of(&SEED, SEED.collector, Meaning::ForwardSuccessful, "sent").unwrap();
    let (other, first) = (Reporter::new(place.account().client, &SEED), Arc::new(AtomicBool::new(true)));
    let said = report.clone();
    let ahead = from_fn(move |request: Request<Body>, next: Next| {
        let (other, said, first) = (other.clone(), said.clone(), Arc::clone(&first));
        async move {
            if *request.method() == Method::PUT && first.swap(false, Ordering::SeqCst) {
                assert_eq!(other.report(&said).await.unwrap(), Outcome::Written);
            }
            next.run(request).await
        }
    });
    let groups = ["system:serviceaccounts", "system:authenticated"].map(ToOwned::to_owned);
    let account = Identity::new("system:serviceaccount:admit-system:admit-observability", groups);
    let client = Client::new(place.cluster.router_as(account).layer(ahead), "default");
    assert_eq!(Reporter::new(client, &SEED).report(&report).await.unwrap(), Outcome::Same);
    let there = place.addons(SPOKE).get(NAME).await.unwrap();
    assert_eq!(there.conditions().len(), 1);
}
