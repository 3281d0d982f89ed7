//! Validates the volumes of containers: mounts, and block devices.

use std::collections::{HashMap, HashSet};

use admit_apimachinery::findings::FieldErrors;

use super::{Pod, descending_path, has_backsteps, known_if_set};
use crate::kinds::field::Field;

/// Names of volumes, and their paths in a container; for duplicate names, the last path.
struct Places<'o> {
    names: HashSet<&'o str>,
    paths: HashSet<&'o str>,
}

fn places<'o>(list: &Field<'o>, path: &'static str) -> Places<'o> {
    let by_name: HashMap<&str, &str> =
        list.items().map(|item| (item.get("name").text(), item.get(path).text())).collect();
    Places { names: by_name.keys().copied().collect(), paths: by_name.into_values().collect() }
}

/// Validates the volume mounts of a container. Some errors name the list, not its items.
pub(super) fn volumes(container: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    let list = container.get("volumeMounts");
    let devices = places(&container.get("volumeDevices"), "devicePath");
    let privileged = container.get("securityContext").get("privileged").flag();
    let mut paths = HashSet::new();
    for mount in list.items() {
        let (name, path) = (mount.get("name"), mount.get("mountPath"));
        let volume = pod.volumes.get(name.text());
        if name.text().is_empty() {
            errors.add(|| name.required(""));
        }
        if volume.is_none() {
            errors.add(|| name.not_found());
        }
        if path.text().is_empty() {
            errors.add(|| path.required(""));
        }
        if !paths.insert(path.text()) {
            errors.add(|| path.invalid("must be unique"));
        }
        if devices.names.contains(name.text()) {
            errors.add(|| name.invalid("must not already exist in volumeDevices"));
        }
        if devices.paths.contains(path.text()) {
            errors.add(|| path.invalid("must not already exist as a path in volumeDevices"));
        }
        parts(&mount, &list, errors);
        propagation(&mount, &list, privileged, errors);
    }
}

/// Validates `subPath` and `subPathExpr` of a mount.
fn parts(mount: &Field<'_>, list: &Field<'_>, errors: &mut FieldErrors) {
    let (path, expression) = (mount.get("subPath"), mount.get("subPathExpr"));
    if !path.text().is_empty() {
        descending_path(&list.get("subPath").with(path.value()), errors);
    }
    if !expression.text().is_empty() {
        if !path.text().is_empty() {
            errors.add(|| expression.invalid("subPathExpr and subPath are mutually exclusive"));
        }
        descending_path(&list.get("subPathExpr").with(expression.value()), errors);
    }
}

fn propagation(mount: &Field<'_>, list: &Field<'_>, privileged: bool, errors: &mut FieldErrors) {
    let mode = list.get("mountPropagation").with(mount.get("mountPropagation").value());
    known_if_set(&mode, &["Bidirectional", "HostToContainer", "None"], errors);
    if mode.text() == "Bidirectional" && !privileged {
        errors.add(|| {
            mode.forbidden("Bidirectional mount propagation is available only to privileged containers")
        });
    }
    let recursive = list.get("recursiveReadOnly").with(mount.get("recursiveReadOnly").value());
    if !matches!(recursive.text(), "Enabled" | "IfPossible") {
        return known_if_set(&recursive, &["Disabled", "Enabled", "IfPossible"], errors);
    }
    if !mount.get("readOnly").flag() {
        errors.add(|| recursive.forbidden("may only be specified when readOnly is true"));
    }
    if mode.is_set() && mode.text() != "None" {
        let why = "may only be specified when mountPropagation is None or not specified";
        errors.add(|| recursive.forbidden(why));
    }
}

/// Validates the volume devices of a container.
pub(super) fn devices(container: &Field<'_>, pod: &Pod<'_>, errors: &mut FieldErrors) {
    let mounts = places(&container.get("volumeMounts"), "mountPath");
    let (mut names, mut paths) = (HashSet::new(), HashSet::new());
    for device in container.get("volumeDevices").items() {
        let (name, path) = (device.get("name"), device.get("devicePath"));
        if name.text().is_empty() {
            errors.add(|| name.required(""));
        } else if !names.insert(name.text()) {
            errors.add(|| name.invalid("must be unique"));
        }
        match pod.volumes.get(name.text()) {
            None => errors.add(|| name.not_found()),
            Some(volume)
                if ["persistentVolumeClaim", "ephemeral"].iter().any(|kind| volume.get(kind).is_some()) => {}
            Some(_) => errors.add(|| {
                let why =
                    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                name.invalid(why)
            }),
        }
        if path.text().is_empty() {
            errors.add(|| path.required(""));
        }
        if paths.contains(path.text()) {
            errors.add(|| path.invalid("must be unique"));
        }
        if has_backsteps(path.text()) {
            errors.add(|| path.invalid("can not contain backsteps ('..')"));
        } else {
            paths.insert(path.text());
        }
        if mounts.names.contains(name.text()) {
            errors.add(|| name.invalid("must not already exist in volumeMounts"));
        }
        if mounts.paths.contains(path.text()) {
            errors.add(|| path.invalid("must not already exist as a path in volumeMounts"));
        }
    }
}
