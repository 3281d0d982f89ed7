//! Behaviours of pipelines that go well (CY §2, §8).

use admit::controllers::cyndi::Settings;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::bench::{Bench, RefusedNothing as _, Status, USERS};
use crate::support::cluster::PATIENCE;

#[tokio::test]
async fn cy_08_01_a_new_pipeline_has_a_table_and_a_connector() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1, 2, 3]).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let status = bench.until_started().await;
    assert_eq!(status.text("activeTableName"), "");
    let (table, version) = (status.table(), status.text("pipelineVersion"));
    assert_eq!(table, format!("hosts_v{version}"));
    assert_eq!(bench.pair.relations().await, [table]);
    let connector = bench.connectors.get(status.connector()).await.unwrap();
    let labels = connector.metadata.labels.clone().unwrap();
    let at = |name: &str| labels[name].as_str();
    assert_eq!((at("cyndi/appName"), at("cyndi/insightsOnly"), at("cyndi/maxAge")), ("app", "false", "45"));
    assert_eq!(at("strimzi.io/cluster"), "xjoin-kafka-connect-strimzi");
    let owner = &connector.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.controller, at("cyndi/owner")),
        ("CyndiPipeline", Some(true), owner.uid.as_str())
    );
    let config = &connector.data["spec"]["config"];
    assert_eq!(config["table.name.format"], format!("inventory.{table}"));
    assert_eq!(config["connection.password"], "${env:APP_DB_PASSWORD}");
    bench.until_event("InitialSync", table).await;
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_04_equal_hosts_make_it_valid_and_the_view_shows_them() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1, 2, 3]).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), [1, 2, 3]).await;
    let shown = bench.until_shown(started.table()).await;
    assert_eq!((shown.state(), &shown.0["hostCount"]), ("VALID", &json!(3)));
    assert_eq!(shown.valid()["message"], "Validation succeeded - 0 hosts (0.00%) do not match");
    assert_eq!(
        (&shown.0["validationFailedCount"], &shown.0["initialSyncInProgress"]),
        (&json!(0), &json!(false))
    );
    bench.until_there(&["hosts", started.table()], &[started.connector()]).await;
    let words = format!("Pipeline became valid. inventory.hosts view now points to {}", started.table());
    bench.until_event("ValidationSucceeded", &words).await;
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_05_only_hosts_with_an_insights_id_are_compared() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1, 2, 3, 2001, 2002, 2003, 2004]).await;
    let running = bench.start();
    bench.create(&json!({"insightsOnly": true})).await;
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), [1, 2, 3]).await;
    let valid = bench.until(|status| status.state() == "VALID").await;
    assert_eq!(valid.valid()["message"], "Validation succeeded - 0 hosts (0.00%) do not match");
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_02_the_cluster_of_the_configmap_is_the_connectors() {
    let Some(bench) = Bench::new().await else { return };
    bench.configure("connect.cluster", "test01").await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    let connector = bench.connectors.get(started.connector()).await.unwrap();
    assert_eq!(connector.metadata.labels.unwrap()["strimzi.io/cluster"], "test01");
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_06_a_mismatch_within_the_threshold_is_valid() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=6).await;
    let running = bench.start();
    bench.create(&json!({"validationThreshold": 20})).await;
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), 1..=5).await;
    let valid = bench.until_shown(started.table()).await;
    assert_eq!(valid.valid()["message"], "Validation succeeded - 1 hosts (16.67%) do not match");
    assert_eq!((valid.state(), &valid.0["hostCount"]), ("VALID", &json!(5)));
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_07_a_mismatch_beyond_the_threshold_is_not() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=6).await;
    let running = bench.start();
    bench.create(&json!({"validationThreshold": 20})).await;
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), 1..=4).await;
    let words = "Validation failed - 2 hosts (33.33%) do not match";
    let failed = bench.until(|status| status.valid()["message"] == words).await;
    assert_eq!((failed.state(), &failed.0["hostCount"]), ("INITIAL_SYNC", &json!(4)));
    bench.until_event("ValidationFailed", "Validation failed").await;
    running.stop(&bench).await;
}

