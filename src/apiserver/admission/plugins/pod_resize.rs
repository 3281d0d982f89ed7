//! Implements `PodResizeValidator`: refuses resizes beyond the allocatable resources of the node, and on nodes other than Linux.

use admit_apimachinery::go;

use super::alone::{Alone, known_node};
use super::pods::text;
use super::resources::{amounts, of_pod};
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::object;
use crate::status::{Cause, Refusal};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "PodResizeValidator",
    mutate: None,
    validate: Some(validate),
    alone: Alone::By(known_node),
};

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    let (pod, old) = (request.object(), request.old());
    let name = text(pod, "/spec/nodeName");
    if !request.is(Operation::Update, ("", "pods", "resize"))
        || name.is_empty()
        || object::generation(pod) == object::generation(old)
    {
        return Ok(());
    }
    let quoted = go::quote(name);
    let Some(node) = request.stored("nodes", "", name) else {
        return Err(request.forbidden(&format!("node {quoted} not found")));
    };
    let because = |reason: &'static str, why: &str| {
        let cause = Cause { reason: reason.into(), field: String::new(), message: String::new() };
        request.forbidden(why).caused_by(cause)
    };
    let (asked, there) = (of_pod(pod, "requests"), amounts(&node, "/status/allocatable"));
    // CPU is compared in thousandths.
    let short: Vec<String> = [("cpu", 3), ("memory", 0)]
        .into_iter()
        .filter_map(|(resource, digits)| {
            let [asked, there] = [&asked, &there]
                .map(|amounts| amounts.get(resource).map_or(0, |amount| amount.scaled_value(digits)));
            (asked > there).then(|| format!("{resource}, requested: {asked}, allocatable: {there}"))
        })
        .collect();
    if !short.is_empty() {
        let why = format!("Node didn't have enough allocatable resources: {}", short.join("; "));
        return Err(because("NodeCapacity", &why));
    }
    let system = object::label(&node, "kubernetes.io/os").unwrap_or_default();
    if system != "linux" {
        let why =
            format!("pod resize is only supported on linux nodes, node {quoted} is {}", go::quote(system));
        return Err(because("UnsupportedPlatform", &why));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::admission::plugins::tests::{Asked, pod};
    use crate::resources::Subresource;

    #[test]
    fn pods_grow_no_further_than_their_node() {
        let told = |cpu: &str, memory: &str, system: &str| -> Option<Value> {
            let node = json!({"metadata": {"name": "n", "labels": {"kubernetes.io/os": system}},
                "status": {"allocatable": {"cpu": "2", "memory": "1Gi"}}});
            let stored = [("nodes", node)];
            let mut old = pod();
            old["spec"]["nodeName"] = json!("n");
            old["metadata"]["generation"] = json!(1);
            let mut new = old.clone();
            new["metadata"]["generation"] = json!(2);
            new["spec"]["containers"][0]["resources"] = json!({"requests": {"cpu": cpu, "memory": memory}});
            let asked = Asked {
                old: Some(&old),
                subresource: Some(Subresource::Resize),
                ..Asked::create("pods", &new, &stored)
            };
            asked.of(&PLUGIN).err().map(|refusal| refusal.to_value())
        };
        assert_eq!(told("2", "1Gi", "linux"), None);
        let status = told("2500m", "2Gi", "linux").unwrap();
        assert_eq!(
            status["message"],
            "pods \"a\" is forbidden: Node didn't have enough allocatable resources: cpu, requested: 2500, \
             allocatable: 2000; memory, requested: 2147483648, allocatable: 1073741824"
        );
        assert_eq!(status["details"]["causes"], json!([{"reason": "NodeCapacity"}]));
        let status = told("1", "1Gi", "windows").unwrap();
        assert_eq!(
            status["message"],
            "pods \"a\" is forbidden: pod resize is only supported on linux nodes, node \"n\" is \"windows\""
        );
    }
}
