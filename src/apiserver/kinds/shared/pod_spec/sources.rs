//! Validates volume sources.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use admit_apimachinery::names::NameRule;
use admit_apimachinery::quantity::Quantity;

use super::files::{key_to_path, mode};
use super::{Options, descending_path, known, projected, source_kinds};
use crate::kinds::field::Field;

/// A type of source; the order is that of upstream's checks.
struct Source {
    name: &'static str,
    /// The path of errors within the source.
    path: &'static str,
    /// The path of the error when there is another source already.
    beside: &'static str,
    validate: fn(&Field<'_>, &Options<'_>, &mut FieldErrors),
}

/// A type of source whose errors have its name as path.
const fn source(name: &'static str, validate: fn(&Field<'_>, &Options<'_>, &mut FieldErrors)) -> Source {
    Source { name, path: name, beside: name, validate }
}

const SOURCES: [Source; 30] = [
    source("emptyDir", empty_dir),
    source("hostPath", |source, _, errors| source_kinds::host_path(source, errors)),
    source("gitRepo", git_repo),
    Source {
        path: "persistentDisk",
        ..source("gcePersistentDisk", |source, _, errors| disk(source, "pdName", errors))
    },
    source("awsElasticBlockStore", |source, _, errors| disk(source, "volumeID", errors)),
    source("secret", |source, _, errors| keys(source, "secretName", errors)),
    source("nfs", |source, _, errors| source_kinds::nfs(source, errors)),
    source("iscsi", |source, _, errors| source_kinds::iscsi(source, errors)),
    source("glusterfs", |source, _, errors| source_kinds::required(source, &["endpoints", "path"], errors)),
    source("flocker", |source, _, errors| source_kinds::flocker(source, errors)),
    source("persistentVolumeClaim", |source, _, errors| {
        source_kinds::required(source, &["claimName"], errors)
    }),
    source("rbd", |source, _, errors| source_kinds::required(source, &["monitors", "image"], errors)),
    source("cinder", |source, _, errors| {
        source_kinds::required(source, &["volumeID"], errors);
        secret_reference(&source.get("secretRef"), errors);
    }),
    Source {
        beside: "cephFS",
        ..source("cephfs", |source, _, errors| source_kinds::required(source, &["monitors"], errors))
    },
    source("quobyte", |source, _, errors| source_kinds::quobyte(source, errors)),
    Source { beside: "downwarAPI", ..source("downwardAPI", downward) },
    source("fc", |source, _, errors| source_kinds::fibre_channel(source, errors)),
    source("flexVolume", |source, _, errors| source_kinds::flex(source, errors)),
    source("configMap", |source, _, errors| keys(source, "name", errors)),
    source("azureFile", |source, _, errors| {
        source_kinds::required(source, &["secretName", "shareName"], errors)
    }),
    source("vsphereVolume", |source, _, errors| source_kinds::required(source, &["volumePath"], errors)),
    source("photonPersistentDisk", |source, _, errors| source_kinds::required(source, &["pdID"], errors)),
    source("portworxVolume", |source, _, errors| source_kinds::required(source, &["volumeID"], errors)),
    source("azureDisk", |source, _, errors| source_kinds::azure_disk(source, errors)),
    source("storageos", |source, _, errors| {
        source_kinds::storage_os(source, errors);
        secret_reference(&source.get("secretRef"), errors);
    }),
    source("projected", projected::validate),
    source("scaleIO", |source, _, errors| {
        source_kinds::required(source, &["gateway", "system", "volumeName"], errors)
    }),
    source("csi", csi),
    source("ephemeral", ephemeral),
    source("image", image),
];

const TWICE: &str = "may not specify more than 1 volume type";

/// Validates the source of a volume.
pub(super) fn validate(volume: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let mut has_one = false;
    for source in &SOURCES {
        let given = volume.get(source.name);
        if !given.is_set() {
            continue;
        }
        if has_one {
            errors.add(|| volume.get(source.beside).forbidden(TWICE));
        } else {
            has_one = true;
            (source.validate)(&volume.get(source.path).with(given.value()), options, errors);
            if source.name == "ephemeral" {
                named_claim(volume, options, errors);
            }
        }
        if source.name == "iscsi" {
            initiator_fits(volume, &given, errors);
        }
    }
    if !has_one {
        errors.add(|| volume.required("must specify a volume type"));
    }
}

