//! Gathers Nodes without what identifies the machines: hardware ids and foreign labels are replaced by `x`, foreign annotations
//! are emptied, and the image list is dropped.

use futures::FutureExt;
use serde_json::{Map, Value};

use super::super::anonymize;
use super::super::failure::Failure;
use super::super::gatherer::{Context, Gatherer, Run};
use super::super::lister::{self, Resource};
use super::{name, tell};

pub(super) const ROW: Gatherer = Gatherer {
    id: "clusterconfig/nodes",
    collects: "all nodes, anonymised",
    path: "config/node/{name}.json",
    run: Run::Alone(|context| gather(context).boxed()),
};

const RESOURCE: Resource = Resource { group: "", version: "v1", kind: "Node", plural: "nodes" };
const CAP: usize = 5000;

async fn gather(context: Context) -> Result<(), Failure> {
    let mut listing = lister::list(&context, RESOURCE).capped(CAP);
    while let Some(mut node) = listing.next().await? {
        hide_identity(&mut node);
        context.json(format!("config/node/{}", name(&node)), node).await?;
    }
    tell(&context, &listing);
    Ok(())
}

fn hide_identity(node: &mut Value) {
    for (key, value) in entries(node, "/metadata/annotations") {
        if !is_product(key) {
            *value = Value::String(String::new());
        }
    }
    for (key, value) in entries(node, "/metadata/labels") {
        if !is_product(key) || is_region(key) {
            *value = Value::String(anonymize::string(value.as_str().unwrap_or_default()));
        }
    }
    for id in ["bootID", "systemUUID", "machineID"] {
        anonymize::field(node, &format!("/status/nodeInfo/{id}"), anonymize::string);
    }
    if let Some(status) = node.get_mut("status").and_then(Value::as_object_mut) {
        status.shift_remove("images");
    }
}

fn entries<'a>(node: &'a mut Value, pointer: &str) -> impl Iterator<Item = (&'a String, &'a mut Value)> {
    node.pointer_mut(pointer).and_then(Value::as_object_mut).into_iter().flat_map(Map::iter_mut)
}

/// Whether a key is set by the platform itself.
fn is_product(key: &str) -> bool {
    ["openshift.io/", "k8s.io/", "kubernetes.io/"].iter().any(|domain| key.contains(domain))
}

fn is_region(key: &str) -> bool {
    key.ends_with("kubernetes.io/region") || key.ends_with("kubernetes.io/zone")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn dg_08_11_identity_is_hidden_and_product_facts_stay() {
        let mut node = json!({
            "metadata": {
                "annotations": {"k8s.io/a": "1", "corp.example/rack": "r7"},
                "labels": {"kubernetes.io/os": "linux", "topology.kubernetes.io/region": "eu-1", "team": "blue"},
            },
            "status": {"images": [1], "nodeInfo": {"bootID": "ab", "machineID": "c", "kernelVersion": "6.1"}},
        });
        hide_identity(&mut node);
        assert_eq!(
            node,
            json!({
                "metadata": {
                    "annotations": {"k8s.io/a": "1", "corp.example/rack": ""},
                    "labels": {"kubernetes.io/os": "linux", "topology.kubernetes.io/region": "xxxx", "team": "xxxx"},
                },
                "status": {"nodeInfo": {"bootID": "xx", "machineID": "x", "kernelVersion": "6.1"}},
            })
        );
    }
}
