//! The endpoint operator's part: Deployments, Prometheus' Service and the spec, against the embedded server.

use admit::controllers::observability::vocabulary::{Meaning, SEED};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::place::{NAME, PROMETHEUS, Place, asking_for_prometheus};
use super::{Running, SPOKE, addon};

const COLLECTOR: &str = "metrics-collector-deployment";
const WORKLOADS: &str = "uwl-metrics-collector-deployment";

async fn service(place: &Place) {
    place
        .create(&json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": PROMETHEUS.1, "namespace": PROMETHEUS.0},
            "spec": {"ports": [{"port": 9091}]},
        }))
        .await;
}

/// What a component says: reason and message.
fn said(object: &admit::controllers::observability::crd::ObservabilityAddon, component: &str) -> String {
    let found = object.conditions().iter().find(|it| it.type_ == component);
    found.map_or_else(String::new, |it| format!("{}: {}", it.reason, it.message))
}

#[tokio::test]
async fn ob_03_the_endpoint_operator_says_what_becomes_of_the_collectors() {
    let place = Place::new().await;
    let (mc, uwl) = (SEED.collector, SEED.workloads_collector);
    place.create(&addon(SPOKE)).await;
    place.roll_out(COLLECTOR, "one").await;
    let account = place.account();
    let keeper = Running::start(account.client.clone(), asking_for_prometheus());
    let until = async |component: &str, wanted: &str| {
        place.until(SPOKE, |object| said(object, component) == wanted).await;
    };
    until(mc, "NotSupported: Prometheus service not found").await;
    place.until_told(SPOKE, "NotSupported/NotSupported").await;
    service(&place).await;
    until(mc, "UpdateSuccesful: Metrics collector updated").await;
    place.until_told(SPOKE, "Progressing/UpdateSuccesful").await;

    // It forwards; a change of the Service says nothing, one of the Deployment does.
    place.report(mc, Meaning::ForwardSuccessful).await;
    let services: Api<k8s_openapi::api::core::v1::Service> =
        Api::namespaced(place.cluster.admin.clone(), PROMETHEUS.0);
    let labelled = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    services.patch(PROMETHEUS.1, &PatchParams::default(), &labelled).await.unwrap();
    place.deployments().patch(COLLECTOR, &PatchParams::default(), &labelled).await.unwrap();
    place.roll_out(WORKLOADS, "one").await;
    until(uwl, "UpdateSuccesful: Metrics collector updated").await;
    let now = place.addons(SPOKE).get(NAME).await.unwrap();
    assert_eq!(said(&now, mc), "ForwardSuccessful: ForwardSuccessful");
    place.roll_out(COLLECTOR, "two").await;
    until(mc, "UpdateSuccesful: Metrics collector updated").await;

    fail(&place, 2).await;
    until(mc, "UpdateFailure: Failed to update metrics collector").await;
    place.roll_out(COLLECTOR, "three").await;
    until(mc, "UpdateSuccesful: Metrics collector updated").await;

    // The component of user workloads is switched off, and never goes.
    place.deployments().delete(WORKLOADS, &DeleteParams::default()).await.unwrap();
    until(uwl, "DisabledMetrics: UWL Metrics collector disabled").await;
    place.report(mc, Meaning::ForwardSuccessful).await;
    place.until_told(SPOKE, "Available/ForwardSuccessful").await;
    keeper.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

/// Its controller gives up on the version.
async fn fail(place: &Place, generation: i64) {
    let status = json!({"observedGeneration": generation, "conditions": [
        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"},
    ]});
    let patch = Patch::Merge(json!({"status": status}));
    place.deployments().patch_status(COLLECTOR, &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test]
async fn ob_03_metrics_that_are_switched_off_are_disabled_until_they_are_on_again() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    place.roll_out(COLLECTOR, "one").await;
    let account = place.account();
    let keeper = Running::start(account.client.clone(), super::Settings::new(&SEED));
    place.until_told(SPOKE, "Progressing/UpdateSuccesful").await;
    place.patch(SPOKE, json!({"spec": {"enableMetrics": false}})).await;
    let disabled = place.until_told(SPOKE, "Disabled/DisabledMetrics").await;
    assert_eq!(said(&disabled, SEED.collector), "DisabledMetrics: Metrics collector disabled");
    // What was switched off may not say that it forwards.
    let skipped = place.report(SEED.collector, Meaning::ForwardSuccessful).await;
    assert_eq!(skipped.to_string(), "skipped: ForwardSuccessful may not follow DisabledMetrics");
    place.patch(SPOKE, json!({"spec": {"enableMetrics": Value::Null}})).await;
    place.until_told(SPOKE, "Progressing/UpdateSuccesful").await;
    keeper.end().await;
}

/// What was told is known after a restart: a collector that has gone on since is not put back to Progressing.
#[tokio::test]
async fn ob_03_a_restart_tells_nothing_again() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    place.roll_out(COLLECTOR, "one").await;
    let first = Running::start(place.account().client, super::Settings::new(&SEED));
    place.until_told(SPOKE, "Progressing/UpdateSuccesful").await;
    first.end().await;
    place.report(SEED.collector, Meaning::ForwardSuccessful).await;
    let account = place.account();
    let second = Running::start(account.client.clone(), super::Settings::new(&SEED));
    place.until_told(SPOKE, "Available/ForwardSuccessful").await;
    // A change that it has to hear of, behind all that it could have told of the Deployment.
    place.roll_out(WORKLOADS, "one").await;
    place.until(SPOKE, |it| !said(it, SEED.workloads_collector).is_empty()).await;
    let now = place.addons(SPOKE).get(NAME).await.unwrap();
    assert_eq!(said(&now, SEED.collector), "ForwardSuccessful: ForwardSuccessful");
    second.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}
