//! What becomes of trouble with the hub, which breaks on request.

use admit::controllers::observability::Settings;
use admit::controllers::observability::hub::HubSettings;
use admit::controllers::observability::report::{Outcome, Report, Reporter};
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use http::Method;
use serde_json::json;

use super::{HUB, Running, SPOKE, addon, told};
use crate::support::cluster::FakeCluster;

const NAME: &str = "observability-addon";
const RECONNECTED: &str = "observability_addon_hub_replication_total{result=\"reconnected\"}";
const UNCHANGED: &str = "observability_addon_hub_replication_total{result=\"unchanged\"}";
/// Told on the hub's object, where who asked for the add-on looks.
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/cluster1/events";

pub(super) fn addons(namespace: &str) -> String {
    format!(
        "/apis/observability.open-cluster-management.io/v1beta1/namespaces/{namespace}/observabilityaddons"
    )
}

/// Of all namespaces, as a hub watches them.
pub(super) const ALL: &str = "/apis/observability.open-cluster-management.io/v1beta1/observabilityaddons";

fn status_of(namespace: &str) -> String {
    format!("{}/{NAME}/status", addons(namespace))
}

/// A spoke where a collector forwards, and nothing was aggregated yet.
pub(super) fn spoke() -> FakeCluster {
    let cluster = FakeCluster::new(&[&addons(SPOKE), ALL]);
    let mut object = addon(SPOKE);
    object["status"] = json!({"conditions": [{
        "type": "MetricsCollectorStatus", "status": "True", "reason": "ForwardSuccessful", "message": "sent",
        "lastTransitionTime": "2026-11-21T10:00:00Z",
    }]});
    cluster.put(&addons(SPOKE), object);
    cluster
}

pub(super) fn hub() -> FakeCluster {
    let cluster = FakeCluster::new(&[&addons(HUB), EVENTS]);
    cluster.put(&addons(HUB), addon(HUB));
    cluster
}

/// A hub of its own, reached by a kubeconfig.
pub(super) async fn settings(hub: &FakeCluster, folder: &std::path::Path) -> Settings {
    let kubeconfig = folder.join("hub.kubeconfig");
    std::fs::write(&kubeconfig, hub.serve().await).unwrap();
    let hub = HubSettings { namespace: HUB.to_owned(), kubeconfig: Some(kubeconfig) };
    Settings { hub: Some(hub), ..Settings::new(&SEED) }
}

pub(super) fn says_available(object: &serde_json::Value) -> bool {
    told(object) == ["Available/ForwardSuccessful"]
}

#[tokio::test]
async fn ob_07_10_a_conflict_on_either_side_is_met_by_reading_again() {
    let (spoke, hub, folder) = (spoke(), hub(), tempfile::tempdir().unwrap());
    spoke.refuse_once(Method::PUT, &status_of(SPOKE), 409);
    hub.refuse_once(Method::PUT, &status_of(HUB), 409);
    let keeper = Running::start(spoke.client(), settings(&hub, folder.path()).await);
    hub.until(&addons(HUB), NAME, says_available).await;
    keeper.end().await;
    let one = |namespace: &str| format!("{}/{NAME}", addons(namespace));
    for (cluster, namespace) in [(&spoke, SPOKE), (&hub, HUB)] {
        assert_eq!(cluster.count(&Method::PUT, &status_of(namespace)), 2, "{namespace}");
        assert!(cluster.count(&Method::GET, &one(namespace)) >= 2, "{namespace}: not read again");
    }

    // The same of a component that reports.
    let (cluster, path) = (self::spoke(), status_of(SPOKE));
    cluster.refuse_once(Method::PUT, &path, 409);
    let report = Report::of(&SEED, SEED.collector, Meaning::ForwardFailure, "no route").unwrap();
    let outcome = Reporter::new(cluster.client(), &SEED).report(&report).await.unwrap();
    assert_eq!((outcome, cluster.count(&Method::PUT, &path)), (Outcome::Written, 2));
    assert_eq!(cluster.count(&Method::GET, &one(SPOKE)), 2);
}

