//! What becomes of tables that are not what they should be (CY §8): thresholds, versions that somebody takes away, and which table is
//! shown when none is valid.

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::bench::{Bench, Status};

#[tokio::test]
async fn cy_08_03_a_version_that_is_taken_away_twice_leaves_one_table_and_one_connector() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let mut last = bench.until_started().await;
    for _ in 0..2 {
        let mut valid = last.valid().clone();
        valid["status"] = json!("Unknown");
        let status = json!({"pipelineVersion": "", "initialSyncInProgress": false, "validationFailedCount": 0, "conditions": [valid]});
        let patch = Patch::Merge(json!({"status": status}));
        bench.pipelines.patch_status("app", &PatchParams::default(), &patch).await.unwrap();
        last = bench.until_built_anew(last.table()).await;
    }
    running.stop(&bench).await;
}

/// What a table with hosts `1..=filled` of `hosts` comes to, with this threshold for the first validations.
async fn fails(hosts: u32, filled: u32, threshold: &str, spec: &serde_json::Value, words: &str) {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=hosts).await;
    bench.configure("init.validation.percentage.threshold", threshold).await;
    let running = bench.start();
    bench.create(spec).await;
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), 1..=filled).await;
    let failed = bench.until(|status| status.valid()["message"] == words).await;
    assert_eq!((failed.state(), &failed.valid()["status"]), ("INITIAL_SYNC", &json!("False")));
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_08_counts_that_are_hopeless_decide() {
    fails(3, 1, "90", &json!({}), "Validation failed - 2 hosts (66.67%) do not match").await;
}

#[tokio::test]
async fn cy_08_09_the_threshold_of_the_spec_goes_over_the_configmap() {
    let words = "Validation failed - 1 hosts (16.67%) do not match";
    fails(6, 5, "40", &json!({"validationThreshold": 5}), words).await;
}

/// A refresh that comes to nothing: whichever table is nearer to the inventory is shown.
#[tokio::test]
async fn cy_08_15_a_table_that_never_became_valid_is_shown_unless_it_is_further_from_the_inventory() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=6).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = bench.until_started().await;
    bench.pair.fill(first.table(), 1..=6).await;
    bench.until_shown(first.table()).await;
    bench.configure("init.validation.attempts.threshold", "2").await;
    bench.change(&json!({"refresh": "now"})).await;
    let second = bench.until_built_anew_beside(first.table()).await;
    let third = |status: &Status| {
        status.state() == "INITIAL_SYNC" && ![first.table(), second.table()].contains(&status.table())
    };
    let given_up = bench.until(third).await;
    assert_eq!(given_up.text("activeTableName"), first.table(), "an empty table is further");
    // As empty as whatever comes next.
    bench.pair.app().await.batch_execute(&format!("DELETE FROM inventory.{}", first.table())).await.unwrap();
    let moved = |status: &Status| {
        let active = status.text("activeTableName");
        !active.is_empty() && active != first.table()
    };
    bench.until(moved).await;
    running.stop(&bench).await;
}