/// From valid to invalid and back; the view stays where it is.
#[tokio::test]
async fn cy_02_05_what_was_valid_becomes_invalid_and_02_06_valid_again() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=6).await;
    let (history, running) = (bench.history(), bench.start());
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), 1..=6).await;
    bench.until_shown(started.table()).await;
    let app = bench.pair.app().await;
    app.batch_execute(&format!("DELETE FROM inventory.{}", started.table())).await.unwrap();
    let invalid = bench.until(|status| status.state() == "INVALID").await;
    assert_eq!(invalid.valid()["message"], "Validation failed - 6 hosts (100.00%) do not match");
    assert_eq!(invalid.text("activeTableName"), started.table());
    bench.until(|status| status.0["validationFailedCount"].as_i64() >= Some(3)).await;
    bench.pair.fill(started.table(), 1..=6).await;
    bench.until(|status| status.state() == "VALID" && status.0["validationFailedCount"] == 0).await;
    bench.until_event("Valid", "Pipeline is valid again").await;
    let seen = history.until(|status| status.state() == "INVALID").await;
    let first = seen.iter().find(|status| status.state() == "INVALID").unwrap();
    assert_eq!(first.0["validationFailedCount"], 1);
    running.stop(&bench).await;
}

/// Each failure counts once, whatever else is looked at in between.
#[tokio::test]
async fn cy_08_10_failing_nine_times_counts_to_nine() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=6).await;
    let (history, running) = (bench.history(), bench.start());
    bench.create(&json!({})).await;
    let nine = bench.until(|status| status.0["validationFailedCount"] == 9).await;
    assert_eq!((nine.state(), &nine.valid()["status"]), ("INITIAL_SYNC", &json!("False")));
    let of = |status: &Status| status.0["validationFailedCount"].as_i64();
    let seen = history.until(|status| of(status) == Some(9)).await;
    let mut counts: Vec<_> = seen.iter().filter_map(of).collect();
    counts.dedup();
    counts.truncate(10);
    assert_eq!(counts, (0..10).collect::<Vec<_>>());
    assert_eq!(history.versions().len(), 1);
    running.stop(&bench).await;
}

/// A reset is whole, wherever it begins.
fn is_reset(status: &Status) -> bool {
    let valid = (&status.valid()["status"], &status.valid()["reason"]) == (&json!("Unknown"), &json!("New"));
    let counts = (&status.0["validationFailedCount"], &status.0["hostCount"]) == (&json!(0), &json!(-1));
    valid && counts && status.text("pipelineVersion").is_empty() && status.0["initialSyncInProgress"] == false
}

#[tokio::test]
async fn cy_08_11_what_does_not_become_valid_is_built_anew() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=6).await;
    bench.configure("init.validation.attempts.threshold", "2").await;
    let (history, running) = (bench.history(), bench.start());
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    let (first, second) = (started.table().to_owned(), |status: &Status| {
        status.state() == "INITIAL_SYNC" && status.table() != started.table()
    });
    let again = bench.until(second).await;
    bench.until_event("Refreshing", "Pipeline failed to become valid within the given threshold").await;
    // There was no view: the first table is shown, empty as it is.
    assert_eq!(again.text("activeTableName"), first);
    let seen = history.until(|status| status.table() == again.table()).await;
    let resets: Vec<_> = seen.iter().filter(|it| it.table() == first && it.state() == "NEW").collect();
    assert!(!resets.is_empty() && resets.iter().all(|status| is_reset(status)), "{resets:#?}");
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_11_what_does_not_become_valid_again_is_built_anew() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=6).await;
    bench.configure("validation.attempts.threshold", "2").await;
    let (history, running) = (bench.history(), bench.start());
    bench.create(&json!({})).await;
    let first = bench.until_started().await;
    bench.pair.fill(first.table(), 1..=6).await;
    bench.until_shown(first.table()).await;
    bench.pair.app().await.batch_execute(&format!("DELETE FROM inventory.{}", first.table())).await.unwrap();
    let again = bench.until_built_anew_beside(first.table()).await;
    let seen = history.until(|status| status.table() == again.table()).await;
    let counts: Vec<_> = seen
        .iter()
        .filter(|status| status.state() == "INVALID")
        .filter_map(|status| status.0["validationFailedCount"].as_i64())
        .collect();
    assert!(counts.starts_with(&[1]) && counts.contains(&2), "{counts:?}");
    let reset = seen.iter().find(|status| status.state() == "NEW" && status.table() == first.table());
    assert!(reset.is_some_and(is_reset), "{reset:#?}");
    running.stop(&bench).await;
}

