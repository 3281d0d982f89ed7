//! Implements `TaintNodesByCondition`: taints a new node as not ready, so that no pods are scheduled to it yet.

use serde_json::{Value, json};

use super::alone::Alone;
use super::pods::{items, text};
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "TaintNodesByCondition", mutate: Some(admit), validate: None, alone: Alone::WhereAsked };

const NOT_READY: &str = "node.kubernetes.io/not-ready";

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    let is_tainted =
        |taint: &Value| text(taint, "/key") == NOT_READY && text(taint, "/effect") == "NoSchedule";
    if !request.creates("", "nodes") || items(request.object(), "/spec/taints").any(is_tainted) {
        return Ok(());
    }
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    let spec = object::member_mut(object::map_of(request.object_mut()), "spec");
    match spec.get_mut("taints").and_then(Value::as_array_mut) {
        Some(taints) => taints.push(taint),
        None => {
            spec.insert("taints".to_owned(), json!([taint]));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::plugins::tests::mutated;

    #[test]
    fn new_nodes_are_not_ready() {
        let own = json!({"key": "a", "effect": "NoExecute"});
        let node = json!({"metadata": {"name": "a"}, "spec": {"taints": [own]}});
        let made = mutated(&PLUGIN, "nodes", &node).unwrap().unwrap();
        assert_eq!(made["spec"]["taints"], json!([own, {"key": NOT_READY, "effect": "NoSchedule"}]));
        assert_eq!(mutated(&PLUGIN, "nodes", &made), Ok(None));
    }
}
