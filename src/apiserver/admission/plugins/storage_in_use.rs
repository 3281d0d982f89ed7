//! Implements `StorageObjectInUseProtection`: adds finalizers that keep storage objects while they are in use.

use serde_json::{Value, json};

use super::alone::Alone;
use super::{Plugin, Request};
use crate::object;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin {
    name: "StorageObjectInUseProtection",
    mutate: Some(admit),
    validate: None,
    alone: Alone::WhereAsked,
};

/// The protected resources and their finalizers.
const PROTECTED: [(&str, &str, &str); 3] = [
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    let row = PROTECTED.iter().find(|(group, plural, _)| request.creates(group, plural));
    if let Some((_, _, finalizer)) = row {
        let mut finalizers = object::finalizers(request.object());
        if !finalizers.contains(finalizer) {
            finalizers.push(finalizer);
            let finalizers: Value = json!(finalizers);
            object::set_meta(request.object_mut(), "finalizers", Some(finalizers));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::plugins::tests::mutated;

    #[test]
    fn storage_is_held_by_a_finalizer() {
        let object = json!({"metadata": {"name": "a", "finalizers": ["own"]}});
        for (_, plural, finalizer) in PROTECTED {
            let made = mutated(&PLUGIN, plural, &object).unwrap().unwrap();
            assert_eq!(made["metadata"]["finalizers"], json!(["own", finalizer]));
            assert_eq!(mutated(&PLUGIN, plural, &made), Ok(None));
        }
    }
}