/// While a pipeline is built anew, whoever reads the view reads on.
#[tokio::test]
async fn cy_08_12_a_refresh_keeps_the_old_table_until_the_new_one_is_valid() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts(1..=3).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = bench.until_started().await;
    bench.pair.fill(first.table(), 1..=3).await;
    bench.until_shown(first.table()).await;

    let reader = bench.pair.admin(&bench.pair.app).await;
    let reading = tokio::spawn(async move {
        loop {
            let found =
                reader.query_one("SELECT count(*), min(display_name) FROM inventory.hosts", &[]).await;
            let count: i64 = found.unwrap().get(0);
            assert_eq!(count, 3, "the view shows a table that is not filled");
        }
    });
    bench.change(&json!({"refresh": "now"})).await;
    let second =
        bench.until(|status| status.state() == "INITIAL_SYNC" && status.table() != first.table()).await;
    assert_eq!(second.text("activeTableName"), first.table());
    bench
        .until_event("Refreshing", "Refreshing pipeline due to state deviation: CyndiPipeline spec changed")
        .await;
    let (mut tables, mut connectors) =
        (vec!["hosts", first.table(), second.table()], vec![first.connector(), second.connector()]);
    tables.sort_unstable();
    connectors.sort_unstable();
    bench.until_there(&tables, &connectors).await;
    bench.pair.fill(second.table(), 1..=3).await;
    bench.until_shown(second.table()).await;
    bench.until_there(&["hosts", second.table()], &[second.connector()]).await;
    assert!(!reading.is_finished(), "a reader failed: {:?}", reading.await);
    reading.abort();
    running.stop(&bench).await;
}

/// Each of these is found, and leads to another version, while the view shows what it showed.
#[tokio::test]
async fn cy_08_13_deviations_build_anew() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = bench.until_started().await;
    bench.pair.fill(first.table(), [1]).await;
    bench.until_shown(first.table()).await;
    let mut last = first.clone();
    for what in [
        "configmap",
        "global configmap",
        "age",
        "insights",
        "table",
        "connector",
        "failed",
        "label",
        "config",
    ] {
        deviate(&bench, what, &last).await;
        let anew = |status: &Status| status.state() == "INITIAL_SYNC" && status.table() != last.table();
        let next = bench.until(anew).await;
        assert_eq!(next.text("activeTableName"), first.table(), "{what}");
        let connector = bench.connectors.get(next.connector()).await.unwrap();
        let labels = connector.metadata.labels.unwrap();
        assert_eq!(labels["strimzi.io/cluster"], "test01");
        last = next;
    }
    bench.pair.fill(last.table(), [1]).await;
    bench.until_shown(last.table()).await;
    bench.until_there(&["hosts", last.table()], &[last.connector()]).await;
    running.stop(&bench).await;
}

async fn deviate(bench: &Bench, what: &str, last: &Status) {
    match what {
        "configmap" => bench.configure("connect.cluster", "test01").await,
        "global configmap" => bench.config_map("cyndi", &[("connector.topic", "other")]).await,
        "age" => bench.change(&json!({"maxAge": 7})).await,
        "insights" => bench.change(&json!({"insightsOnly": true})).await,
        "table" => {
            // That which the view shows cannot be dropped, and is none that is being filled.
            let drop = format!("DROP TABLE inventory.{}", last.table());
            bench.pair.app().await.batch_execute(&drop).await.unwrap();
        }
        "connector" => {
            bench.connectors.delete(last.connector(), &DeleteParams::default()).await.unwrap();
        }
        "failed" => {
            let status = json!({"connectorStatus": {"connector": {"state": "RUNNING"}, "tasks": [{"id": 0, "state": "FAILED"}]}});
            let patch = Patch::Merge(json!({"status": status}));
            let params = PatchParams::default();
            bench.connectors.patch_status(last.connector(), &params, &patch).await.unwrap();
        }
        "label" => {
            patch(bench, last.connector(), &json!({"metadata": {"labels": {"cyndi/appName": "x"}}})).await
        }
        _ => patch(bench, last.connector(), &json!({"spec": {"config": {"batch.size": 7}}})).await,
    }
}

