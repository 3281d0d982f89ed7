//! Implements `DefaultStorageClass` and `DefaultIngressClass`: set the default class on an object that names none.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::Value;

use super::alone::Alone;
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const STORAGE: Plugin =
    Plugin { name: "DefaultStorageClass", mutate: Some(admit_claim), validate: None, alone: Alone::Acts };

pub(super) const INGRESS: Plugin =
    Plugin { name: "DefaultIngressClass", mutate: Some(admit_ingress), validate: None, alone: Alone::Acts };

/// The annotations that named a class before there were fields for it.
const CLASS_OF_CLAIM: &str = "volume.beta.kubernetes.io/storage-class";
const CLASS_OF_INGRESS: &str = "kubernetes.io/ingress.class";
/// The annotations that mark a class as the default.
const DEFAULT_STORAGE: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const DEFAULT_INGRESS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

fn admit_claim(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !request.creates("", "persistentvolumeclaims") {
        return Ok(());
    }
    fill(request, ("storageClassName", CLASS_OF_CLAIM), ("storageclasses", &DEFAULT_STORAGE))
}

fn admit_ingress(request: &mut Request<'_>) -> Result<(), Refusal> {
    if !request.creates("networking.k8s.io", "ingresses") {
        return Ok(());
    }
    fill(request, ("ingressClassName", CLASS_OF_INGRESS), ("ingressclasses", &DEFAULT_INGRESS))
}

fn fill(
    request: &mut Request<'_>,
    (field, annotation): (&str, &str),
    (classes, marks): (&str, &[&str]),
) -> Result<(), Refusal> {
    let own = request.object().pointer(&format!("/spec/{field}"));
    let named = own.is_some_and(|own| !own.is_null())
        || object::meta_map(request.object(), "annotations").any(|(key, _)| key == annotation);
    if named {
        return Ok(());
    }
    if let Some(class) = default_of(request.all(classes, None)?, marks) {
        let name = object::name(&class).to_owned();
        object::member_mut(object::map_of(request.object_mut()), "spec")
            .insert(field.to_owned(), name.into());
    }
    Ok(())
}

/// Returns the class that is marked as the default; of several the newest, and of equally new ones the first by name.
fn default_of(classes: Vec<Arc<Value>>, marks: &[&str]) -> Option<Arc<Value>> {
    let is_marked = |class: &Arc<Value>| {
        object::meta_map(class, "annotations").any(|(key, value)| marks.contains(&key) && value == "true")
    };
    classes.into_iter().filter(is_marked).min_by_key(|class| {
        let made = object::meta_str(class, "creationTimestamp").to_owned();
        (Reverse(made), object::name(class).to_owned())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{Placed, mutated_beside};

    fn class(plural: &'static str, name: &str, mark: &str, made: &str) -> Placed {
        (
            plural,
            json!({"metadata": {"name": name, "creationTimestamp": made, "annotations": {mark: "true"}}}),
        )
    }

    #[test]
    fn the_newest_default_is_taken() {
        let classes = [("b", "2026-01-02"), ("a", "2026-01-02"), ("c", "2026-01-01")].map(|(name, day)| {
            class("storageclasses", name, DEFAULT_STORAGE[0], &format!("{day}T00:00:00Z"))
        });
        let claim = json!({"metadata": {"name": "a"}, "spec": {}});
        let made = mutated_beside(&STORAGE, "persistentvolumeclaims", &claim, &classes).unwrap().unwrap();
        assert_eq!(made["spec"]["storageClassName"], "a");
        for named in [
            json!({"metadata": {"name": "a"}, "spec": {"storageClassName": ""}}),
            json!({"metadata": {"name": "a", "annotations": {CLASS_OF_CLAIM: ""}}, "spec": {}}),
        ] {
            assert_eq!(mutated_beside(&STORAGE, "persistentvolumeclaims", &named, &classes), Ok(None));
        }
    }

    #[test]
    fn ingresses_get_their_class() {
        let classes = [class("ingressclasses", "i", DEFAULT_INGRESS[0], "2026-01-01T00:00:00Z")];
        let ingress = json!({"metadata": {"name": "a"}, "spec": {}});
        let made = mutated_beside(&INGRESS, "ingresses", &ingress, &classes).unwrap().unwrap();
        assert_eq!(made["spec"]["ingressClassName"], "i");
        assert_eq!(mutated_beside(&INGRESS, "ingresses", &ingress, &[]), Ok(None));
    }
}
