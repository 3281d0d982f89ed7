//! Under the names of the operator that was released (`--vocabulary shipped`): the same keeper and the same policies, which deny none of
//! its writes and hold its components to their table.

use admit::controllers::observability::Settings;
use admit::controllers::observability::crd::ObservabilityAddon;
use admit::controllers::observability::report::Outcome;
use admit::controllers::observability::vocabulary::Meaning::{
    Disabled, ForwardFailure, ForwardSuccessful, LoopDetected, LoopStopped, NotSupported, UpdateFailure,
    UpdateSuccessful,
};
use admit::controllers::observability::vocabulary::{SEED, SHIPPED};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use super::place::{NAME, Place, with_hub};
use super::{HUB, Running, SPOKE, addon};

fn released() -> Settings {
    Settings { hub: with_hub().hub, ..Settings::new(&SHIPPED) }
}

#[tokio::test]
async fn ob_02_no_policy_denies_what_the_keeper_says_in_the_released_names() {
    let place = Place::new().await;
    for namespace in [SPOKE, HUB] {
        place.create(&addon(namespace)).await;
    }
    let account = place.account();
    let keeper = Running::start(account.client.clone(), released());
    let (platform, workloads) = (SHIPPED.collector, SHIPPED.workloads_collector);
    for (component, meaning, told) in [
        (platform, UpdateSuccessful, "Progressing/UpdateSuccessful"),
        (platform, ForwardSuccessful, "Available/ForwardSuccessful"),
        (workloads, ForwardFailure, "Degraded/ForwardFailed"),
        (platform, LoopDetected, "Degraded/CMOReconcileLoopDetected"),
        (platform, LoopStopped, "Degraded/ForwardFailed"),
        (workloads, Disabled, "Progressing/CMOReconcileLoopStopped"),
        (platform, UpdateFailure, "Degraded/UpdateFailed"),
        (platform, NotSupported, "Degraded/NotSupported"),
        (platform, Disabled, "Degraded/Disabled"),
    ] {
        assert_eq!(place.report_as(&SHIPPED, component, meaning).await, Outcome::Written, "{meaning:?}");
        for namespace in [SPOKE, HUB] {
            place.until_told(namespace, told).await;
        }
    }
    keeper.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}

/// Each edge that the table does not have, written past the library.
#[tokio::test]
async fn ob_03_the_table_of_the_released_names_holds() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    let api = place.addons(SPOKE);
    let mut number = 0;
    let mut said = async |reason: &str| {
        number += 1;
        let condition = json!({"type": SHIPPED.collector, "status": "True", "reason": reason,
            "message": number.to_string(), "lastTransitionTime": "2026-01-01T00:00:00Z"});
        // As the endpoint operator, who may say everything that the table allows.
        let operator: Api<ObservabilityAddon> = Api::namespaced(place.account().client, SPOKE);
        let mut object = operator.get(NAME).await?;
        object.status = serde_json::from_value(json!({"conditions": [condition]})).ok();
        operator.replace_status(NAME, &PostParams::default(), &object).await.map(drop)
    };
    let mut denied = 0;
    for old in SHIPPED.reasons {
        for new in SHIPPED.reasons {
            api.delete(NAME, &DeleteParams::default()).await.unwrap();
            place.create(&addon(SPOKE)).await;
            said(old.name).await.unwrap();
            let written = said(new.name).await;
            let allowed = SHIPPED.allows(Some(old.name), new);
            assert_eq!(written.is_ok(), allowed, "{} to {}: {written:?}", old.name, new.name);
            denied += usize::from(!allowed);
        }
    }
    assert_eq!(denied, 19);
}

/// Names are switched while the add-on says Disabled, which the released operator has no condition for.
#[tokio::test]
async fn what_the_names_before_told_is_told_no_longer() {
    let place = Place::new().await;
    place.create(&addon(SPOKE)).await;
    let account = place.account();
    let before = Running::start(account.client.clone(), Settings::new(&SEED));
    place.report(SEED.collector, Disabled).await;
    place.until_told(SPOKE, "Disabled/DisabledMetrics").await;
    before.end().await;
    let after = Running::start(account.client.clone(), Settings::new(&SHIPPED));
    place.report_as(&SHIPPED, SHIPPED.collector, ForwardSuccessful).await;
    place.until_told(SPOKE, "Available/ForwardSuccessful").await;
    after.end().await;
    let back = Running::start(account.client.clone(), Settings::new(&SEED));
    place.report(SEED.collector, NotSupported).await;
    place.until_told(SPOKE, "NotSupported/NotSupported").await;
    back.end().await;
    assert_eq!(account.wire.denied(), Vec::<String>::new());
}
