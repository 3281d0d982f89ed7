//! The role of the keeper in `deploy/`: every verb of it is used, and none is missing.

use std::collections::BTreeSet;

use admit::controllers::kit::clock::Clock;
use admit::controllers::observability::Settings;
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use jiff::Timestamp;
use kube::api::DeleteParams;
use serde_json::json;

use super::place::{NAME, Place, asking_for_prometheus, at, with_hub};
use super::{HUB, Running, SPOKE, addon};
use crate::support::shipped::documents;

/// Verb, group and resource of each rule, but for those of the kit: events and the ClusterOperator.
fn granted() -> BTreeSet<(String, String, String)> {
    let of_role = |it: &&serde_json::Value| {
        it["kind"] == "ClusterRole" && it["metadata"]["name"] == "admit-observability"
    };
    let documents = documents("deploy/rbac.yaml");
    let role = documents.iter().find(of_role).unwrap();
    let mut granted = BTreeSet::new();
    let texts = |value: &serde_json::Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    for rule in role["rules"].as_array().unwrap() {
        for group in texts(&rule["apiGroups"]) {
            for resource in texts(&rule["resources"]) {
                for verb in texts(&rule["verbs"]) {
                    granted.insert((verb, group.clone(), resource.clone()));
                }
            }
        }
    }
    granted.retain(|(_, group, _)| group != "events.k8s.io" && group != "config.openshift.io");
    granted
}

#[tokio::test]
async fn every_verb_of_the_role_is_used_and_none_is_missing() {
    let place = Place::new().await;
    let shown = place.display().await;
    let account = place.account();
    let settings = Settings { hub: with_hub().hub, ..asking_for_prometheus() };
    let keeper = Running::start(account.client.clone(), settings.clone());
    place.create(&addon(HUB)).await;
    place.until(SPOKE, |_| true).await;
    place.patch(HUB, json!({"spec": {"interval": 90}})).await;
    place.until(SPOKE, |it| it.spec.others.get("interval") == Some(&json!(90))).await;
    place.report(SEED.collector, Meaning::UpdateFailure).await;
    place.until_told(HUB, "Degraded/UpdateFailure").await;
    let is_shown = |object: Option<&kube::api::DynamicObject>| {
        object.is_some_and(|object| object.data["status"].to_string().contains("Degraded"))
    };
    let waiting = kube::runtime::wait::await_condition(shown, "observability-controller", is_shown);
    tokio::time::timeout(crate::support::cluster::PATIENCE, waiting).await.unwrap().unwrap();
    place.addons(HUB).delete(NAME, &DeleteParams::default()).await.unwrap();
    place.until_gone(HUB).await;
    keeper.end().await;

    // As a hub whose cluster does not answer.
    place
        .create(&serde_json::json!({
            "apiVersion": "observability.open-cluster-management.io/v1beta1", "kind": "ObservabilityAddon",
            "metadata": {"name": NAME, "namespace": HUB,
                "finalizers": ["observability.open-cluster-management.io/addon-cleanup"]},
            "spec": {},
        }))
        .await;
    place.addons(HUB).delete(NAME, &DeleteParams::default()).await.unwrap();
    let later = Clock::new(|| Timestamp::now() + std::time::Duration::from_secs(61));
    let hub = Running::start(account.client.clone(), at(later, Settings::new(&SEED)));
    place.until_gone(HUB).await;
    hub.end().await;

    let used: BTreeSet<_> = account.wire.asked().into_iter().map(|(v, g, r)| (v.to_owned(), g, r)).collect();
    let used: BTreeSet<_> = used.into_iter().filter(|(_, group, _)| group != "events.k8s.io").collect();
    assert_eq!(used, granted());
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}
