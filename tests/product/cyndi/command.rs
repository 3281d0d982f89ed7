//! `admit cyndi` against the embedded API server and a real PostgreSQL: it tells what the controllers would find and do, and does
//! nothing.

use std::process::{Command, Output};

use serde_json::{Value, json};

use super::bench::Bench;
use crate::output_schemas::schema;
use crate::support::json_schema::complaints;

/// What the command makes of the pipeline `app`: exit code and document.
async fn looked(bench: &Bench, what: &'static str) -> (Output, Value) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", listener.local_addr().unwrap())}}],
        "users": [{"name": "c", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
    });
    let router = bench.cluster.router();
    let serving = tokio::spawn(async move { axum::serve(listener, router).await });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    std::fs::write(&file, config.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["cyndi", what, "app", "-n", "apps", "-o", "json", "--kubeconfig"]).arg(&file);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    serving.abort();
    let document =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    assert_eq!(complaints(&schema(&format!("cyndi-{what}")), &document), Vec::<String>::new());
    (output, document)
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_and_validations_are_told_and_nothing_is_done() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1, 2, 3]).await;
    bench.create(&json!({})).await;
    let (output, document) = looked(&bench, "plan").await;
    assert_eq!(
        (output.status.code(), &document["state"], &document["step"]),
        (Some(1), &json!("NEW"), &json!("start"))
    );
    assert!(bench.pair.relations().await.is_empty() && bench.connectors().await.is_empty());

    let running = bench.start();
    let started = bench.until_started().await;
    running.stop(&bench).await;
    bench.pair.fill(started.table(), [1, 2, 4]).await;
    let (output, document) = looked(&bench, "plan").await;
    assert_eq!((output.status.code(), &document["step"]), (Some(0), &json!("nothing")));
    let before = bench.pipelines.get("app").await.unwrap().metadata.resource_version;
    let (output, document) = looked(&bench, "validate").await;
    assert_eq!((output.status.code(), &document["mismatches"]), (Some(1), &json!(2)));
    assert_eq!(document["message"], "Validation failed - 2 hosts (66.67%) do not match");
    assert_eq!(document["missing"][0].as_str().unwrap(), crate::support::postgres::uuid(3).to_string());
    assert_eq!(document["superfluous"][0].as_str().unwrap(), crate::support::postgres::uuid(4).to_string());
    assert_eq!(bench.pipelines.get("app").await.unwrap().metadata.resource_version, before);
}
