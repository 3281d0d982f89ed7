//! What is missing or wrong changes no state (CY §8, last rows): it is told, and waited out.

use admit::controllers::cyndi::Settings;
use admit::controllers::cyndi::inspect::planned;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;

use super::bench::{Bench, USERS};

#[tokio::test]
async fn cy_08_17_trouble_is_told_and_waited_out() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), USERS);
    let admin = bench.pair.admin(&bench.pair.app).await;
    secrets.delete("app-db", &DeleteParams::default()).await.unwrap();
    admin.batch_execute("ALTER SCHEMA inventory RENAME TO away").await.unwrap();
    bench.configure("standard.interval", "abc").await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let words =
        "Error parsing cyndi configmap in apps: \"abc\" is not a valid value for \"standard.interval\"";
    bench.until_event("ReconcileFailed", words).await;
    // Events of one reason are told as one; what a look says is said to whoever asks.
    let looked = async || {
        let client = bench.cluster.admin.clone();
        planned(client, Settings::default(), USERS, "app").await.map_err(|error| error.to_string())
    };
    assert_eq!(looked().await.unwrap_err(), words);
    bench.configure("standard.interval", "1").await;
    assert_eq!(looked().await.unwrap_err(), "Secret app-db not found: it has the login of a database");
    bench.secret("app-db", &bench.pair.app).await;
    let missing = Patch::Merge(json!({"data": {"db.host": null}}));
    secrets.patch("app-db", &PatchParams::default(), &missing).await.unwrap();
    assert_eq!(looked().await.unwrap_err(), "db.host missing from app-db secret");
    secrets.delete("app-db", &DeleteParams::default()).await.unwrap();
    bench.secret("app-db", &bench.pair.app).await;
    // A schema that is missing is found when a table is made in it.
    assert_eq!(looked().await.unwrap().step().0, "start");
    let before = bench.pipelines.get("app").await.unwrap();
    assert_eq!(before.data["status"], serde_json::Value::Null);
    admin
        .batch_execute("ALTER SCHEMA away RENAME TO inventory; CREATE TABLE inventory.hosts (id uuid)")
        .await
        .unwrap();
    let error = looked().await.unwrap_err();
    assert_eq!(error, "application database: inventory.hosts is a table, not a view: drop or rename it");
    admin.batch_execute("DROP TABLE inventory.hosts").await.unwrap();
    bench.until_started().await;
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_17_a_schema_or_a_role_that_is_missing_is_named() {
    let Some(bench) = Bench::new().await else { return };
    let admin = bench.pair.admin(&bench.pair.app).await;
    admin.batch_execute("ALTER SCHEMA inventory RENAME TO away").await.unwrap();
    let running = bench.start();
    bench.create(&json!({})).await;
    bench.until_event("ReconcileFailed", "schema \"inventory\" does not exist (SQLSTATE 3F000)").await;
    admin.batch_execute("ALTER SCHEMA away RENAME TO inventory").await.unwrap();
    bench.until_started().await;
    running.stop(&bench).await;
}

/// A comparison that cannot be made says nothing about the table.
#[tokio::test]
async fn cy_09_10_an_inventory_that_is_away_is_no_failed_validation() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let inventory = bench.pair.admin(&bench.pair.inventory).await;
    inventory.batch_execute("ALTER TABLE hosts RENAME TO away").await.unwrap();
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    bench
        .until_event(
            "ReconcileFailed",
            "validation: cannot count hosts: relation \"public.hosts\" does not exist",
        )
        .await;
    let now = bench.until_started().await;
    assert_eq!((now.table(), &now.0["validationFailedCount"]), (started.table(), &json!(0)));
    inventory.batch_execute("ALTER TABLE away RENAME TO hosts").await.unwrap();
    bench.pair.fill(started.table(), [1]).await;
    bench.until_shown(started.table()).await;
    running.stop(&bench).await;
}

/// What somebody else shows in the view has whatever name: no name of a connector is made of it.
#[tokio::test]
async fn cy_09_02_a_view_of_a_table_with_a_short_name_is_taken_over() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let app = bench.pair.app().await;
    app.batch_execute(
        "CREATE TABLE inventory.h (id uuid); CREATE VIEW inventory.hosts AS SELECT id FROM inventory.h",
    )
    .await
    .unwrap();
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    assert_eq!(started.text("activeTableName"), "h");
    bench.pair.fill(started.table(), [1]).await;
    bench.until_shown(started.table()).await;
    bench.until_there(&["h", "hosts", started.table()], &[started.connector()]).await;
    running.stop(&bench).await;
}

/// With looks an hour apart: the global ConfigMap reaches pipelines of other namespaces, `refresh` refreshes.
#[tokio::test]
async fn cy_09_06_the_global_configmap_and_refresh_count_at_once() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    for key in ["standard.interval", "init.validation.interval", "validation.interval"] {
        bench.configure(key, "3600").await;
    }
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = bench.until_started().await;
    bench.config_map("cyndi", &[("connector.topic", "another")]).await;
    let second = bench.until_built_anew(first.table()).await;
    let connector = bench.connectors.get(second.connector()).await.unwrap();
    assert_eq!(connector.data["spec"]["config"]["topics"], "another");
    bench.change(&json!({"refresh": "now"})).await;
    bench.until_built_anew(second.table()).await;
    running.stop(&bench).await;
}

/// However often a look fails, it is one event that counts.
#[tokio::test]
async fn cy_09_09_failures_are_one_event_that_counts() {
    let Some(bench) = Bench::new().await else { return };
    bench.configure("standard.interval", "abc").await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let told = bench.until_event("ReconcileFailed", "\"abc\" is not a valid value").await;
    bench.until_counted(&told).await;
    running.until_failed(2).await;
    running.stop(&bench).await;
    let events: Api<Event> = Api::namespaced(bench.cluster.admin.clone(), USERS);
    let listed = events.list(&ListParams::default()).await.unwrap().items;
    let failed = listed.iter().filter(|event| event.reason.as_deref() == Some("ReconcileFailed"));
    // One of each controller.
    assert!((1..=2).contains(&failed.count()), "{listed:#?}");
}

/// A script that is more than indexes is refused with the statement, and nothing of it is run.
#[tokio::test]
async fn cy_09_03_scripts_of_indexes_do_nothing_else() {
    let Some(bench) = Bench::new().await else { return };
    let app = bench.pair.app().await;
    app.batch_execute("CREATE TABLE inventory.precious (id uuid)").await.unwrap();
    let running = bench.start();
    let script = "CREATE INDEX a ON inventory.{{.TableName}} (account); DROP TABLE inventory.precious";
    bench.create(&json!({"dbTableIndexSQL": script})).await;
    bench.until_event("ReconcileFailed", "not: DROP TABLE inventory.precious").await;
    assert_eq!(bench.pair.relations().await, ["precious"]);
    bench.change(&json!({"dbTableIndexSQL": "CREATE INDEX ON inventory.{{.TableName}} (account)"})).await;
    bench.until_started().await;
    running.stop(&bench).await;
}
