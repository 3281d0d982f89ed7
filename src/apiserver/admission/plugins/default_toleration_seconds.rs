//! Implements `DefaultTolerationSeconds`: pods tolerate a node that is not ready or unreachable for five minutes.

use serde_json::{Value, json};

use super::alone::Alone;
use super::pods::items;
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "DefaultTolerationSeconds",
    mutate: Some(admit),
    validate: None,
    alone: Alone::WhereAsked,
};

const TAINTS: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const SECONDS: i64 = 300;

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") && !request.updates("", "pods") {
        return Ok(());
    }
    let missing: Vec<&str> =
        TAINTS.into_iter().filter(|taint| !is_tolerated(request.object(), taint)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let spec = object::member_mut(object::map_of(request.object_mut()), "spec");
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    if tolerations.is_null() {
        *tolerations = json!([]);
    }
    if let Some(tolerations) = tolerations.as_array_mut() {
        tolerations.extend(missing.into_iter().map(|taint| {
            json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS})
        }));
    }
    Ok(())
}

fn is_tolerated(pod: &Value, taint: &str) -> bool {
    items(pod, "/spec/tolerations").any(|toleration| {
        let is_one_of = |field: &str, values: [&str; 2]| {
            values.contains(&toleration.get(field).and_then(Value::as_str).unwrap_or_default())
        };
        is_one_of("key", [taint, ""]) && is_one_of("effect", ["NoExecute", ""])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::plugins::tests::{mutated, pod};

    #[test]
    fn what_is_tolerated_is_not_told_again() {
        let tolerations = |own: Value| {
            let mut pod = pod();
            pod["spec"]["tolerations"] = own;
            let changed = mutated(&PLUGIN, "pods", &pod).unwrap();
            changed
                .map(|pod| items(&pod, "/spec/tolerations").map(|one| one["key"].clone()).collect::<Vec<_>>())
        };
        assert_eq!(tolerations(json!(null)), Some(vec![json!(TAINTS[0]), json!(TAINTS[1])]));
        assert_eq!(tolerations(json!([{"operator": "Exists"}])), None);
        let own =
            json!([{"key": TAINTS[0], "operator": "Exists", "effect": "NoSchedule"}, {"key": TAINTS[1]}]);
        assert_eq!(tolerations(own).map(|all| all[2].clone()), Some(json!(TAINTS[0])));
    }
}
