//! Ends terminating namespaces: deletes everything in them first.

use std::collections::BTreeMap;

use serde_json::json;

use super::graph::Node;
use crate::call::{Call, DeleteOptions, ListOptions, Propagation};
use crate::object;
use crate::registry::Registry;
use crate::status::Refusal;

impl Registry {
    pub(super) async fn empty_namespaces(&self) -> Result<(), Refusal> {
        let served = self.served();
        let Some(info) = served.table.find("", "v1", "namespaces") else { return Ok(()) };
        let call = self.own_call(info, "");
        let namespaces = self.list_unconverted(&call, &ListOptions::default())?.items;
        let going: Vec<&str> =
            namespaces.iter().filter(|one| object::is_terminating(one)).map(object::name).collect();
        if going.is_empty() {
            return Ok(());
        }
        let Ok(graph) = self.graph() else {
            self.collector.poke();
            return Ok(());
        };
        let mut content: BTreeMap<&str, Vec<&Node>> = BTreeMap::new();
        for node in &graph.nodes {
            content.entry(node.call.namespace.as_str()).or_default().push(node);
        }
        for name in going {
            let nodes = content.get(name).map(Vec::as_slice).unwrap_or_default();
            self.empty_namespace(&call, name, nodes).await?;
        }
        Ok(())
    }

    async fn empty_namespace(&self, call: &Call, name: &str, nodes: &[&Node]) -> Result<(), Refusal> {
        let at_once = |node: &Node| DeleteOptions {
            grace_period_seconds: Some(0),
            propagation: Some(Propagation::Background),
            uid: Some(node.uid.clone()),
            ..DeleteOptions::default()
        };
        let deleted: Vec<_> = nodes.iter().map(|node| (*node, at_once(node))).collect();
        self.delete_together(&deleted).await?;
        if nodes.iter().any(|node| self.store.kept(&node.call.key(&node.name)).is_some()) {
            return Ok(());
        }
        self.ignore_races(
            self.amend(call, name, |namespace| namespace["spec"]["finalizers"] = json!([])).await,
        )
    }
}
