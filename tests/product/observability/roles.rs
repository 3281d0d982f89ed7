//! The role of the keeper in `deploy/`: every verb of it is used, and none is missing.

use std::time::Duration;

use admit::controllers::kit::clock::Clock;
use admit::controllers::kit::manager::Manager;
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use admit::controllers::observability::{Settings, member};
use jiff::Timestamp;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::place::{NAME, Place, asking_for_prometheus, at, with_hub};
use super::{HUB, SPOKE, addon};
use crate::support::cluster::PATIENCE;
use crate::support::refusing::refusing;
use crate::support::rights::exactly;
use crate::support::shipped::api;
use crate::support::testcluster::Process;

/// Denies the keeper what it says of add-ons that are not supported.
fn refused() -> [Value; 2] {
    let expression = "object.status.conditions.all(c, c.type != 'NotSupported')";
    refusing("observability.open-cluster-management.io", "observabilityaddons/status", "UPDATE", expression)
}

/// As a process runs it, with its ClusterOperator, while `play` is under way.
async fn run(account: &Process, settings: Settings, play: impl Future<Output = ()>) {
    let keeper = member(account.client.clone(), settings);
    let stop = CancellationToken::new();
    let running = tokio::spawn(Manager::new(account.client.clone(), None).with(keeper).run(stop.clone()));
    play.await;
    stop.cancel();
    timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
}

/// From the hub's wish over a status that is denied to its end.
async fn whole_life(place: &Place, account: &Process, shown: &Api<DynamicObject>) {
    place.create(&addon(HUB)).await;
    place.until(SPOKE, |_| true).await;
    place.report(SEED.collector, Meaning::NotSupported).await;
    // What fails twice is one event that counts.
    let counted = async {
        while !account.wire.asked().iter().any(|it| (it.verb, &*it.resource) == ("patch", "events")) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, counted).await.unwrap_or_else(|_| panic!("{:#?}", account.wire.asked()));
    let version = "admissionregistration.k8s.io/v1";
    let bindings = api(&place.cluster.admin, version, "ValidatingAdmissionPolicyBinding");
    bindings.delete("refusing", &DeleteParams::default()).await.unwrap();
    place.until_told(HUB, "NotSupported/NotSupported").await;
    place.patch(HUB, json!({"spec": {"interval": 90}})).await;
    place.until(SPOKE, |it| it.spec.others.get("interval") == Some(&json!(90))).await;
    place.report(SEED.collector, Meaning::UpdateFailure).await;
    place.until_told(HUB, "Degraded/UpdateFailure").await;
    let is_shown = |object: Option<&DynamicObject>| {
        object.is_some_and(|object| object.data["status"].to_string().contains("Degraded"))
    };
    let waiting = await_condition(shown.clone(), "observability-controller", is_shown);
    timeout(PATIENCE, waiting).await.unwrap().unwrap();
    let operators = place.cluster.objects("config.openshift.io", "v1", "ClusterOperator");
    place.cluster.until(&operators, "admit-observability", |it| it["status"]["conditions"].is_array()).await;
    place.addons(HUB).delete(NAME, &DeleteParams::default()).await.unwrap();
    place.until_gone(HUB).await;
}

#[tokio::test]
async fn every_verb_of_the_role_is_used_and_none_is_missing() {
    let place = Place::new().await;
    let shown = place.display().await;
    for document in refused() {
        place.create(&document).await;
    }
    let account = place.account();
    let settings = Settings { hub: with_hub().hub, ..asking_for_prometheus() };
    run(&account, settings, whole_life(&place, &account, &shown)).await;

    // As a hub whose cluster does not answer.
    place
        .create(&json!({
            "apiVersion": "observability.open-cluster-management.io/v1beta1", "kind": "ObservabilityAddon",
            "metadata": {"name": NAME, "namespace": HUB,
                "finalizers": ["observability.open-cluster-management.io/addon-cleanup"]},
            "spec": {},
        }))
        .await;
    place.addons(HUB).delete(NAME, &DeleteParams::default()).await.unwrap();
    let later = Clock::new(|| Timestamp::now() + Duration::from_secs(61));
    run(&account, at(later, Settings::new(&SEED)), place.until_gone(HUB)).await;
    exactly("admit-observability", &[&account]);
}
