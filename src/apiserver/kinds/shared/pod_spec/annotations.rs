//! Validates annotations of pods with a meaning for the API server; most have been replaced by fields.

use std::collections::HashSet;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use serde_json::Value;

use super::{all_containers, descending_path, scheduling};
use crate::kinds::field::Field;
use crate::kinds::shared::pod_uses::MIRROR;

const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(crate) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Validates the annotations of a pod or a template (`ValidatePodSpecificAnnotations`).
pub(crate) fn validate(annotations: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    let mirror = annotations.key(MIRROR);
    if mirror.is_set() && spec.get("nodeName").is_empty() {
        errors.add(|| mirror.invalid("must set spec.nodeName if mirror pod annotation is set"));
    }
    tolerations(annotations, errors);
    let cost = annotations.key(DELETION_COST);
    if cost.is_set() && !is_cost(cost.text()) {
        errors.add(|| cost.invalid("must be a 32bit integer"));
    }
    seccomp(annotations, errors);
    app_armor(annotations, spec, errors);
}

fn tolerations(annotations: &Field<'_>, errors: &mut FieldErrors) {
    let text = annotations.key(TOLERATIONS);
    if text.is_empty() {
        return;
    }
    match serde_json::from_str::<Value>(text.text()) {
        Ok(list) => scheduling::tolerations(&annotations.get(TOLERATIONS).with(&list), errors),
        Err(error) => errors.add(|| annotations.invalid_as(TOLERATIONS, error.to_string())),
    }
}

/// Whether the string is a 32-bit integer without plus sign and leading zeros.
fn is_cost(text: &str) -> bool {
    let has_plain_digits = !text.starts_with('+') && (text == "0" || !text.starts_with('0'));
    !text.is_empty() && has_plain_digits && text.parse::<i32>().is_ok()
}

fn seccomp(annotations: &Field<'_>, errors: &mut FieldErrors) {
    for (key, profile) in annotations.entries() {
        if key != SECCOMP_POD && !key.starts_with(SECCOMP_CONTAINER) {
            continue;
        }
        let mut found = FieldErrors::default();
        let text = profile.text();
        if let Some(path) = text.strip_prefix("localhost/") {
            let path = Value::from(path);
            descending_path(&profile.with(&path), &mut found);
        } else if !["runtime/default", "docker/default", "unconfined"].contains(&text) {
            found.add(|| profile.invalid("must be a valid seccomp profile"));
        }
        // The error's path has the key like a field name.
        for error in found {
            errors.push(FieldError { field: format!("{annotations}.{key}"), ..error });
        }
    }
}

fn app_armor(annotations: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    let mut containers: Option<HashSet<&str>> = None;
    for (key, profile) in annotations.entries() {
        let Some(container) = key.strip_prefix(APP_ARMOR) else { continue };
        let known = containers.get_or_insert_with(|| {
            all_containers(spec).map(|container| container.get("name").text()).collect()
        });
        if !known.contains(container) {
            errors.add(|| profile.invalid_as(container, "container not found"));
        }
        let text = profile.text();
        let is_profile =
            ["", "runtime/default", "unconfined"].contains(&text) || text.starts_with("localhost/");
        if !is_profile {
            errors.add(|| profile.invalid(format!("invalid AppArmor profile name: {}", go::quote(text))));
        }
    }
}

/// Validates a change of annotations, and all annotations again.
pub(crate) fn updated(pod: &Value, old: &Value, errors: &mut FieldErrors) {
    let (root, before) = (Field::root(pod), Field::root(old));
    let given = root.get("metadata").get("annotations");
    changes(&given, &before.get("metadata").get("annotations"), errors);
    validate(&given, &root.get("spec"), errors);
}

/// Validates a change of a pod's annotations.
pub(crate) fn changes(annotations: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let concerned = |key: &str| key.starts_with(APP_ARMOR) || key == MIRROR;
    let named = |key: &str| if key == MIRROR { "mirror pod annotation" } else { "AppArmor annotations" };
    for (key, before) in old.entries().filter(|(key, _)| concerned(key)) {
        if annotations.key(key).value() != before.value() {
            errors.add(|| annotations.key(key).forbidden(format!("may not remove or update {}", named(key))));
        }
    }
    for (key, added) in annotations.entries().filter(|(key, _)| concerned(key)) {
        if !old.key(key).is_set() {
            errors.add(|| added.forbidden(format!("may not add {}", named(key))));
        }
    }
}

/// Seccomp annotations must agree with the fields.
pub(crate) fn seccomp_agrees(annotations: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    let of_pod = spec.get("securityContext").get("seccompProfile");
    agrees(&of_pod, &annotations.key(SECCOMP_POD), Profiles::Seccomp, errors);
    for container in all_containers(spec) {
        let profile = container.get("securityContext").get("seccompProfile");
        let key = format!("{SECCOMP_CONTAINER}{}", container.get("name").text());
        agrees(&profile, &annotations.key(&key), Profiles::Seccomp, errors);
    }
}

/// AppArmor annotations of a new pod must agree with the fields.
pub(crate) fn app_armor_agrees(annotations: &Field<'_>, spec: &Field<'_>, errors: &mut FieldErrors) {
    if spec.get("os").get("name").text() == "windows" {
        return;
    }
    let of_pod = spec.get("securityContext").get("appArmorProfile");
    for container in all_containers(spec) {
        let place = container.get("securityContext").get("appArmorProfile");
        let profile = if place.is_set() { place } else { place.with(of_pod.value()) };
        let key = format!("{APP_ARMOR}{}", container.get("name").text());
        agrees(&profile, &annotations.key(&key), Profiles::AppArmor, errors);
    }
}

/// The kind of a profile.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Profiles {
    Seccomp,
    AppArmor,
}

fn agrees(profile: &Field<'_>, annotation: &Field<'_>, of: Profiles, errors: &mut FieldErrors) {
    if !profile.is_set() || !annotation.is_set() {
        return;
    }
    let name = if of == Profiles::Seccomp { "seccomp" } else { "apparmor" };
    let (kind, path, said) = (profile.get("type"), profile.get("localhostProfile"), annotation.text());
    let same_kind = match kind.text() {
        "Unconfined" => said == "unconfined",
        "RuntimeDefault" => {
            said == "runtime/default" || (of == Profiles::Seccomp && said == "docker/default")
        }
        "Localhost" => said.starts_with("localhost/"),
        _ => true,
    };
    if !same_kind {
        errors.add(|| kind.forbidden(format!("{name} type in annotation and field must match")));
    } else if kind.text() == "Localhost" && said.strip_prefix("localhost/") != path.value().as_str() {
        errors.add(|| path.forbidden(format!("{name} profile in annotation and field must match")));
    }
}
