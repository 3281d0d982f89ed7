//! Strimzi's kind in the versions that its releases serve.

use kube::api::DeleteParams;
use serde_json::json;

use super::bench::Bench;

/// Whichever is served is asked for and watched: with looks an hour apart, a connector that goes is missed at once.
async fn is_watched(versions: &[&str]) {
    let Some(bench) = Bench::with_strimzi(versions).await else { return };
    bench.pair.hosts([1]).await;
    bench.configure("standard.interval", "3600").await;
    bench.configure("init.validation.interval", "3600").await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = bench.until_started().await;
    let connector = bench.connectors.get(first.connector()).await.unwrap();
    assert_eq!(connector.types.unwrap().api_version, format!("kafka.strimzi.io/{}", versions[0]));
    bench.connectors.delete(first.connector(), &DeleteParams::default()).await.unwrap();
    bench.until_built_anew(first.table()).await;
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_05_connectors_of_v1_alone() {
    is_watched(&["v1"]).await;
}

#[tokio::test]
async fn cy_05_connectors_of_both_versions() {
    is_watched(&["v1beta2", "v1"]).await;
}