/// Where logins stand in connectors, one that changed makes them deviate.
#[tokio::test]
async fn cy_08_13_a_secret_that_changed_builds_anew_where_connectors_hold_it() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let running = bench.start_with(&Settings { ephemeral: true, ..bench.settings() });
    bench.create(&json!({})).await;
    let first = bench.until_started().await;
    bench.pair.fill(first.table(), [1]).await;
    bench.until_shown(first.table()).await;
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), USERS);
    let moved = Patch::Merge(json!({"stringData": {"db.host": "localhost"}}));
    secrets.patch("app-db", &PatchParams::default(), &moved).await.unwrap();
    let second = bench.until_built_anew_beside(first.table()).await;
    let connector = bench.connectors.get(second.connector()).await.unwrap();
    let url = connector.data["spec"]["config"]["connection.url"].as_str().unwrap();
    assert!(url.starts_with("jdbc:postgresql://localhost:"), "{url}");
    bench.until_event("Refreshing", "the configuration differs in connection.url").await;
    running.end().await.refused_nothing();
}

async fn patch(bench: &Bench, name: &str, patch: &serde_json::Value) {
    bench.connectors.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

/// Both controllers see a deviation, and each hears of what the other wrote a moment later: it is built anew once.
#[tokio::test]
async fn cy_02_08_each_deviation_builds_anew_once() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let (history, running) = (bench.history(), bench.start());
    running.process.wire.shuffle(11);
    bench.create(&json!({})).await;
    let mut last = bench.until_started().await;
    for round in 0..12_u64 {
        match round % 3 {
            0 => drop(bench.connectors.delete(last.connector(), &DeleteParams::default()).await.unwrap()),
            1 => patch(&bench, last.connector(), &json!({"spec": {"config": {"batch.size": 7}}})).await,
            _ => bench.change(&json!({"refresh": round.to_string()})).await,
        }
        last = bench.until_built_anew(last.table()).await;
    }
    let versions = history.versions();
    assert_eq!(versions.len(), 13, "{versions:#?}");
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_14_intervals_are_no_reason_to_build_anew_and_connectors_may_rest() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    bench.configure("validation.interval", "2").await;
    bench.change(&json!({"connectorPaused": true})).await;
    let paused = |data: &serde_json::Value| data["spec"]["state"] == "paused";
    bench.cluster.until(&bench.connectors, started.connector(), paused).await;
    bench.change(&json!({"connectorPaused": false})).await;
    let works = |data: &serde_json::Value| data["spec"]["state"] == "running";
    bench.cluster.until(&bench.connectors, started.connector(), works).await;
    bench.pair.fill(started.table(), [1]).await;
    assert_eq!(bench.until_shown(started.table()).await.table(), started.table());
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_01_connectors_that_others_make_are_neither_made_nor_looked_for() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let running = bench.start();
    bench.create(&json!({"managedConnectors": false})).await;
    let started = bench.until_started().await;
    bench.until_event("ExternalConnectorUpdate", started.table()).await;
    bench.pair.fill(started.table(), [1]).await;
    bench.until_shown(started.table()).await;
    assert!(bench.connectors().await.is_empty());
    running.stop(&bench).await;
}

/// Two controllers, a watch and many writers: the policies of the system deny none of their writes, and two pipelines on one database
/// before they begin.
#[tokio::test]
async fn cy_07_two_pipelines_on_one_database_are_refused() {
    let Some(bench) = Bench::new().await else { return };
    bench.create(&json!({})).await;
    let second: kube::api::DynamicObject = serde_json::from_value(json!({
        "apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
        "metadata": {"name": "second", "namespace": USERS}, "spec": {"appName": "second", "dbSecret": "app-db"},
    }))
    .unwrap();
    let trying = async {
        // The policy reads the others from a watch.
        loop {
            match bench.pipelines.create(&Default::default(), &second).await {
                Err(error) => return error.to_string(),
                Ok(_) => drop(bench.pipelines.delete("second", &DeleteParams::default()).await.unwrap()),
            }
        }
    };
    let error = tokio::time::timeout(PATIENCE, trying).await.unwrap();
    assert!(error.contains("another pipeline uses the same database"), "{error}");
}
