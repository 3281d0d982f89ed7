//! Family `bindings`: uses another namespace or name that the policy excludes, or missing params.
//!
//! The effect is the same where the same object is admitted elsewhere: in a namespace whose labels no binding selects, under a name
//! that rules exclude, or where no param is found and that is allowed.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::ask::Ask;
use super::super::finding::Family;
use super::super::scene::{Neighbour, Scene};
use super::super::selectors::Requirement;

/// The name of a namespace that exists in no given document.
const ELSEWHERE: &str = "elsewhere";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

pub(super) fn find(scene: &Scene<'_>, out: &mut Vec<Neighbour>) {
    for selector in scene.selectors {
        let (origin, resources) = (&selector.origin, &selector.resources);
        let is_namespaced = !scene.base.namespace.is_empty();
        for requirement in selector.namespaces.iter().filter(|_| is_namespaced) {
            let ask = in_namespace(scene.base, Some(requirement));
            let namespace = &ask.namespace;
            let what = format!(
                "namespace {namespace}, by its label {}, is left out by {resources}.namespaceSelector",
                requirement.key
            );
            out.extend(elsewhere(scene, &ask, format!("{resources}.namespaceSelector"), what));
        }
        for name in &selector.left_out {
            let ask = scene.base.named(name);
            let what = format!("the name {name} is left out by {resources}.excludeResourceRules");
            out.extend(elsewhere(scene, &ask, format!("{resources}.excludeResourceRules"), what));
        }
        if selector.params_of_namespace && is_namespaced {
            let ask = in_namespace(scene.base, None);
            let what = format!("namespace {} has no params, which {origin}.paramRef allows", ask.namespace);
            out.extend(elsewhere(scene, &ask, format!("{origin}.paramRef.parameterNotFoundAction"), what));
        } else if selector.params_may_miss {
            let mut ask = scene.base.clone();
            ask.existing.retain(|object| object.get("kind") == Some(&json!("Namespace")));
            let what = format!("without params it is admitted, which {origin}.paramRef allows");
            if ask.existing != scene.base.existing {
                out.extend(elsewhere(
                    scene,
                    &ask,
                    format!("{origin}.paramRef.parameterNotFoundAction"),
                    what,
                ));
            }
        }
    }
}

fn elsewhere(scene: &Scene<'_>, ask: &Ask, path: String, what: String) -> Option<Neighbour> {
    scene.is_admitted(ask, &scene.offence.path).then(|| Neighbour {
        family: Family::Bindings,
        path,
        what,
        ask: ask.clone(),
        first: None,
    })
}

/// Returns the request in another namespace, whose labels fail the requirement.
fn in_namespace(base: &Ask, missed: Option<&Requirement>) -> Ask {
    let label = missed.and_then(|requirement| Some((requirement.key.clone(), requirement.missed()?)));
    let name = match &label {
        Some((key, value)) if key == NAME_LABEL => value.clone(),
        _ => ELSEWHERE.to_owned(),
    };
    let mut labels = json!({NAME_LABEL: name});
    if let (Some(labels), Some((key, value))) = (labels.as_object_mut(), label) {
        labels.insert(key, json!(value));
    }
    let namespace: Value =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    let mut ask = base.placed(&name);
    ask.existing.push(Arc::new(namespace));
    ask
}
