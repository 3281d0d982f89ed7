//! Other programs.

use std::process::Command;

use admit_testing::TestCluster;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::warmed::{self, maps};

async fn by_kubeconfig(text: &str) -> Client {
    let kubeconfig = Kubeconfig::from_yaml(text).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kubeconfig_leads_to_the_cluster_of_now() {
    let cluster = warmed::cluster(0, 4).await;
    let text = cluster.kubeconfig().await.unwrap();
    let client = by_kubeconfig(&text).await;
    assert_eq!(maps(&client).list(&ListParams::default()).await.unwrap().items.len(), 4);
    cluster.reset().await;
    assert_eq!(maps(&client).list(&ListParams::default()).await.unwrap().items.len(), 0);
    assert_eq!(cluster.kubeconfig().await.unwrap(), text);
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_reads_what_a_test_wrote() {
    if Command::new("kubectl").args(["version", "--client"]).output().is_err() {
        return testing::skip(testing::Need::Kubectl, "kubectl is not on the PATH");
    }
    let cluster = TestCluster::start().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kubeconfig");
    std::fs::write(&path, cluster.kubeconfig().await.unwrap()).unwrap();
    let asked = tokio::process::Command::new("kubectl")
        .env("KUBECONFIG", &path)
        .env("HOME", folder.path())
        .args(["get", "namespaces", "-o", "name"])
        .output()
        .await
        .unwrap();
    let text = String::from_utf8(asked.stdout).unwrap();
    assert!(text.contains("namespace/default"), "{text}{}", String::from_utf8_lossy(&asked.stderr));
}
