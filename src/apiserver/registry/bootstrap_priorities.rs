//! Creates the priority classes of every cluster at start. Existing ones are not changed.

use serde_json::{Value, json};

use super::Registry;
use crate::call::WriteOptions;
use crate::codec::recheck;
use crate::object;
use crate::status::Refusal;

/// Name, value and description.
const CLASSES: [(&str, i64, &str); 2] = [
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
];

impl Registry {
    /// # Errors
    /// If the store refuses one of them.
    pub(crate) async fn create_priority_classes(&self) -> Result<(), Refusal> {
        let served = self.served();
        let Some(info) = served.table.find("scheduling.k8s.io", "v1", "priorityclasses") else {
            return Ok(());
        };
        let call = self.own_call(info, "").admitted();
        for class in CLASSES.map(class) {
            if self.store.latest(&call.key(object::name(&class))).is_some() {
                continue;
            }
            let received = recheck(info, None, class).map_err(|why| why.refusal(Refusal::internal))?;
            match self.create(&call, received.object, &WriteOptions::own()).await {
                Err(refusal) if refusal.reason() != "AlreadyExists" => return Err(refusal),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns the default class of this name, if there is one.
pub(super) fn named(name: &str) -> Option<Value> {
    CLASSES.into_iter().find(|(known, ..)| *known == name).map(class)
}

fn class((name, value, description): (&str, i64, &str)) -> Value {
    json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
        "value": value, "description": description})
}
