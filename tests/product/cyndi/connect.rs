//! Pipelines whose connectors are those of Kafka Connect itself (CY §10), with a double that moves rows.

use std::collections::BTreeMap;
use std::time::Duration;

use admit::controllers::cyndi::Settings;
use admit::controllers::cyndi::inspect::planned;
use admit::controllers::cyndi::plan::Step;
use serde_json::json;

use super::bench::{Bench, Status, USERS};
use crate::support::cluster::PATIENCE;
use crate::support::connect::{Fault, JDBC_SINK, Manner};
use crate::support::postgres::PASSWORD;

/// Where pipelines read, unless they are told otherwise.
const TOPIC: &str = "platform.inventory.events";

/// A pipeline over these hosts, which the inventory has and tells of.
async fn with_hosts(manner: Manner, hosts: std::ops::RangeInclusive<u32>) -> Option<Bench> {
    let bench = Bench::with_connect(manner).await?;
    bench.pair.hosts(hosts.clone()).await;
    hosts.for_each(|id| bench.connect().publish(TOPIC, id));
    Some(bench)
}

/// The status once a table is valid and shown.
async fn until_shown(bench: &Bench) -> Status {
    bench.until(|status| status.state() == "VALID" && status.text("activeTableName") == status.table()).await
}

/// Waits until `so`.
async fn until(what: &str, so: impl Fn() -> bool) {
    let looking = async {
        while !so() {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looking).await.is_ok(), "{what}");
}

/// What a look finds to be done. (Events of one reason are told as one.)
async fn looked(bench: &Bench) -> Result<Step, String> {
    let (client, settings) = (bench.cluster.admin.clone(), bench.settings());
    let looked = planned(client, settings, USERS, "app").await;
    looked.map(|found| found.plan.step).map_err(|error| error.to_string())
}

