//! The role of the controllers in `deploy/`: every verb of it is used, and none is missing.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::DeleteParams;
use serde_json::json;

use super::bench::{ACCOUNT, Bench, USERS};
use crate::support::rights::exactly;

/// From a login that is missing over a rest and a refresh to the end.
#[tokio::test]
async fn every_verb_of_the_role_is_used_and_none_is_missing() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), USERS);
    secrets.delete("app-db", &DeleteParams::default()).await.unwrap();
    let running = bench.start();
    bench.create(&json!({})).await;
    // What fails twice is one event that counts.
    let told = bench.until_event("ReconcileFailed", "Secret app-db not found").await;
    bench.until_counted(&told).await;
    bench.secret("app-db", &bench.pair.app).await;
    let started = bench.until_started().await;
    // Nobody waits for the connector before the pipeline goes: that would take a right on the pipeline's finalizers, where a cluster
    // holds to that (OwnerReferencesPermissionEnforcement).
    let connector = bench.connectors.get(started.connector()).await.unwrap();
    let owners = connector.metadata.owner_references.unwrap();
    assert_eq!((owners.len(), owners[0].block_owner_deletion), (1, None));
    bench.change(&json!({"connectorPaused": true})).await;
    let paused = |data: &serde_json::Value| data["spec"]["state"] == "paused";
    bench.cluster.until(&bench.connectors, started.connector(), paused).await;
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    let operators = bench.cluster.objects("config.openshift.io", "v1", "ClusterOperator");
    bench.cluster.until(&operators, ACCOUNT, |it| it["status"]["conditions"].is_array()).await;
    let process = running.stop(&bench).await;
    exactly(ACCOUNT, &[&process]);
}
