//! A real kube-controller-manager and kube-scheduler, where the machine has them, do their work against `admit envtest`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, iter};

use futures::TryStreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use testing::free_port;

use super::harness::{Process, kubeconfig};
use super::harnesses::Envtest;

const MANAGER: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";

/// Long enough for a busy machine; the test ends as soon as it may.
const PATIENCE: Duration = Duration::from_secs(300);

/// In the folder that KUBEBUILDER_ASSETS names, or on the PATH.
fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    folders
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Starts one of them, as the user that it is in a cluster.
fn start(envtest: &Envtest, program: &Path, more: &[String]) -> Process {
    let name = program.file_name().unwrap().to_str().unwrap();
    let pair = envtest.clients.client(&format!("system:{name}"), "system:components");
    let own = kubeconfig(envtest.ports.1, &envtest.serving.pair.certificate, &pair);
    let file = envtest.place.text(&format!("{name}.kubeconfig"));
    fs::write(&file, serde_json::to_string(&own).unwrap()).unwrap();
    let flags = [
        format!("--kubeconfig={file}"),
        format!("--authentication-kubeconfig={file}"),
        format!("--authorization-kubeconfig={file}"),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--secure-port={}", free_port().unwrap()),
        format!("--cert-dir={}", envtest.place.text(name)),
        "--leader-elect=true".to_owned(),
    ];
    envtest.place.start_program(program, &flags.into_iter().chain(more.iter().cloned()).collect::<Vec<_>>())
}

/// A node without a kubelet, which says of itself that it is ready.
async fn node(client: &Client, name: &str) {
    let nodes: Api<Node> = Api::all(client.clone());
    let node = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is"});
    let status = json!({"status": {"capacity": room, "allocatable": room, "conditions": [ready]}});
    nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// Watches the pods until there are `count` of which `holds`.
async fn pods_that(client: &Client, count: usize, holds: impl Fn(&Pod) -> bool) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mut held = BTreeMap::new();
    let mut watch = Box::pin(pods.watch(&WatchParams::default(), "0").await.unwrap());
    while held.values().filter(|held| **held).count() < count {
        match watch.try_next().await.unwrap() {
            Some(WatchEvent::Added(pod) | WatchEvent::Modified(pod)) => {
                held.insert(pod.name_any(), holds(&pod));
            }
            Some(_) => {}
            None => watch = Box::pin(pods.watch(&WatchParams::default(), "0").await.unwrap()),
        }
    }
}

async fn deployed_and_removed(client: &Client) {
    node(client, "n").await;
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let labels = json!({"app": "web"});
    let web = json!({"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    let web: Deployment = serde_json::from_value(web).unwrap();
    deployments.create(&PostParams::default(), &web).await.unwrap();
    let on_the_node =
        |pod: &Pod| pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some("n"));
    pods_that(client, 2, on_the_node).await;
    deployments.delete("web", &DeleteParams::background()).await.unwrap();
    pods_that(client, 2, |pod| pod.metadata.deletion_timestamp.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deployment_makes_pods_and_takes_them_along() {
    let (Some(manager), Some(scheduler)) = (program(MANAGER), program(SCHEDULER)) else {
        testing::skip(
            testing::Need::ControllerManager,
            "neither KUBEBUILDER_ASSETS nor the PATH has kube-controller-manager and kube-scheduler",
        );
        return;
    };
    let envtest = Envtest::new(&[]);
    let _etcd = envtest.etcd();
    let mut apiserver = envtest.start_apiserver("Node,RBAC", &[]);
    apiserver.wait_for(envtest.ports.1, "/healthz", true);
    let key = envtest.place.path("certificates").join("sa-signer.key");
    let of_manager = [
        "--use-service-account-credentials=true".to_owned(),
        format!("--service-account-private-key-file={}", key.display()),
        // Nobody renews the lease of the node.
        "--node-monitor-grace-period=1h".to_owned(),
    ];
    let manager = start(&envtest, &manager, &of_manager);
    let scheduler = start(&envtest, &scheduler, &[]);
    let client = envtest.client().await;
    let done = tokio::time::timeout(PATIENCE, deployed_and_removed(&client)).await;
    let logs = || iter::once(manager.log()).chain([scheduler.log()]).collect::<Vec<_>>().join("\n");
    assert!(done.is_ok(), "{}", logs());
}