/// Names, ids and contents of a table.
async fn rows(bench: &Bench, table: &str) -> Vec<(String, String)> {
    let app = bench.pair.app().await;
    let query = format!("SELECT display_name::text, system_profile::text FROM inventory.{table} ORDER BY id");
    app.query(&query, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn cy_10_01_a_pipeline_from_its_creation_to_its_end() {
    let Some(bench) = with_hosts(Manner::default(), 1..=40).await else { return };
    // A host that is gone again, and one that nobody but the topic knows of: far within the threshold.
    bench.connect().publish(TOPIC, 41);
    bench.connect().unpublish(TOPIC, 41);
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = until_shown(&bench).await;
    let config = bench.connect().config(first.connector()).unwrap();
    let expected = [
        ("name", first.connector()),
        ("connector.class", JDBC_SINK),
        ("tasks.max", "16"),
        ("table.name.format", &format!("inventory.{}", first.table())),
        ("connection.password", "${env:APP_DB_PASSWORD}"),
        ("labels.cyndi/appName", "app"),
    ];
    for (key, value) in expected {
        assert_eq!(config[key], value, "{key}");
    }
    let whole = |rows: &[(String, String)]| {
        rows.len() == 40
            && rows[0] == ("h1".to_owned(), "{\"sap_sids\": [\"H2O\"], \"sap_system\": true}".to_owned())
    };
    let mut found = rows(&bench, first.table()).await;
    while !whole(&found) {
        // Deletions and repetitions come late.
        found = rows(&bench, first.table()).await;
    }
    bench.until_there(&["hosts", first.table()], &[first.connector()]).await;
    bench.change(&json!({"refresh": "now"})).await;
    let second = bench.until(|status| status.state() == "VALID" && status.table() != first.table()).await;
    bench.until_there(&["hosts", second.table()], &[second.connector()]).await;
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    assert!(bench.connectors().await.is_empty() && bench.pair.relations().await.is_empty());
    running.stop(&bench).await;
}

/// A worker that has not read of a connector yet is not believed that there is none; nor is one whose status is not there yet.
#[tokio::test]
async fn cy_10_02_workers_that_are_behind_lead_to_nothing() {
    let manner = Manner { workers: 3, behind: Duration::from_millis(400), ..Manner::default() };
    let Some(bench) = with_hosts(manner, 1..=3).await else { return };
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    let shown = until_shown(&bench).await;
    assert_eq!(shown.table(), started.table());
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_10_03_deviations_build_anew() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    let running = bench.start();
    bench.create(&json!({})).await;
    let mut last = until_shown(&bench).await;
    let changes = [None, Some(("batch.size", "7")), Some(("labels.cyndi/maxAge", "1")), Some(("more", "1"))];
    for change in changes {
        let config = bench.connect().config(last.connector()).unwrap();
        let changed = change.map(|(key, value)| {
            let mut config = config.clone();
            config.insert(key.to_owned(), value.to_owned());
            config
        });
        bench.connect().reconfigure(last.connector(), changed);
        let next = bench.until(|status| status.state() == "VALID" && status.table() != last.table()).await;
        bench.until_event("Refreshing", "state deviation").await;
        assert!(!next.text("activeTableName").is_empty(), "{change:?}");
        last = until_shown(&bench).await;
        bench.until_there(&["hosts", last.table()], &[last.connector()]).await;
    }
    running.stop(&bench).await;
}

/// What fails once is started again; what goes on failing, after three attempts, is a deviation.
#[tokio::test]
async fn cy_10_04_failed_tasks_are_started_again() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = until_shown(&bench).await;
    bench.connect().fail(first.connector(), 1, 1);
    bench.until_event("Restarting", "task 1 of").await;
    let restarts = || {
        let asked = bench.connect().asked();
        let path =
            format!("POST /connectors/{}/restart?includeTasks=true&onlyFailed=true", first.connector());
        asked.iter().filter(|line| **line == path).count()
    };
    assert_eq!(restarts(), 1);
    let running_again = || {
        let (connect, name) = (bench.connect(), first.connector().to_owned());
        !connect.has_failed(&name)
    };
    until("the task does not work again", running_again).await;
    assert_eq!(until_shown(&bench).await.table(), first.table());

    bench.connect().fail(first.connector(), 0, usize::MAX);
    let second = bench.until(|status| status.state() == "VALID" && status.table() != first.table()).await;
    assert!((3..=4).contains(&restarts()), "{}", restarts());
    bench.until_event("Refreshing", "is in the FAILED state: task 0").await;
    bench.until_there(&["hosts", second.table()], &[second.connector()]).await;
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_10_05_connectors_rest_and_work_again() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    let running = bench.start();
    bench.create(&json!({"connectorPaused": true})).await;
    let started = bench.until_started().await;
    let state = || bench.connect().state(started.connector());
    until("it does not rest", || state().as_deref() == Some("PAUSED")).await;
    bench.change(&json!({"connectorPaused": false})).await;
    until("it does not work", || state().as_deref() == Some("RUNNING")).await;
    let shown = until_shown(&bench).await;
    assert_eq!(shown.table(), started.table());
    running.stop(&bench).await;
}

/// A rebalance changes nothing, is told, and is waited out.
#[tokio::test]
async fn cy_10_06_a_rebalance_is_waited_out() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    let running = bench.start();
    bench.connect().hold_rebalance(true);
    bench.create(&json!({})).await;
    bench
        .until_event("ReconcileFailed", "cannot make a connector: Kafka Connect rebalances its workers (409)")
        .await;
    assert!(bench.connectors().await.is_empty());
    bench.connect().hold_rebalance(false);
    let first = until_shown(&bench).await;
    bench.until_there(&["hosts", first.table()], &[first.connector()]).await;
    bench.connect().hold_rebalance(true);
    let error = looked(&bench).await.unwrap_err();
    assert_eq!(error, "cannot look at a connector: Kafka Connect rebalances its workers (409)");
    let asked = bench.connect().asked().len();
    bench.connect().hold_rebalance(false);
    until("it is not asked again", || bench.connect().asked().len() > asked + 3).await;
    assert_eq!(until_shown(&bench).await.table(), first.table());
    running.stop(&bench).await;
}

/// What Kafka Connect refuses is in a condition, and goes when that is mended.
#[tokio::test]
async fn cy_10_07_what_is_refused_is_told_in_a_condition() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    bench.configure("connector.config", "{\"insert.mode\": \"sometimes\", \"batch.size\": \"many\"}").await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let accepted = |status: &Status| {
        let conditions = status.0["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|it| it["type"] == "ConnectorAccepted")
    };
    let refused = bench.until(|status| accepted(status).is_some()).await;
    let condition = accepted(&refused).unwrap();
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("False"), &json!("InvalidConfiguration"))
    );
    let message = condition["message"].as_str().unwrap();
    for words in [
        "contains the following 2 error(s)",
        "Invalid value many for configuration batch.size: Not a number of type INT",
        "Invalid value sometimes for configuration insert.mode: Invalid enumerator",
    ] {
        assert!(message.contains(words), "{message}");
    }
    assert_eq!(refused.state(), "NEW");
    bench.configure("connector.config", "{}").await;
    let shown = until_shown(&bench).await;
    assert_eq!(accepted(&shown), None);
    bench.until_there(&["hosts", shown.table()], &[shown.connector()]).await;
    running.stop(&bench).await;
}

