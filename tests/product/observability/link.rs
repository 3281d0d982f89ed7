//! What the hub asks for and the spoke shows: spec down, status up, finalizer, ManagedClusterAddOn. Under the shipped policies, none of
//! which may deny a write of the keeper.

use admit::controllers::kit::clock::Clock;
use admit::controllers::observability::Settings;
use admit::controllers::observability::hub::HubSettings;
use admit::controllers::observability::vocabulary::{Meaning, SEED};
use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::place::{NAME, Place, at, with, with_hub};
use super::{HUB, Running, SPOKE, addon};
use crate::running::Workplace;
use crate::support::cluster::PATIENCE;

const FINALIZER: &str = "observability.open-cluster-management.io/addon-cleanup";
const SOURCE: &str = "observability.open-cluster-management.io/addon-source";

fn interval(object: &admit::controllers::observability::crd::ObservabilityAddon) -> Option<u64> {
    object.spec.others.get("interval").and_then(Value::as_u64)
}

#[tokio::test]
async fn ob_01_the_spec_of_the_hub_reaches_the_spoke_unless_that_overrides_it() {
    let place = Place::new().await;
    let account = place.account();
    let keeper = Running::start(account.client.clone(), with_hub());
    place.create(&with(HUB, |it| it["spec"]["interval"] = json!(60))).await;
    // Made as the hub asks for it.
    let made = place.until(SPOKE, |it| interval(it) == Some(60)).await;
    assert_eq!(made.annotations().get(SOURCE).map(String::as_str), Some("mco"));
    place.patch(HUB, json!({"spec": {"interval": 90, "enableMetrics": false}})).await;
    place.until(SPOKE, |it| interval(it) == Some(90) && it.spec.enable_metrics == Some(false)).await;
    // Somebody else's idea of it does not last.
    place.patch(SPOKE, json!({"spec": {"interval": 45}})).await;
    place.until(SPOKE, |it| interval(it) == Some(90)).await;

    place
        .patch(SPOKE, json!({"metadata": {"annotations": {SOURCE: "override"}}, "spec": {"interval": 30}}))
        .await;
    place.patch(HUB, json!({"spec": {"interval": 120, "enableMetrics": true}})).await;
    // What comes after that on the same way has come: the spec had its chance.
    place.report(SEED.collector, Meaning::UpdateFailure).await;
    place.until_told(HUB, "Degraded/UpdateFailure").await;
    let own = place.addons(SPOKE).get(NAME).await.unwrap();
    assert_eq!((interval(&own), own.spec.enable_metrics), (Some(30), Some(false)));
    keeper.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

#[tokio::test]
async fn ob_05_an_add_on_that_leaves_the_hub_leaves_the_spoke_first() {
    let place = Place::new().await;
    let account = place.account();
    let keeper = Running::start(account.client.clone(), with_hub());
    place.create(&addon(HUB)).await;
    place.until(SPOKE, |_| true).await;
    let held =
        |it: &admit::controllers::observability::crd::ObservabilityAddon| it.finalizers() == [FINALIZER];
    place.until(HUB, held).await;
    // Something of the spoke's holds it for a moment.
    place.patch(SPOKE, json!({"metadata": {"finalizers": ["example.dev/holds"]}})).await;
    place.addons(HUB).delete(NAME, &DeleteParams::default()).await.unwrap();
    place.until(SPOKE, |it| it.metadata.deletion_timestamp.is_some()).await;
    assert!(place.addons(HUB).get(NAME).await.unwrap().metadata.deletion_timestamp.is_some());
    place.patch(SPOKE, json!({"metadata": {"finalizers": null}})).await;
    place.until_gone(HUB).await;
    place.until_gone(SPOKE).await;

    // The spoke's own stays.
    place.create(&with(SPOKE, |it| it["metadata"]["annotations"] = json!({SOURCE: "override"}))).await;
    place.create(&addon(HUB)).await;
    place.until(HUB, held).await;
    place.addons(HUB).delete(NAME, &DeleteParams::default()).await.unwrap();
    place.until_gone(HUB).await;
    assert!(place.addons(SPOKE).get(NAME).await.unwrap().metadata.deletion_timestamp.is_none());
    keeper.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

#[tokio::test]
async fn ob_05_a_hub_does_not_wait_for_a_cluster_that_is_gone() {
    let place = Place::new().await;
    place
        .create(&with(HUB, |it| it["metadata"]["finalizers"] = json!([FINALIZER, "example.dev/other"])))
        .await;
    place.addons(HUB).delete(NAME, &DeleteParams::default()).await.unwrap();
    let account = place.account();
    // No link to a hub: this is the hub.
    let early = Running::start(account.client.clone(), super::Settings::new(&SEED));
    early
        .until_counted(
            "controller_runtime_reconcile_total{controller=\"observability-hub\",result=\"requeue_after\"}",
            |n| n > 0,
        )
        .await;
    assert_eq!(place.addons(HUB).get(NAME).await.unwrap().finalizers().len(), 2);
    early.end().await;
    let later = Clock::new(|| Timestamp::now() + std::time::Duration::from_secs(61));
    let late = Running::start(account.client.clone(), at(later, super::Settings::new(&SEED)));
    place.until(HUB, |it| it.finalizers() == ["example.dev/other"]).await;
    late.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

/// Of the three conditions those whose status differs, and nothing for the rest.
#[tokio::test]
async fn ob_05_the_hub_shows_the_add_on_where_add_ons_are_shown() {
    let place = Place::new().await;
    let shown = place.display().await;
    let foreign = json!({"type": "ManifestApplied", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let patch = Patch::Merge(json!({"status": {"conditions": [foreign], "namespace": "kept"}}));
    shown.patch_status("observability-controller", &PatchParams::default(), &patch).await.unwrap();
    for namespace in [SPOKE, HUB] {
        place.create(&addon(namespace)).await;
    }
    let account = place.account();
    let keeper = Running::start(account.client.clone(), with_hub());
    let says = |object: &DynamicObject, type_: &str| {
        let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.into_iter().find(|it| it["type"] == type_);
        found.map(|it| it["status"].as_str().unwrap_or_default().to_owned())
    };
    let until = async |available: &str, degraded: Option<&str>| {
        let so = |object: Option<&DynamicObject>| {
            object.is_some_and(|object| {
                says(object, "Available").as_deref() == Some(available)
                    && says(object, "Degraded").as_deref() == degraded
            })
        };
        let found = timeout(PATIENCE, await_condition(shown.clone(), "observability-controller", so)).await;
        found.unwrap_or_else(|_| panic!("never {available}, {degraded:?}")).unwrap().unwrap()
    };
    place.report(SEED.collector, Meaning::UpdateSuccessful).await;
    place.report(SEED.collector, Meaning::ForwardSuccessful).await;
    let well = until("True", None).await;
    assert_eq!(
        (says(&well, "ManifestApplied").as_deref(), &well.data["status"]["namespace"]),
        (Some("True"), &json!("kept"))
    );
    place.report(SEED.collector, Meaning::ForwardFailure).await;
    until("False", Some("True")).await;
    keeper.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

/// The spoke went through states that the hub never saw. From what the hub has to what is so now leads no edge of the table.
#[tokio::test]
async fn ob_06_a_copy_that_skips_states_is_not_denied() {
    let place = Place::new().await;
    for namespace in [SPOKE, HUB] {
        place.create(&addon(namespace)).await;
    }
    let account = place.account();
    let before = Running::start(account.client.clone(), with_hub());
    place.report(SEED.collector, Meaning::UpdateFailure).await;
    place.until_told(HUB, "Degraded/UpdateFailure").await;
    before.end().await;
    for meaning in [Meaning::UpdateSuccessful, Meaning::ForwardSuccessful] {
        place.report(SEED.collector, meaning).await;
    }
    let after = Running::start(account.client.clone(), with_hub());
    let spoke = place.until_told(SPOKE, "Available/ForwardSuccessful").await;
    let hub = place.until_told(HUB, "Available/ForwardSuccessful").await;
    assert_eq!(hub.conditions(), spoke.conditions());
    // Made anew, it says nothing: the hub's copy does not say what the old one said.
    place.addons(SPOKE).delete(NAME, &DeleteParams::default()).await.unwrap();
    place.until(HUB, |it| it.conditions().is_empty()).await;
    after.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());

    // Where components write, the table holds.
    place.report(SEED.collector, Meaning::UpdateFailure).await;
    let mut status = json!(place.addons(SPOKE).get(NAME).await.unwrap().status);
    status["conditions"][0]["reason"] = json!("ForwardSuccessful");
    let patch = Patch::Merge(json!({"status": status}));
    let refused = place.addons(SPOKE).patch_status(NAME, &PatchParams::default(), &patch).await.unwrap_err();
    assert!(refused.to_string().contains("reason transition not allowed by the table"), "{refused}");
}

/// By its own namespace on its own server, which a kubeconfig may lead to as well.
#[tokio::test]
async fn an_add_on_is_no_copy_of_itself() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    let account = place.account();
    let hub = HubSettings { namespace: SPOKE.to_owned(), kubeconfig: None };
    let keeper = Running::start(account.client.clone(), Settings { hub: Some(hub), ..Settings::new(&SEED) });
    let refused = "observability_addon_hub_replication_total{result=\"refused\"}";
    keeper.until_counted(refused, |count| count > 0).await;
    place.report(SEED.collector, Meaning::UpdateFailure).await;
    let told = place.until_told(SPOKE, "Degraded/UpdateFailure").await;
    assert_eq!(told.finalizers(), Vec::<String>::new(), "it would be held for itself, for ever");
    keeper.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

#[test]
fn a_hub_where_the_add_on_itself_lies_is_refused_at_start() {
    let place = Workplace::new();
    let output = place.command().args(["--hub-namespace", SPOKE]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let wanted = "--hub-namespace is where the add-on of this cluster itself lies: name the namespace that the hub has for this cluster";
    assert!(said.contains(wanted), "{said}");
}
