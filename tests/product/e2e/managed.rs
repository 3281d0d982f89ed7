//! `admit serve` that makes its certificates itself, with the rights of the manifests: they are in the Secret, and the API
//! server is given the authority, before the first request comes.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::apiserver::ApiServer;
use super::cluster::{Cluster, said, shipped};
use crate::deploy::base;
use crate::running::client;
use crate::serve::cluster::follows;

/// Two replicas one after the other, with one authority; then, the Secret gone, with another.
pub(super) fn certificates_reach_the_api_server(api: &ApiServer) {
    let cluster = Cluster::new(api);
    let (rights, kubeconfig) = entitled(&cluster);
    let listen = format!("127.0.0.1:{}", testing::free_port().unwrap());
    let policies = shipped("policies");
    let args = ["--listen", &listen, "--kubeconfig", &kubeconfig, "--policies", &policies];
    let start = || cluster.place.start_self_signed(&args);

    // Registered first, as by `kubectl apply -k`, without any caBundle.
    cluster.register_with(listen.rsplit(':').next().unwrap(), None);
    let serving = start();
    denies(&cluster);
    let first = bundle(&cluster);
    assert!(serving.terminate().success());
    let serving = start();
    denies(&cluster);
    assert_eq!(bundle(&cluster), first);
    assert!(serving.terminate().success());

    cluster.works(&["delete", "secret", "admit-self-signed", "--namespace=admit-system"]);
    let serving = start();
    denies(&cluster);
    assert_ne!(bundle(&cluster), first);
    assert!(serving.terminate().success());
    cluster.works(&["delete", "secret", "admit-self-signed", "--namespace=admit-system"]);
    cluster.unregister();
    cluster.works(&["delete", "-f", &rights]);
}

/// Policies and params that are stored in the cluster, changed under it.
pub(super) fn stored_policies_are_followed(api: &ApiServer) {
    let cluster = Cluster::new(api);
    let (rights, kubeconfig) = entitled(&cluster);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime
        .block_on(async { follows(client(&api.kubeconfig()).await, Path::new(&kubeconfig), "admit").await });
    let cluster_wide = "validatingadmissionpolicybinding/short,validatingadmissionpolicy/short,namespace/n";
    for object in cluster_wide.split(',') {
        cluster.works(&["delete", object, "--wait=false"]);
    }
    cluster.works(&["delete", "configmap", "limit", "--namespace=default"]);
    cluster.works(&["delete", "secret", "admit-self-signed", "--namespace=admit-system"]);
    cluster.unregister();
    cluster.works(&["delete", "-f", &rights]);
}

/// The rights that the manifests give a webhook of such certificates, and a kubeconfig by which to have them.
fn entitled(cluster: &Cluster<'_>) -> (String, String) {
    cluster.define();
    let manifests = base(&["certificates=self-managed"]);
    let rights = cluster.place.path("rights.yaml");
    fs::copy(manifests.path().join("deploy/rbac.yaml"), &rights).unwrap();
    let rights = rights.display().to_string();
    let kubeconfig = cluster.as_account("admit", &rights);
    (rights, kubeconfig)
}

fn denies(cluster: &Cluster<'_>) {
    cluster.until(|| said(&cluster.dry_run("periodic-1")), |said| said.contains("names with the prefix"));
}

/// What every webhook of the configuration trusts; the same as the Secret holds.
fn bundle(cluster: &Cluster<'_>) -> String {
    let get = |args: &[&str]| -> Value {
        serde_json::from_str(&cluster.works(&[&["get", "--output=json"], args].concat())).unwrap()
    };
    let configuration = get(&["validatingwebhookconfiguration", "admit"]);
    let secret = get(&["secret", "admit-self-signed", "--namespace=admit-system"]);
    let held = secret["data"]["ca.crt"].as_str().unwrap();
    let webhooks = configuration["webhooks"].as_array().unwrap();
    assert!(webhooks.iter().all(|webhook| webhook["clientConfig"]["caBundle"] == held), "{configuration:#}");
    held.to_owned()
}
