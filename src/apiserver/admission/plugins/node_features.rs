//! Implements `NodeDeclaredFeatureValidator`: refuses a change of a running pod that needs a feature its node does not
//! declare in `status.declaredFeatures`.
//!
//! Read from plugin/pkg/admission/nodedeclaredfeatures and k8s.io/component-helpers/nodedeclaredfeatures of Kubernetes
//! 1.36. Of the features there, pod updates need two; the others concern schedulers only.

use admit_apimachinery::go;
use serde_json::Value;

use super::alone::{Alone, known_node};
use super::pods::{items, text};
use super::resources::{Amounts, amounts};
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodeDeclaredFeatureValidator",
    mutate: None,
    validate: Some(validate),
    alone: Alone::By(known_node),
};

/// A feature, and whether the change from the second pod to the first needs it.
type Feature = (&'static str, fn(&Value, &Value) -> bool);

/// The features, sorted by name as refusals list them.
const FEATURES: [Feature; 2] = [
    ("GuaranteedQoSPodCPUResize", resizes_guaranteed_processors),
    ("InPlacePodLevelResourcesVerticalScaling", resizes_as_a_whole),
];

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    let (pod, old) = (request.object(), request.old());
    let name = text(pod, "/spec/nodeName");
    let of_pod = |subresource| request.is(Operation::Update, ("", "pods", subresource));
    if !(of_pod("") || of_pod("resize"))
        || name.is_empty()
        || object::generation(pod) == object::generation(old)
    {
        return Ok(());
    }
    let needed = FEATURES.iter().filter(|(_, needs)| needs(pod, old)).map(|(feature, _)| *feature);
    let needed: Vec<&str> = needed.collect();
    if needed.is_empty() {
        return Ok(());
    }
    let Some(node) = request.stored("nodes", "", name) else {
        return Err(request.forbidden(&format!("node {} not found", go::quote(name))));
    };
    let declares = |feature: &str| items(&node, "/status/declaredFeatures").any(|known| known == feature);
    let missing: Vec<&str> = needed.into_iter().filter(|feature| !declares(feature)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(request.forbidden(&format!(
        "pod update requires features {} which are not available on node {}",
        missing.join(", "),
        go::quote(name)
    )))
}

/// Returns whether the CPU requests of a container change in a pod of the QoS class Guaranteed.
fn resizes_guaranteed_processors(pod: &Value, old: &Value) -> bool {
    if text(old, "/status/qosClass") != "Guaranteed" {
        return false;
    }
    let mut containers = items(old, "/spec/containers").zip(items(pod, "/spec/containers"));
    containers.any(|(before, now)| {
        let [before, now] = [before, now].map(|container| amounts(container, "/resources/requests"));
        differ(&before, &now, "cpu")
    })
}

/// Returns whether the pod-level resources change.
fn resizes_as_a_whole(pod: &Value, old: &Value) -> bool {
    let whole = |pod: &Value| pod.pointer("/spec/resources").is_some_and(|resources| !resources.is_null());
    whole(pod) != whole(old)
        || ["/spec/resources/requests", "/spec/resources/limits"].into_iter().any(|side| {
            let (before, now) = (amounts(old, side), amounts(pod, side));
            before.len() != now.len() || before.keys().any(|name| differ(&before, &now, name))
        })
}

/// Returns whether the amounts of a resource differ; a missing amount equals zero.
fn differ(before: &Amounts<'_>, now: &Amounts<'_>, name: &str) -> bool {
    match (before.get(name), now.get(name)) {
        (Some(before), Some(now)) => before.compare(now).is_ne(),
        (None, None) => false,
        (Some(one), None) | (None, Some(one)) => one.scaled_value(9) != 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Asked, pod};
    use crate::resources::Subresource;

    /// Returns the refusal of a changed pod on a node that declares these features, if it is refused.
    fn told(features: &Value, change: impl Fn(&mut Value)) -> Option<String> {
        let node = json!({"metadata": {"name": "n"}, "status": {"declaredFeatures": features}});
        let stored = [("nodes", node)];
        let mut old = pod();
        old["spec"]["nodeName"] = json!("n");
        old["metadata"]["generation"] = json!(1);
        old["status"]["qosClass"] = json!("Guaranteed");
        old["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
        let mut new = old.clone();
        new["metadata"]["generation"] = json!(2);
        change(&mut new);
        let asked = Asked {
            old: Some(&old),
            subresource: Some(Subresource::Resize),
            ..Asked::create("pods", &new, &stored)
        };
        let refusal = asked.of(&PLUGIN).err()?.to_value();
        refusal["message"].as_str().map(str::to_owned)
    }

    #[test]
    fn nodes_declare_what_a_resize_needs() {
        let cpu = |pod: &mut Value| pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("2");
        let same =
            |pod: &mut Value| pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("1000m");
        let whole = |pod: &mut Value| pod["spec"]["resources"] = json!({"limits": {"cpu": "2"}});
        let missing = |features: &str| {
            format!(
                "pods \"a\" is forbidden: pod update requires features {features} which are not available on node \"n\""
            )
        };
        assert_eq!(told(&json!([]), cpu), Some(missing("GuaranteedQoSPodCPUResize")));
        assert_eq!(told(&json!(["GuaranteedQoSPodCPUResize"]), cpu), None);
        assert_eq!(told(&json!([]), same), None);
        assert_eq!(told(&json!(null), whole), Some(missing("InPlacePodLevelResourcesVerticalScaling")));
        let both = |pod: &mut Value| {
            cpu(pod);
            whole(pod);
        };
        assert_eq!(
            told(&json!([]), both),
            Some(missing("GuaranteedQoSPodCPUResize, InPlacePodLevelResourcesVerticalScaling"))
        );
    }
}
