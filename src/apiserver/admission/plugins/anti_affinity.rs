//! Implements `LimitPodHardAntiAffinityTopology`: required pod anti-affinity may only use the hostname topology. Off by default.

use super::alone::Alone;
use super::pods::{items, text};
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "LimitPodHardAntiAffinityTopology",
    mutate: None,
    validate: Some(validate),
    alone: Alone::Acts,
};

const NODE: &str = "kubernetes.io/hostname";
const TERMS: &str = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") && !request.updates("", "pods") {
        return Ok(());
    }
    let pod = request.object();
    let Some(other) = items(pod, TERMS).map(|term| text(term, "/topologyKey")).find(|key| *key != NODE)
    else {
        return Ok(());
    };
    let why = format!(
        "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {other} but only key {NODE} is allowed"
    );
    Err(Refusal::forbidden(&request.review.call.info, object::name(pod), &why))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{mutated, pod, refused};

    #[test]
    fn zones_cannot_be_had_alone() {
        let with = |key: &str| {
            let mut pod = pod();
            pod["spec"]["affinity"] = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                [{"topologyKey": NODE}, {"topologyKey": key}]}});
            pod
        };
        assert_eq!(mutated(&PLUGIN, "pods", &with(NODE)).unwrap(), None);
        assert_eq!(
            refused(&PLUGIN, "pods", &with("topology.kubernetes.io/zone")),
            "pods \"a\" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey \
             topology.kubernetes.io/zone but only key kubernetes.io/hostname is allowed"
        );
    }
}