#[tokio::test]
async fn ob_07_11_what_passes_is_tried_again() {
    for code in [409, 429, 503] {
        let (spoke, hub, folder) = (spoke(), hub(), tempfile::tempdir().unwrap());
        hub.refuse_once(Method::PUT, &status_of(HUB), code);
        let keeper = Running::start(spoke.client(), settings(&hub, folder.path()).await);
        hub.until(&addons(HUB), NAME, says_available).await;
        keeper.end().await;
        assert_eq!(hub.count(&Method::PUT, &status_of(HUB)), 2, "{code}");
    }
}

#[tokio::test]
async fn ob_07_12_credentials_that_are_refused_once_are_read_again_once() {
    let (spoke, hub, folder) = (spoke(), hub(), tempfile::tempdir().unwrap());
    hub.refuse_once(Method::PUT, &status_of(HUB), 401);
    let keeper = Running::start(spoke.client(), settings(&hub, folder.path()).await);
    hub.until(&addons(HUB), NAME, says_available).await;
    assert!(keeper.counted(RECONNECTED).is_some_and(|count| count > 0));
    keeper.end().await;
    // A list and a watch for each of two connections.
    assert!(hub.count(&Method::GET, &addons(HUB)) <= 4);
    assert_eq!(hub.count(&Method::PUT, &status_of(HUB)), 2);
}

/// Whoever wrote it, and though there is nothing to mend: what was told before belongs to the status as well.
#[tokio::test]
async fn what_others_make_of_the_aggregate_reaches_the_hub() {
    let (spoke, hub, folder) = (spoke(), hub(), tempfile::tempdir().unwrap());
    let keeper = Running::start(spoke.client(), settings(&hub, folder.path()).await);
    hub.until(&addons(HUB), NAME, says_available).await;
    let foreign = json!({"type": "Degraded", "status": "False", "reason": "UpdateFailure", "message": "of another time",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    spoke.change(&addons(SPOKE), NAME, |object| {
        object["status"]["conditions"].as_array_mut().unwrap().push(foreign);
    });
    let wanted = spoke.get(&addons(SPOKE), NAME)["status"].clone();
    hub.until(&addons(HUB), NAME, |object| object["status"] == wanted).await;
    keeper.end().await;
}

/// It said so before this keeper began.
#[tokio::test]
async fn ob_07_14_a_hub_that_says_the_same_is_not_written_to() {
    let (spoke, hub, folder) = (spoke(), hub(), tempfile::tempdir().unwrap());
    let first = Running::start(spoke.client(), settings(&hub, folder.path()).await);
    hub.until(&addons(HUB), NAME, says_available).await;
    first.end().await;
    let before = hub.get(&addons(HUB), NAME);
    let second = Running::start(spoke.client(), settings(&hub, folder.path()).await);
    second.until_counted(UNCHANGED, |looks| looks >= 1).await;
    second.end().await;
    assert_eq!(hub.get(&addons(HUB), NAME), before);
    assert_eq!(hub.count(&Method::PUT, &status_of(HUB)), 1);
}

#[tokio::test]
async fn ob_07_13_what_does_not_pass_waits_for_the_next_change() {
    let (spoke, hub, folder) = (spoke(), hub(), tempfile::tempdir().unwrap());
    hub.refuse_once(Method::PUT, &status_of(HUB), 400);
    let keeper = Running::start(spoke.client(), settings(&hub, folder.path()).await);
    // Told as an event on the add-on, and only then changed.
    hub.until_found(|| hub.all(EVENTS).first().cloned()).await.unwrap();
    assert_eq!(hub.count(&Method::PUT, &status_of(HUB)), 1);
    spoke.change(&addons(SPOKE), NAME, |object| {
        object["status"]["conditions"][0]["message"] = json!("No metrics to send");
    });
    hub.until(&addons(HUB), NAME, says_available).await;
    assert_eq!(hub.count(&Method::PUT, &status_of(HUB)), 2);
    keeper.end().await;
}

/// The hub moved, and its kubeconfig says where to.
#[tokio::test]
async fn a_kubeconfig_that_changed_is_used() {
    let (spoke, old, new, folder) = (spoke(), hub(), hub(), tempfile::tempdir().unwrap());
    let settings = settings(&old, folder.path()).await;
    let keeper = Running::start(spoke.client(), settings);
    old.until(&addons(HUB), NAME, says_available).await;
    std::fs::write(folder.path().join("hub.kubeconfig"), new.serve().await).unwrap();
    new.until(&addons(HUB), NAME, says_available).await;
    keeper.end().await;
}
