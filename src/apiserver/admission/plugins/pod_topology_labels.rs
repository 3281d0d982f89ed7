//! Implements `PodTopologyLabels`: copies the zone and region labels of the node to a pod that is bound to it.

use serde_json::{Map, Value};

use super::alone::Alone;
use super::pods::text;
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "PodTopologyLabels", mutate: Some(admit), validate: None, alone: Alone::Acts };

const COPIED: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    let node = if request.creates("", "pods") {
        text(request.object(), "/spec/nodeName")
    } else if request.is(Operation::Create, ("", "pods", "binding"))
        && text(request.object(), "/target/kind") == "Node"
    {
        // The labels of a binding are copied to its pod.
        text(request.object(), "/target/name")
    } else {
        ""
    };
    if node.is_empty() {
        return Ok(());
    }
    let Some(node) = request.stored("nodes", "", node) else { return Ok(()) };
    // The node's labels override those in the pod or the binding.
    let copied: Map<String, Value> = object::meta_map(&node, "labels")
        .filter(|(key, _)| COPIED.contains(key))
        .map(|(key, value)| (key.to_owned(), value.into()))
        .collect();
    if !copied.is_empty() {
        let labels = object::member_mut(object::meta_mut(request.object_mut()), "labels");
        labels.extend(copied);
        labels.sort_keys();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Asked, pod};
    use crate::resources::Subresource;

    #[test]
    fn pods_are_where_their_node_is() {
        let node = json!({"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z",
            "topology.kubernetes.io/region": "r", "topology.k8s.io/zone": "other", "disk": "ssd"}}});
        let stored = [("nodes", node)];
        let mut on_node = pod();
        on_node["spec"]["nodeName"] = json!("n");
        on_node["metadata"]["labels"] = json!({"a": "b", "topology.kubernetes.io/region": "own"});
        let made = Asked::create("pods", &on_node, &stored).of(&PLUGIN).unwrap().0.unwrap();
        assert_eq!(
            made["metadata"]["labels"],
            json!({"a": "b", "topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"})
        );
        assert_eq!(Asked::create("pods", &pod(), &stored).of(&PLUGIN).unwrap().0, None);
        let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}});
        let asked =
            Asked { subresource: Some(Subresource::Binding), ..Asked::create("pods", &binding, &stored) };
        let made = asked.of(&PLUGIN).unwrap().0.unwrap();
        assert_eq!(
            made["metadata"]["labels"],
            json!({"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"})
        );
    }
}
