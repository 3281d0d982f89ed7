//! Creates the Node object that Pods are bound to, and its folder on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;

use super::{MAX_PODS, NODE, RunError, Settings};
use crate::private;

/// The field manager of the Node.
const MANAGER: &str = "admit-local-node";

/// Creates the folder, readable by its owner only, since Pods keep Secrets in it.
pub(super) fn folder(settings: &Settings) -> Result<(), RunError> {
    for path in [settings.folder.clone(), pods(&settings.folder), claims(&settings.folder)] {
        private::make_folder(&path).map_err(|source| RunError::Folder { path, source })?;
    }
    Ok(())
}

/// Returns the folder with a folder for each Pod.
pub(super) fn pods(folder: &Path) -> PathBuf {
    folder.join("pods")
}

/// Returns the folder of claims' volumes, which outlive Pods.
fn claims(folder: &Path) -> PathBuf {
    folder.join("volumes")
}

/// Returns the folder of a claim's volume.
pub(super) fn of_claim(folder: &Path, namespace: &str, claim: &str) -> PathBuf {
    claims(folder).join(namespace).join(claim)
}

/// Returns the labels of the Node, for node selectors.
pub(super) fn labels() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([
        ("kubernetes.io/hostname", NODE),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", arch()),
    ])
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Creates or updates the Node with the condition Ready.
pub(super) async fn register(client: &Client) -> Result<(), RunError> {
    let now = Timestamp::now().strftime("%FT%TZ").to_string();
    let room = json!({"pods": MAX_PODS.to_string()});
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": NODE, "labels": labels()},
    });
    let status = json!({"apiVersion": "v1", "kind": "Node", "status": {
        "capacity": room, "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": NODE}],
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "Pods run as processes of this machine",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }],
        "nodeInfo": {
            "architecture": arch(), "operatingSystem": "linux", "bootID": "", "containerRuntimeVersion": "admit://",
            "kernelVersion": "", "kubeProxyVersion": "", "kubeletVersion": "v1.36.2+admit", "machineID": "", "osImage": "",
            "systemUUID": "",
        },
    }});
    let nodes: Api<Node> = Api::all(client.clone());
    let params = PatchParams::apply(MANAGER).force();
    let refused = |error| RunError::Node(Box::new(error));
    nodes.patch(NODE, &params, &Patch::Apply(&node)).await.map_err(refused)?;
    nodes.patch_status(NODE, &params, &Patch::Apply(&status)).await.map_err(refused)?;
    Ok(())
}
