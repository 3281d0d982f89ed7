//! Pipelines that go (CY §8, §9).

use admit::controllers::cyndi::{FINALIZER, Settings};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use super::bench::{Bench, USERS};

#[tokio::test]
async fn cy_08_16_a_pipeline_takes_along_all_that_is_its_own() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let app = bench.pair.app().await;
    app.batch_execute("CREATE TABLE inventory.\"hostsXforeign\" (id uuid)").await.unwrap();
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), [1]).await;
    bench.until_shown(started.table()).await;
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    assert_eq!(bench.pair.relations().await, ["hostsXforeign"]);
    assert!(bench.connectors().await.is_empty());

    // In the initial sync as well.
    bench.create(&json!({})).await;
    bench.until_started().await;
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    assert_eq!(bench.pair.relations().await, ["hostsXforeign"]);
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_18_it_is_kept_while_its_database_is_away_and_says_so() {
    let Some(bench) = Bench::new().await else { return };
    let running = bench.start();
    bench.create(&json!({})).await;
    bench.until_started().await;
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), USERS);
    secrets.delete("app-db", &DeleteParams::default()).await.unwrap();
    bench.delete().await;
    let told = bench
        .until(|status| {
            let conditions = status.0["conditions"].as_array().cloned().unwrap_or_default();
            conditions.iter().any(|it| it["type"] == "CleanedUp" && it["status"] == "False")
        })
        .await;
    let conditions = told.0["conditions"].to_string();
    for words in ["kept since", "Secret app-db not found", FINALIZER] {
        assert!(conditions.contains(words), "{conditions}");
    }
    assert!(bench.connectors().await.is_empty(), "nothing goes on being written");
    bench.secret("app-db", &bench.pair.app).await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    assert!(bench.pair.relations().await.is_empty());
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_08_18_in_an_environment_that_does_not_last_it_goes_all_the_same() {
    let Some(bench) = Bench::new().await else { return };
    let settings = Settings { ephemeral: true, ..Settings::default() };
    let running = bench.start_with(&settings);
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    // Here, and here alone, the login is in the connector.
    let connector = bench.connectors.get(started.connector()).await.unwrap();
    assert_eq!(connector.data["spec"]["config"]["connection.user"], bench.pair.user);
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), USERS);
    secrets.delete("app-db", &DeleteParams::default()).await.unwrap();
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    assert_eq!(bench.pair.relations().await, [started.table()], "the table is left behind");
    running.stop(&bench).await;
}
