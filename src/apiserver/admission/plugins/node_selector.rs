//! Implements `PodNodeSelector`: adds the node selector of a namespace's annotation to its pods. Off by default.
//!
//! The [settings](super::settings) may give a default selector, and the labels that a namespace's pods may select.

use std::collections::BTreeMap;

use admit_apimachinery::labels;
use serde_json::Value;

use super::alone::{Alone, known_namespace};
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "PodNodeSelector",
    mutate: Some(admit),
    validate: Some(validate),
    alone: Alone::By(known_namespace),
};

const ANNOTATION: &str = "scheduler.alpha.kubernetes.io/node-selector";

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") {
        return Ok(());
    }
    let wanted = agreed(request)?;
    if wanted.is_empty() {
        return validate(request);
    }
    let spec = object::member_mut(object::map_of(request.object_mut()), "spec");
    let selector = object::member_mut(spec, "nodeSelector");
    selector.extend(wanted.into_iter().map(|(key, value)| (key, value.into())));
    selector.sort_keys();
    validate(request)
}

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "pods") {
        return Ok(());
    }
    agreed(request)?;
    let allowed = read(request.live.settings.node_selectors.of(request.namespace()))?;
    let pod = request.object();
    let own = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let is_allowed = |(key, value): (&String, &Value)| allowed.get(key).map(String::as_str) == value.as_str();
    if allowed.is_empty() || own.into_iter().flatten().all(is_allowed) {
        return Ok(());
    }
    let why = "pod node label selector labels conflict with its namespace whitelist";
    Err(Refusal::forbidden(&request.review.call.info, object::name(pod), why))
}

/// Returns the node selector of the namespace; refuses a pod whose own selector conflicts with it.
fn agreed(request: &Request<'_>) -> Result<BTreeMap<String, String>, Refusal> {
    let Some(namespace) = request.stored("namespaces", "", request.namespace()) else {
        return Ok(BTreeMap::new());
    };
    let annotation = object::meta_map(&namespace, "annotations").find(|(key, _)| *key == ANNOTATION);
    let default = request.live.settings.node_selectors.default();
    let wanted = read(annotation.map_or(default, |(_, selector)| selector))?;
    let pod = request.object();
    let own = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let differs = own
        .into_iter()
        .flatten()
        .any(|(key, value)| wanted.get(key).is_some_and(|wanted| value.as_str() != Some(wanted.as_str())));
    if differs {
        let why = "pod node label selector conflicts with its namespace node label selector";
        return Err(Refusal::forbidden(&request.review.call.info, object::name(pod), why));
    }
    Ok(wanted)
}

/// Parses a selector like `a=b,c=d`.
fn read(selector: &str) -> Result<BTreeMap<String, String>, Refusal> {
    let mut read = BTreeMap::new();
    for part in selector.split(',').filter(|_| !selector.is_empty()) {
        let pair = part.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let Some((key, value)) = pair.filter(|(_, value)| !value.contains('=')) else {
            return Err(Refusal::internal(format!("invalid selector: [{}]", part.replace('=', " "))));
        };
        if let Some(problem) = labels::key(key).into_iter().chain(labels::value(value)).next() {
            return Err(Refusal::internal(format!("invalid selector: {key}={value}: {problem}")));
        }
        read.insert(key.to_owned(), value.to_owned());
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Placed, mutated_beside, pod, refused_beside};

    fn namespace(selector: &str) -> [Placed; 1] {
        [("namespaces", json!({"metadata": {"name": "n", "annotations": {ANNOTATION: selector}}}))]
    }

    #[test]
    fn pods_run_where_their_namespace_says() {
        let mut given = pod();
        given["spec"]["nodeSelector"] = json!({"disk": "ssd", "zone": "a"});
        let made =
            mutated_beside(&PLUGIN, "pods", &given, &namespace("zone=a, tier = gold")).unwrap().unwrap();
        assert_eq!(made["spec"]["nodeSelector"], json!({"disk": "ssd", "tier": "gold", "zone": "a"}));
        assert_eq!(
            refused_beside(&PLUGIN, "pods", &given, &namespace("zone=b")),
            "pods \"a\" is forbidden: pod node label selector conflicts with its namespace node label selector"
        );
        assert_eq!(mutated_beside(&PLUGIN, "pods", &given, &namespace("")).unwrap(), None);
    }

    #[test]
    fn what_is_no_selector_is_told() {
        for (selector, told) in [
            ("zone", "invalid selector: [zone]"),
            ("a=b=c", "invalid selector: [a b c]"),
            ("-=a", "invalid selector: -=a: "),
        ] {
            let refused = refused_beside(&PLUGIN, "pods", &pod(), &namespace(selector));
            assert!(refused.contains(told), "{refused}");
        }
    }
}
