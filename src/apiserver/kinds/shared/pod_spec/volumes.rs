//! Validates the volumes of pods: names, and one source each.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

use super::{Options, sources};
use crate::kinds::field::Field;

/// The valid volumes by name; only these can be used by containers.
pub(super) struct Volumes<'o>(HashMap<&'o str, &'o Value>);

impl<'o> Volumes<'o> {
    pub(super) fn get(&self, name: &str) -> Option<&'o Value> {
        self.0.get(name).copied()
    }
}

/// Validates volumes, and returns the valid ones.
pub(super) fn validate<'o>(list: &Field<'o>, options: &Options<'_>, errors: &mut FieldErrors) -> Volumes<'o> {
    let made: HashSet<String> = if options.pod_name.is_empty() {
        HashSet::new()
    } else {
        let ephemeral = list.items().filter(|volume| volume.get("ephemeral").is_set());
        ephemeral.map(|volume| sources::claim_name(options, volume.get("name").text())).collect()
    };
    let mut volumes = HashMap::new();
    for volume in list.items() {
        let mut found = FieldErrors::default();
        let name = volume.get("name");
        sources::validate(&volume, options, &mut found);
        if name.text().is_empty() {
            found.add(|| name.required(""));
        } else {
            name.named(NameRule::Label, &mut found);
        }
        if volumes.contains_key(name.text()) {
            found.add(|| name.duplicate());
        }
        if found.is_empty() {
            volumes.insert(name.text(), volume.value());
        } else {
            errors.extend(found);
        }
        let claim = volume.get("persistentVolumeClaim").get("claimName");
        if made.contains(claim.text()) {
            errors
                .add(|| claim.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
    Volumes(volumes)
}
