//! One gathering by hand: it ends, too, where there is nothing that it could gather for.

use admit::controllers::datagather::{RunError, run_one};
use serde_json::json;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::runs::{Bench, PODS};
use crate::support::cluster::{DATAGATHERS, PATIENCE};

#[tokio::test]
async fn a_gathering_for_nobody_is_told_at_once() {
    let bench = Bench::new();
    let alone = run_one(bench.cluster.client(), bench.settings(), "nobody", CancellationToken::new());
    let error = timeout(PATIENCE, alone).await.unwrap().expect_err("there is none");
    assert!(matches!(&error, RunError::Missing(name) if name == "nobody"), "{error:?}");
    let words =
        "there is no DataGather `nobody`: create it first, or name one that `kubectl get datagathers` lists";
    assert_eq!(error.to_string(), words);
}

#[tokio::test]
async fn a_gathering_ends_when_its_object_is_deleted() {
    let bench = Bench::new();
    bench.cluster.hold(PODS);
    bench.ask("first", &json!({}));
    let alone = run_one(bench.cluster.client(), bench.settings(), "first", CancellationToken::new());
    let alone = tokio::spawn(alone);
    bench.until_state("first", "Running").await;
    bench.cluster.delete(DATAGATHERS, "first");
    let ended = timeout(PATIENCE, alone).await.unwrap().unwrap();
    assert!(matches!(&ended, Err(RunError::Deleted(name)) if name == "first"), "{ended:?}");
    bench.cluster.release(PODS);
}
