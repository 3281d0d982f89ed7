//! What a claim of a volume asks for, of a claim itself and of the templates that claims are made from. Read from
//! pkg/apis/core/validation of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::json;

use super::amount;
use super::label_selector::{self, LabelValues};
use super::texts::{dns_label, given, subdomain};
use crate::kinds::field::Field;

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// What is claimed. `any_group`: sources of groups whose names are wrong are kept.
pub(crate) fn specification(spec: &Field<'_>, any_group: bool, errors: &mut FieldErrors) {
    let modes = spec.get("accessModes");
    if modes.is_empty() {
        errors.add(|| modes.required("at least 1 access mode is required"));
    }
    label_selector::validate(&spec.get("selector"), LabelValues::Checked, errors);
    supported_access_modes(&modes, errors);
    let requests = spec.get("resources").get("requests");
    let asked = requests.map().and_then(|requests| requests.get("storage"));
    let place = spec.get("resources").key("storage");
    match asked {
        None => errors.add(|| place.required("")),
        Some(asked) => amount::positive(&place.with(asked), errors),
    }
    let class = spec.get("storageClassName");
    if !class.is_empty() {
        subdomain(&class, errors);
    }
    volume_mode(&spec.get("volumeMode"), errors);
    sources(spec, any_group, errors);
    let attributes = spec.get("volumeAttributesClassName");
    if !attributes.is_empty() {
        subdomain(&attributes, errors);
    }
}

fn sources(spec: &Field<'_>, any_group: bool, errors: &mut FieldErrors) {
    let (source, reference) = (spec.get("dataSource"), spec.get("dataSourceRef"));
    for source in [&source, &reference].into_iter().filter(|source| source.is_set()) {
        given(&source.get("name"), errors);
        let (kind, group) = (source.get("kind"), source.get("apiGroup"));
        given(&kind, errors);
        if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
            let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.add(|| source.invalid_as(kind.text(), why));
        }
        if !group.is_empty() && !any_group {
            subdomain(&group, errors);
        }
    }
    let namespace = reference.get("namespace");
    if !namespace.is_empty() {
        dns_label(&namespace, errors);
    }
    if !source.is_set() || !reference.is_set() {
        return;
    }
    // What is told in place of the value is a path, which prints as nothing.
    let same = ["apiGroup", "kind", "name"]
        .iter()
        .all(|name| source.get(name).value() == reference.get(name).value());
    if !namespace.is_empty() {
        let why = "may not be specified when dataSourceRef.namespace is specified";
        errors.add(|| spec.invalid_as(json!({}), why));
    } else if !same {
        errors.add(|| spec.invalid_as(json!({}), "must match dataSourceRef"));
    }
}

pub(crate) fn supported_access_modes(modes: &Field<'_>, errors: &mut FieldErrors) {
    let (mut alone, mut shared) = (false, false);
    for mode in modes.items() {
        match mode.text() {
            "ReadWriteOncePod" => alone = true,
            known if ACCESS_MODES.contains(&known) => shared = true,
            // The list is named, and not the item.
            _ => errors.add(|| modes.with(mode.value()).not_supported(&ACCESS_MODES)),
        }
    }
    if alone && shared {
        errors.add(|| modes.forbidden("may not use ReadWriteOncePod with other access modes"));
    }
}

pub(crate) fn volume_mode(mode: &Field<'_>, errors: &mut FieldErrors) {
    if mode.is_set() && !VOLUME_MODES.contains(&mode.text()) {
        errors.add(|| mode.not_supported(&VOLUME_MODES));
    }
}
