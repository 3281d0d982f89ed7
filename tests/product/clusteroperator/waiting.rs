//! `admit wait-operators` against the embedded API server.

use std::process::{Command, Output};
use std::sync::Arc;

use kube::api::PostParams;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tower::util::MapRequestLayer;

use super::bench::{Bench, available, manifest};
use crate::output_schemas::schema;
use crate::support::json_schema::complaints;
use admit::controllers::clusteroperator::crd::{ClusterOperator, ClusterOperatorSpec};

/// A server on a port, with a kubeconfig for it in a folder of its own.
struct Reachable {
    bench: Bench,
    folder: tempfile::TempDir,
    /// Somebody watches.
    watched: Arc<Notify>,
}

impl Reachable {
    async fn new() -> Self {
        let bench = Bench::new().await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{}", listener.local_addr().unwrap())}}],
            "users": [{"name": "c", "user": {}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        });
        let watched = Arc::new(Notify::new());
        let told = Arc::clone(&watched);
        let router =
            bench.server.router().layer(MapRequestLayer::new(move |request: axum::extract::Request| {
                if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                    told.notify_one();
                }
                request
            }));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), config.to_string()).unwrap();
        Self { bench, folder, watched }
    }

    /// What the command makes of it, and its one document.
    async fn waited(&self, flags: &[&str]) -> (Output, Value) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
        command.args(["wait-operators", "-o", "json", "--payload"]).arg(self.bench.payload.path());
        command.arg("--kubeconfig").arg(self.folder.path().join("kubeconfig")).args(flags);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        let document =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        assert_eq!(complaints(&schema("wait-operators"), &document), Vec::<String>::new());
        (output, document)
    }

    async fn create(&self, name: &str, status: Value) {
        let named = ClusterOperator::new(name, ClusterOperatorSpec {});
        self.bench.operators().create(&PostParams::default(), &named).await.unwrap();
        self.bench.report(name, status).await;
    }
}

fn degraded() -> Value {
    let mut status = available();
    status["conditions"][2]["status"] = "True".into();
    status
}

/// Each with its reason, null where it is well.
fn reasons(document: &Value) -> Vec<(&str, &Value)> {
    let operators = document["operators"].as_array().unwrap().iter();
    operators.map(|one| (one["name"].as_str().unwrap(), &one["reason"])).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn co_03_all_that_are_not_well_are_listed_when_the_time_is_over() {
    let cluster = Reachable::new().await;
    ["dns", "etcd", "ingress", "network"].iter().for_each(|name| cluster.bench.announce(name));
    cluster.create("dns", available()).await;
    cluster.create("etcd", degraded()).await;
    let mut old = available();
    old["versions"][0]["version"] = "4.4.9".into();
    cluster.create("ingress", old).await;
    let (output, document) = cluster.waited(&["--timeout", "2s"]).await;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("the time is over: 3 ClusterOperators not well (MultipleErrors)"), "{error}");
    let [degraded, updating, missing] =
        ["ClusterOperatorDegraded", "ClusterOperatorUpdating", "ClusterOperatorNotFound"].map(Value::from);
    let expected =
        [("dns", &Value::Null), ("etcd", &degraded), ("ingress", &updating), ("network", &missing)];
    assert_eq!((reasons(&document), &document["well"]), (expected.to_vec(), &json!(false)));
    assert_eq!(
        document["operators"][2]["message"],
        "Cluster operator ingress is updating versions: operator to 4.5.0"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn co_03_the_wait_ends_with_the_last_report() {
    let cluster = Reachable::new().await;
    ["dns", "etcd"].iter().for_each(|name| cluster.bench.announce(name));
    cluster.create("etcd", available()).await;
    let reported = async {
        // What is reported from here on is only known from the watch.
        cluster.watched.notified().await;
        cluster.create("dns", available()).await;
    };
    let ((output, document), ()) = tokio::join!(cluster.waited(&["--timeout", "2m"]), reported);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!((&document["well"], &document["reason"]), (&json!(true), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn co_03_while_the_cluster_is_made_being_degraded_is_only_told() {
    let cluster = Reachable::new().await;
    cluster.bench.announce("dns");
    cluster.create("dns", degraded()).await;
    let (output, document) = cluster.waited(&["--initializing", "--timeout", "2m"]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let operator = &document["operators"][0];
    assert_eq!((&operator["well"], &operator["degraded"]), (&json!(true), &json!(true)));
    assert_eq!(operator["message"], "Cluster operator dns is degraded");
}

#[test]
fn co_03_a_payload_without_cluster_operators_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut other = manifest("dns");
    other["kind"] = "Other".into();
    std::fs::write(folder.path().join("other.json"), other.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    let output = command.args(["wait-operators", "--payload"]).arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("has no manifest of a ClusterOperator"), "{error}");
}

/// One that cannot be read may be one that is to be waited for: that the others are well says nothing.
#[test]
fn co_03_a_payload_with_mistakes_is_refused_with_file_and_line() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), manifest("dns").to_string()).unwrap();
    std::fs::write(folder.path().join("b.yaml"), "a: 1\nb: [\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    let output = command.args(["wait-operators", "--payload"]).arg(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("b.yaml:") && error.contains("mend the payload"), "{error}");
}
