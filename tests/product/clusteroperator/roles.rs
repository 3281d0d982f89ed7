//! The role of the primer in `deploy/`: every verb of it is used, and none is missing.

use admit::controllers::clusteroperator::{Settings, member};
use admit::controllers::kit::manager::Manager;
use kube::api::DeleteParams;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::bench::manifest;
use super::races::refused;
use crate::support::cluster::PATIENCE;
use crate::support::rights::exactly;
use crate::support::shipped::api;
use crate::support::testcluster::{NAMESPACE, TestCluster};

/// From a folder and a ConfigMap, with one that is refused before it is made.
#[tokio::test]
async fn every_verb_of_the_role_is_used_and_none_is_missing() {
    let cluster = TestCluster::new().await;
    for document in refused("dns") {
        cluster.create(&document).await;
    }
    let payload = tempfile::tempdir().unwrap();
    std::fs::write(payload.path().join("dns.json"), manifest("dns").to_string()).unwrap();
    let data = json!({"network.json": manifest("network").to_string()});
    let named = ("clusteroperator-payload", NAMESPACE);
    cluster
        .create(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": named.0, "namespace": named.1}, "data": data}))
        .await;
    let settings = Settings::of_config_map(Some((named.1.to_owned(), named.0.to_owned())));
    let settings = Settings { payload: Some(payload.path().to_owned()), ..settings };
    let account = cluster.process("admit-clusteroperator");
    let primer = member(account.client.clone(), settings).unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn(Manager::new(account.client.clone(), None).with(primer).run(stop.clone()));
    let operators = cluster.objects("config.openshift.io", "v1", "ClusterOperator");
    let said = |object: &serde_json::Value| object["status"]["conditions"].is_array();
    cluster.until(&operators, "network", said).await;
    // What fails twice is one event that counts.
    let counted = async {
        while !account.wire.asked().iter().any(|it| (it.verb, &*it.resource) == ("patch", "events")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.unwrap();
    let version = "admissionregistration.k8s.io/v1";
    let bindings = api(&cluster.admin, version, "ValidatingAdmissionPolicyBinding");
    bindings.delete("refusing", &DeleteParams::default()).await.unwrap();
    for name in ["dns", "admit-clusteroperator"] {
        cluster.until(&operators, name, said).await;
    }
    stop.cancel();
    tokio::time::timeout(PATIENCE, running).await.unwrap().unwrap().unwrap();
    exactly("admit-clusteroperator", &[&account]);
}