/// Whatever answers, and whether anything does: nothing is concluded from it, nothing built anew, nothing removed.
#[tokio::test]
async fn cy_10_08_strange_answers_lead_to_nothing() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = until_shown(&bench).await;
    bench.until_there(&["hosts", first.table()], &[first.connector()]).await;
    for (turn, (fault, words)) in [
        (Fault::Page(404), "is not the REST interface of Kafka Connect (404: <html>"),
        (Fault::Page(200), "is not the REST interface of Kafka Connect (200: <html>"),
        (Fault::TimedOut, "cannot list connectors: Kafka Connect answers 500: Request timed out"),
        (Fault::Endless, "the answer is larger than 1048576 bytes"),
        (Fault::Silent, "no answer within 3 s"),
    ]
    .into_iter()
    .enumerate()
    {
        bench.connect().answer(Some(fault.clone()));
        let error = looked(&bench).await.unwrap_err();
        assert!(error.contains(words), "{fault:?}: {error}");
        let before = bench.connect().asked().len();
        bench.configure("standard.interval", &(turn + 1).to_string()).await;
        until("nobody looks", || bench.connect().asked().len() > before).await;
        bench.connect().answer(None);
        let now = until_shown(&bench).await;
        assert_eq!((now.table(), &now.0["validationFailedCount"]), (first.table(), &json!(0)));
    }
    assert_eq!(bench.connectors().await, [first.connector()]);
    running.stop(&bench).await;
}

/// Nobody is at the address: told, and a pipeline that goes waits for its connectors.
#[tokio::test]
async fn cy_10_09_a_cluster_that_is_away_keeps_a_pipeline_that_goes() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    let running = bench.start();
    bench.create(&json!({})).await;
    until_shown(&bench).await;
    bench.connect().answer(Some(Fault::Page(503)));
    bench.delete().await;
    let told = bench
        .until(|status| {
            let conditions = status.0["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|it| it["type"] == "CleanedUp" && it["status"] == "False")
        })
        .await;
    assert!(told.0["conditions"].to_string().contains("(503: <html>"), "{told:?}");
    assert!(bench.pair.relations().await.len() > 1, "tables stay as long as something writes into them");
    bench.connect().answer(None);
    bench.cluster.gone(&bench.pipelines, "app").await;
    assert!(bench.connectors().await.is_empty() && bench.pair.relations().await.is_empty());
    running.stop(&bench).await;
}

/// Logins stand in connectors where the environment does not last, and there alone; Kafka Connect's complaints show none of them.
#[tokio::test]
async fn cy_10_10_logins_are_literal_where_nothing_lasts() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    let settings = Settings { ephemeral: true, ..bench.settings() };
    bench.configure("connector.config", &format!("{{\"insert.mode\": \"{PASSWORD}\"}}")).await;
    let running = bench.start_with(&settings);
    bench.create(&json!({})).await;
    let refused =
        bench.until(|status| status.0["conditions"].to_string().contains("ConnectorAccepted")).await;
    let told = refused.0["conditions"].to_string();
    assert!(told.contains("Invalid value [redacted] for configuration insert.mode"), "{told}");
    bench.configure("connector.config", "{}").await;
    let shown = until_shown(&bench).await;
    let config = bench.connect().config(shown.connector()).unwrap();
    assert_eq!(
        (config["connection.user"].as_str(), config["connection.password"].as_str()),
        (bench.pair.user.as_str(), PASSWORD)
    );
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    running.stop(&bench).await;
}

/// Two pipelines in one cluster of Kafka Connect leave each other's connectors alone, though applications are called alike.
#[tokio::test]
async fn cy_10_11_connectors_of_others_are_left_alone() {
    let Some(bench) = with_hosts(Manner::default(), 1..=3).await else { return };
    let foreign: BTreeMap<String, String> = [
        ("name", "cyndi-app-1-5"),
        ("connector.class", JDBC_SINK),
        ("tasks.max", "1"),
        ("topics", "others"),
        ("batch.size", "1"),
        ("connection.url", "jdbc:nothing"),
        ("labels.cyndi/owner", "another"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    bench.connect().reconfigure("cyndi-app-1-5", Some(foreign));
    let running = bench.start();
    bench.create(&json!({})).await;
    until_shown(&bench).await;
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    assert_eq!(bench.connectors().await, ["cyndi-app-1-5"]);
    let deleted = |line: &&String| line.starts_with("DELETE") && line.contains("cyndi-app-1-5 ");
    assert_eq!(bench.connect().asked().iter().find(deleted), None::<&String>);
    running.stop(&bench).await;
}
