//! What is as it should be is looked at, and nothing is written.

use admit::controllers::observability::Settings;
use admit::controllers::observability::vocabulary::SEED;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::place::{NAME, Place, with_hub};
use super::{Running, SPOKE, addon};

/// Clusters of the hub.
const CLUSTERS: u64 = 60;

#[tokio::test]
async fn add_ons_that_are_told_already_are_looked_at_without_a_write() {
    let place = Place::new().await;
    let condition = |type_: &str, message: &str| {
        json!({"type": type_, "status": "True", "reason": "ForwardSuccessful", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let told = json!({"status": {"conditions": [
        condition(SEED.collector, "sent"),
        condition("Available", "observability-controller add-on is available."),
    ]}});
    let clusters = (1..=CLUSTERS).map(|number| format!("cluster{number}"));
    for namespace in clusters.chain([SPOKE.to_owned()]) {
        if !["cluster1", SPOKE].contains(&namespace.as_str()) {
            let made = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
            place.create(&made).await;
        }
        place.create(&addon(&namespace)).await;
        let told = Patch::Merge(&told);
        place.addons(&namespace).patch_status(NAME, &PatchParams::default(), &told).await.unwrap();
    }
    // Its own copy is held, once.
    let first = place.account();
    let keeper = Running::start(first.client.clone(), with_hub());
    let held = "observability.open-cluster-management.io/addon-cleanup";
    place.until("cluster1", |it| it.metadata.finalizers.iter().flatten().any(|it| it == held)).await;
    keeper.end().await;

    let account = place.account();
    let keeper =
        Running::start(account.client.clone(), Settings { hub: with_hub().hub, ..Settings::new(&SEED) });
    for (controller, count) in
        [("observability-hub", CLUSTERS), ("observability", 1), ("observability-replication", 1)]
    {
        let looked =
            format!("controller_runtime_reconcile_total{{controller=\"{controller}\",result=\"success\"}}");
        keeper.until_counted(&looked, |looks| looks >= count).await;
    }
    keeper.end().await;
    assert_eq!(account.wire.writes(), Vec::<String>::new());
}