fn initiator_fits(volume: &Field<'_>, iscsi: &Field<'_>, errors: &mut FieldErrors) {
    let (name, portal) = (volume.get("name"), iscsi.get("targetPortal"));
    let length = name.text().len().saturating_add(portal.text().len()).saturating_add(1);
    if iscsi.get("initiatorName").is_set() && length > 64 {
        errors.add(|| name.invalid(source_kinds::LONG_INITIATOR));
    }
}

fn empty_dir(source: &Field<'_>, _: &Options<'_>, errors: &mut FieldErrors) {
    let limit = source.get("sizeLimit");
    if Quantity::parse(limit.text()).is_ok_and(|limit| limit.sign().is_lt()) {
        errors.add(|| limit.forbidden("SizeLimit field must be a valid resource quantity"));
    }
}

fn git_repo(source: &Field<'_>, _: &Options<'_>, errors: &mut FieldErrors) {
    source_kinds::required(source, &["repository"], errors);
    descending_path(&source.get("directory"), errors);
}

fn disk(source: &Field<'_>, name: &'static str, errors: &mut FieldErrors) {
    source_kinds::required(source, &[name], errors);
    let partition = source.get("partition");
    if partition.integer().is_some_and(|number| !(0..=255).contains(&number)) {
        errors.add(|| partition.invalid("must be between 1 and 255, inclusive"));
    }
}

fn secret_reference(reference: &Field<'_>, errors: &mut FieldErrors) {
    if reference.is_set() {
        source_kinds::required(reference, &["name"], errors);
    }
}

/// Validates a volume with the keys of a Secret or ConfigMap.
fn keys(source: &Field<'_>, name: &'static str, errors: &mut FieldErrors) {
    source_kinds::required(source, &[name], errors);
    mode(&source.get("defaultMode"), errors);
    for item in source.get("items").items() {
        key_to_path(&item, errors);
    }
}

fn downward(source: &Field<'_>, _: &Options<'_>, errors: &mut FieldErrors) {
    mode(&source.get("defaultMode"), errors);
    for file in source.get("items").items() {
        // The error's path is that of the volume.
        projected::downward_file(&source.with(file.value()), errors);
    }
}

fn csi(source: &Field<'_>, _: &Options<'_>, errors: &mut FieldErrors) {
    source_kinds::csi_driver(&source.get("driver"), errors);
    let secret = source.get("nodePublishSecretRef");
    if !secret.is_set() {
        return;
    }
    let name = secret.get("name");
    if name.text().is_empty() {
        errors.add(|| name.required(""));
    } else {
        source.get("name").with(name.value()).named(NameRule::Subdomain, errors);
    }
}

fn ephemeral(source: &Field<'_>, _: &Options<'_>, errors: &mut FieldErrors) {
    let template = source.get("volumeClaimTemplate");
    if !template.is_set() {
        return errors.add(|| template.required(""));
    }
    source_kinds::claim_template(&template, errors);
}

fn image(source: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    // In a template it may be empty, to be filled in on creation of pods.
    if options.is_pod {
        source_kinds::required(source, &["reference"], errors);
    }
    known(&source.get("pullPolicy"), &["Always", "IfNotPresent", "Never"], errors);
}

/// Returns the name of the claim that is created for an ephemeral volume.
pub(super) fn claim_name(options: &Options<'_>, volume: &str) -> String {
    format!("{}-{volume}", options.pod_name)
}

/// Validates the name of the claim for an ephemeral volume, which is made from those of pod and volume.
fn named_claim(volume: &Field<'_>, options: &Options<'_>, errors: &mut FieldErrors) {
    let name = volume.get("name");
    if options.pod_name.is_empty() || name.text().is_empty() {
        return;
    }
    let claim = claim_name(options, name.text());
    for problem in NameRule::Subdomain.problems(&claim, false) {
        errors.add(|| name.invalid(format!("PVC name {}: {problem}", go::quote(&claim))));
    }
}
