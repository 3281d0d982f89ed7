//! Implements `PersistentVolumeClaimResize`: a claim may grow only if its storage class allows expansion.

use serde_json::Value;

use super::alone::{Alone, Turn};
use super::pods::text;
use super::resources::amounts;
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "PersistentVolumeClaimResize",
    mutate: None,
    validate: Some(validate),
    alone: Alone::By(alone),
};

fn validate(request: &Request<'_>) -> Result<(), Refusal> {
    if !request.updates("", "persistentvolumeclaims") {
        return Ok(());
    }
    let (claim, old) = (request.object(), request.old());
    let (new_sizes, old_sizes) =
        (amounts(claim, "/spec/resources/requests"), amounts(old, "/spec/resources/requests"));
    let grows = match (new_sizes.get("storage"), old_sizes.get("storage")) {
        (Some(new), Some(old)) => new.compare(old).is_gt(),
        (Some(new), None) => new.sign().is_gt(),
        _ => false,
    };
    if !grows {
        return Ok(());
    }
    if text(old, "/status/phase") != "Bound" {
        return Err(request.forbidden("Only bound persistent volume claims can be expanded"));
    }
    let class = class_of(claim);
    let is_resizable = !class.is_empty()
        && class == class_of(old)
        && request
            .stored("storageclasses", "", class)
            .is_some_and(|class| class.get("allowVolumeExpansion") == Some(&Value::Bool(true)));
    if is_resizable {
        return Ok(());
    }
    Err(request.forbidden(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support \
         resize",
    ))
}

/// Returns the storage class of a claim; the annotation takes precedence over the field.
fn class_of(claim: &Value) -> &str {
    let annotation = "volume.beta.kubernetes.io/storage-class";
    let named = object::meta_map(claim, "annotations").find(|(key, _)| *key == annotation);
    named.map_or_else(|| text(claim, "/spec/storageClassName"), |(_, class)| class)
}

/// Without a cluster the plugin needs the claim to be bound and of a known class, which manifests rarely say.
fn alone(request: &Request<'_>) -> Turn {
    if !request.updates("", "persistentvolumeclaims") || text(request.old(), "/status/phase").is_empty() {
        return Turn::Passes;
    }
    Turn::named(request, "storageclasses", "", text(request.object(), "/spec/storageClassName"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::Asked;

    #[test]
    fn claims_grow_where_their_class_says_so() {
        let claim = |size: &str, phase: &str| {
            json!({"metadata": {"name": "a"}, "status": {"phase": phase},
                "spec": {"storageClassName": "s", "resources": {"requests": {"storage": size}}}})
        };
        let told = |phase: &str, grows: bool| {
            let class = json!({"metadata": {"name": "s"}, "allowVolumeExpansion": grows});
            let stored = [("storageclasses", class)];
            let (new, old) = (claim("2Gi", phase), claim("1Gi", phase));
            let asked = Asked { old: Some(&old), ..Asked::create("persistentvolumeclaims", &new, &stored) };
            asked.of(&PLUGIN).err().map(|refusal| refusal.message().to_owned())
        };
        let forbidden = "persistentvolumeclaims \"a\" is forbidden: ";
        assert_eq!(
            told("Pending", true),
            Some(format!("{forbidden}Only bound persistent volume claims can be expanded"))
        );
        assert!(told("Bound", false).unwrap().ends_with("the pvc must support resize"));
        assert_eq!(told("Bound", true), None);
    }
}
