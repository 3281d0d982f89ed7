//! The specification of a PersistentVolume, which VolumeAttachments may hold, too. Read from
//! `ValidatePersistentVolumeSpec` of pkg/apis/core/validation of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;

use super::volume_sources;
use crate::kinds::field::Field;
use crate::kinds::shared::amount::{basic, positive};
use crate::kinds::shared::claim::{supported_access_modes, volume_mode};
use crate::kinds::shared::node_selector::node_selector;
use crate::kinds::shared::texts::subdomain;

const INLINE: &str = "may not be specified in the context of inline volumes";

/// The specification of the volume `name`.
pub(super) fn volume(spec: &Field<'_>, name: &str, errors: &mut FieldErrors) {
    access_modes(&spec.get("accessModes"), "", errors);
    capacity(&spec.get("capacity"), errors);
    spec.get("persistentVolumeReclaimPolicy").one_of(&["Delete", "Recycle", "Retain"], errors);
    node_affinity(&spec.get("nodeAffinity"), errors);
    source(spec, name, errors);
    let class = spec.get("storageClassName");
    if !class.is_empty() {
        subdomain(&class, errors);
    }
    volume_mode(&spec.get("volumeMode"), errors);
    attributes_class(spec, errors);
}

/// A specification that stands in a VolumeAttachment: it says what is mounted, and nothing more.
pub(in crate::kinds) fn inline(spec: &Field<'_>, errors: &mut FieldErrors) {
    for name in ["claimRef", "capacity"] {
        let field = spec.get(name);
        if field.is_set() && (name == "claimRef" || !field.is_empty()) {
            errors.add(|| field.forbidden(INLINE));
        }
    }
    let csi = spec.get("csi");
    if !csi.is_set() {
        errors.add(|| csi.required("has to be specified in the context of inline volumes"));
    }
    access_modes(&spec.get("accessModes"), "", errors);
    let policy = spec.get("persistentVolumeReclaimPolicy");
    if !["", "Retain"].contains(&policy.text()) {
        errors.add(|| policy.forbidden("may only be Retain in the context of inline volumes"));
    }
    let affinity = spec.get("nodeAffinity");
    if affinity.is_set() {
        errors.add(|| affinity.forbidden(INLINE));
    }
    source(spec, "", errors);
    let class = spec.get("storageClassName");
    if !class.is_empty() {
        errors.add(|| class.forbidden(INLINE));
    }
    let mode = spec.get("volumeMode");
    if mode.is_set() && mode.text() != "Filesystem" {
        let why = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.add(|| mode.forbidden(why));
    }
}

/// How a volume may be mounted; `missing` is what is said of an empty list.
pub(super) fn access_modes(modes: &Field<'_>, missing: &str, errors: &mut FieldErrors) {
    if modes.is_empty() {
        errors.add(|| modes.required(missing));
    }
    supported_access_modes(modes, errors);
}

fn capacity(capacity: &Field<'_>, errors: &mut FieldErrors) {
    if capacity.is_empty() {
        errors.add(|| capacity.required(""));
    }
    if capacity.len() > 1 || !capacity.map().is_some_and(|amounts| amounts.contains_key("storage")) {
        errors.add(|| {
            let mut error = capacity.not_supported(&["storage"]);
            error.bad_value = (&*capacity.as_sent()).into();
            error
        });
    }
    for (_, amount) in capacity.entries() {
        basic(&amount, errors);
        positive(&amount, errors);
    }
}

fn node_affinity(affinity: &Field<'_>, errors: &mut FieldErrors) {
    let required = affinity.get("required");
    if required.is_set() {
        node_selector(&required, errors);
    } else if affinity.is_set() {
        errors.add(|| required.required("must specify required node constraints"));
    }
}

/// Exactly one kind of volume.
fn source(spec: &Field<'_>, name: &str, errors: &mut FieldErrors) {
    let mut found = 0_usize;
    for row in volume_sources::SOURCES {
        let source = spec.get(row.name);
        if !source.is_set() {
            continue;
        }
        found = found.saturating_add(1);
        // What drivers of the oldest kind mount is looked at beside another source, too.
        if found > 1 && row.name != "flexVolume" {
            let place = spec.get(row.second);
            errors.add(|| place.forbidden("may not specify more than 1 volume type"));
            continue;
        }
        (row.validate)(&spec.get(row.place).with(source.value()), name, errors);
        if row.name == "local" && !spec.get("nodeAffinity").is_set() {
            let affinity = spec.get("nodeAffinity");
            errors.add(|| affinity.required("Local volume requires node affinity"));
        }
    }
    if found == 0 {
        errors.add(|| spec.required("must specify a volume type"));
    }
    let policy = spec.get("persistentVolumeReclaimPolicy");
    let path = spec.get("hostPath").get("path");
    if policy.text() == "Recycle" && spec.get("hostPath").is_set() && is_root(path.text()) {
        errors.add(|| policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
}

/// Whether a path, once cleaned, is `/`.
fn is_root(path: &str) -> bool {
    path.starts_with('/') && {
        let mut depth = 0_usize;
        for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
            depth = if part == ".." { depth.saturating_sub(1) } else { depth.saturating_add(1) };
        }
        depth == 0
    }
}

fn attributes_class(spec: &Field<'_>, errors: &mut FieldErrors) {
    let (class, csi) = (spec.get("volumeAttributesClassName"), spec.get("csi"));
    if !class.is_set() {
        return;
    }
    if class.text().is_empty() {
        errors.add(|| class.required("an empty string is disallowed"));
    } else {
        subdomain(&class, errors);
    }
    if !csi.is_set() {
        errors.add(|| csi.required("has to be specified when using volumeAttributesClassName"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn texts(check: impl Fn(&Field<'_>, &mut FieldErrors), spec: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        check(&Field::root(spec), &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn a_volume_has_one_source_and_fitting_modes() {
        let spec = json!({"accessModes": ["ReadWriteOncePod", "ReadOnlyMany"], "capacity": {"storage": "1"},
            "persistentVolumeReclaimPolicy": "Recycle", "hostPath": {"path": "/./"}, "cephfs": {},
            "volumeAttributesClassName": ""});
        assert_eq!(
            texts(|spec, errors| volume(spec, "v", errors), &spec),
            [
                "accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
                "cephFS: Forbidden: may not specify more than 1 volume type",
                "persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
                "volumeAttributesClassName: Required value: an empty string is disallowed",
                "csi: Required value: has to be specified when using volumeAttributesClassName",
            ]
        );
    }

    #[test]
    fn an_inline_volume_says_what_is_mounted() {
        let spec = json!({"accessModes": ["ReadOnlyMany"], "capacity": {"storage": "1"}, "claimRef": {},
            "csi": {"driver": "d", "volumeHandle": "h"}, "persistentVolumeReclaimPolicy": "Delete",
            "nodeAffinity": {}, "storageClassName": "c", "volumeMode": "Block"});
        let found = texts(inline, &spec);
        assert_eq!(found.len(), 6, "{found:?}");
        assert_eq!(
            found[2],
            "persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes"
        );
    }
}
