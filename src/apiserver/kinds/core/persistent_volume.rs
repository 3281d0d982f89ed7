//! PersistentVolumes. Read from pkg/apis/core/validation, pkg/apis/core/v1/defaults.go and
//! pkg/registry/core/persistentvolume of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Map, Value, json};

use super::volume_spec;
use crate::clock::Clock;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::{set_absent, set_phase};
use crate::kinds::shared::{inside, node_selector};
use crate::kinds::{Habit, Request, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "PersistentVolume",
    habits: &[Habit::AnswersDeleted, Habit::ChangeOnce, Habit::ObjectTwice],
    default: Some(default),
    stamp: Some(stamp),
    prepare_status: Some(prepare_status),
    validate: Some(validate),
    validate_update: Some(validate_update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

const SPEC: &str = "io.k8s.api.core.v1.PersistentVolumeSpec";

fn default(_: &str, volume: &mut Value) {
    set_phase(volume, "Pending");
    let spec = &mut volume["spec"];
    set_absent(spec, &[("volumeMode", "Filesystem".into())]);
    if spec.get("persistentVolumeReclaimPolicy").and_then(Value::as_str).is_none_or(str::is_empty) {
        object::set_field(spec, "persistentVolumeReclaimPolicy", Some("Retain".into()));
    }
    let of_sources: [(&str, Value); 5] = [
        ("hostPath", json!({"type": ""})),
        ("iscsi", json!({"iscsiInterface": "default"})),
        ("rbd", json!({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"})),
        (
            "azureDisk",
            json!({"cachingMode": "ReadWrite", "kind": "Shared", "fsType": "ext4", "readOnly": false}),
        ),
        ("scaleIO", json!({"storageMode": "ThinProvisioned", "fsType": "xfs"})),
    ];
    for (source, defaults) in of_sources {
        let Some(source) = spec.get_mut(source).filter(|source| source.is_object()) else { continue };
        for (name, value) in defaults.as_object().into_iter().flatten() {
            set_absent(source, &[(name, value.clone())]);
        }
    }
}

const PHASE_TIME: &str = "lastPhaseTransitionTime";

fn stamp(volume: &mut Value, request: &Request<'_>) {
    volume["status"] = json!({"phase": "Pending", PHASE_TIME: request.clock.stamp()});
}

/// When the phase changed last; a client that changes it may say when that was.
fn prepare_status(volume: &mut Value, old: &Value, clock: &Clock) {
    let of = |object: &Value, field: &str| object.get("status").and_then(|status| status.get(field)).cloned();
    let time = of(volume, PHASE_TIME).filter(|time| !time.is_null());
    let before = of(old, PHASE_TIME);
    let changed = match of(volume, "phase") == of(old, "phase") {
        true => before.filter(|_| time.is_none()),
        false => (time.is_none() || time == before).then(|| clock.stamp().into()),
    };
    if changed.is_some() {
        object::set_field(&mut volume["status"], PHASE_TIME, changed);
    }
}

fn validate(volume: &Value, errors: &mut FieldErrors) {
    volume_spec::volume(&Field::root(volume).get("spec"), object::name(volume), errors);
}

fn validate_update(volume: &Value, old: &Value, errors: &mut FieldErrors) {
    // Once by the strategy, and once more where it has the change validated: each error is told twice.
    validate(volume, errors);
    validate(volume, errors);
    let (spec, old) = (Field::root(volume).get("spec"), Field::root(old).get("spec"));
    let old_source = source(old.value(), &old);
    if source(spec.value(), &old) != old_source {
        let difference = inside::difference(&old_source, &source(&spec.as_sent(), &old));
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.add(|| spec.get("persistentvolumesource").forbidden(why));
    }
    let root = Field::root(volume);
    root.get("volumeMode").with(spec.get("volumeMode").value()).immutable(&old.get("volumeMode"), errors);
    if old.get("nodeAffinity").is_set() {
        affinity(&root.get("nodeAffinity"), &spec.get("nodeAffinity"), &old.get("nodeAffinity"), errors);
    }
    let class = spec.get("volumeAttributesClassName");
    if old.get("volumeAttributesClassName").is_set() && !class.is_set() {
        errors.add(|| class.forbidden("update from non-nil value to nil is forbidden"));
    }
}

/// The sources in the order of the internal form, with their names there.
const INSIDE: [(&str, &str); 22] = [
    ("gcePersistentDisk", "GCEPersistentDisk"),
    ("awsElasticBlockStore", "AWSElasticBlockStore"),
    ("hostPath", "HostPath"),
    ("glusterfs", "Glusterfs"),
    ("nfs", "NFS"),
    ("rbd", "RBD"),
    ("quobyte", "Quobyte"),
    ("iscsi", "ISCSI"),
    ("flexVolume", "FlexVolume"),
    ("cinder", "Cinder"),
    ("cephfs", "CephFS"),
    ("fc", "FC"),
    ("flocker", "Flocker"),
    ("azureFile", "AzureFile"),
    ("vsphereVolume", "VsphereVolume"),
    ("azureDisk", "AzureDisk"),
    ("photonPersistentDisk", "PhotonPersistentDisk"),
    ("portworxVolume", "PortworxVolume"),
    ("scaleIO", "ScaleIO"),
    ("local", "Local"),
    ("storageos", "StorageOS"),
    ("csi", "CSI"),
];

/// The source in the internal form, without what may be set although it was not: the secret for expansion.
fn source(spec: &Value, old: &Field<'_>) -> Value {
    let mut given = if spec.is_null() { json!({}) } else { spec.clone() };
    let secret = "controllerExpandSecretRef";
    if old.get("csi").is_set()
        && !old.get("csi").get(secret).is_set()
        && let Some(csi) = given.get_mut("csi").filter(|csi| csi.is_object())
    {
        object::set_field(csi, secret, None);
    }
    let shown = inside::shown(SPEC, &given);
    let go_name = |name: &str| {
        let mut letters = name.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    let found = |(name, own): (&str, &str)| {
        let value = shown.get(own).or_else(|| shown.get(go_name(name))).cloned().unwrap_or_default();
        (own.to_owned(), value)
    };
    Value::Object(INSIDE.into_iter().map(found).collect::<Map<_, _>>())
}

/// Where the volume can be reached stays, but for labels that got other names. `told` is the field that is named.
fn affinity(told: &Field<'_>, new: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    if new.value() != old.value() && *new.value() != renamed(old.value(), new.value()) {
        let shown = inside::shown("io.k8s.api.core.v1.VolumeNodeAffinity", &new.as_sent());
        let why = "field is immutable, except for updating from beta label to GA";
        errors.add(|| told.invalid_as(inside::told(&shown), why));
    }
}

/// The old affinity with the names that labels have in the new one, where those are what the old names became. Upstream
/// asks a map for them, for which a label that never had another name became the empty one.
fn renamed(old: &Value, new: &Value) -> Value {
    const TERMS: &str = "/required/nodeSelectorTerms";
    let mut renamed = old.clone();
    let wanted = new.pointer(TERMS).and_then(Value::as_array);
    let terms = renamed.pointer_mut(TERMS).and_then(Value::as_array_mut);
    for (term, wanted) in terms.into_iter().flatten().zip(wanted.into_iter().flatten()) {
        for list in ["matchExpressions", "matchFields"] {
            let wanted = wanted.get(list).and_then(Value::as_array);
            let own = term.get_mut(list).and_then(Value::as_array_mut);
            for (own, wanted) in own.into_iter().flatten().zip(wanted.into_iter().flatten()) {
                let key = |of: &Value| of.get("key").and_then(Value::as_str).unwrap_or_default().to_owned();
                if key(wanted) == node_selector::renamed_label(&key(own)).unwrap_or_default() {
                    object::set_field(own, "key", wanted.get("key").cloned());
                }
            }
        }
    }
    renamed
}

const NON_FUNCTIONAL: [(&str, &str); 6] = [
    ("cephfs", "spec.cephfs: deprecated in v1.28, non-functional in v1.31+"),
    ("photonPersistentDisk", "spec.photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+"),
    ("scaleIO", "spec.scaleIO: deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "spec.storageOS: deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "spec.glusterfs: deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "spec.rbd: deprecated in v1.28, non-functional in v1.31+"),
];

fn warnings(volume: &Value, _: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    let annotated = |key: &str| object::meta_map(volume, "annotations").any(|(name, _)| name == key);
    for (key, since, field) in [
        ("volume.beta.kubernetes.io/storage-class", "v1.8", "storageClassName"),
        ("volume.beta.kubernetes.io/mount-options", "v1.31", "mountOptions"),
    ] {
        if annotated(key) {
            warnings.push(format!(
                "metadata.annotations[{key}]: deprecated since {since}; use \"{field}\" attribute instead"
            ));
        }
    }
    let spec = Field::root(volume).get("spec");
    if spec.get("persistentVolumeReclaimPolicy").text() == "Recycle" {
        warnings.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    let terms = spec.get("nodeAffinity").get("required").get("nodeSelectorTerms");
    terms.items().for_each(|term| node_selector::node_term_warnings(&term, &mut warnings));
    let gone = NON_FUNCTIONAL.iter().filter(|(source, _)| spec.get(source).is_set());
    warnings.extend(gone.map(|(_, why)| (*why).to_owned()));
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(spec: &Value) -> Value {
        let mut volume = json!({"spec": {"accessModes": ["ReadOnlyMany"], "capacity": {"storage": "1"},
            "csi": {"driver": "d", "volumeHandle": "h"}}});
        object::map_of(&mut volume["spec"]).extend(spec.as_object().cloned().unwrap_or_default());
        volume
    }

    fn texts(new: &Value, old: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        validate_update(new, old, &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn what_a_volume_is_stays() {
        let secret = json!({"name": "s", "namespace": "n"});
        let expanding = volume(
            &json!({"csi": {"driver": "d", "volumeHandle": "h", "controllerExpandSecretRef": secret}}),
        );
        assert_eq!(texts(&expanding, &volume(&json!({}))), Vec::<String>::new());
        let other = volume(&json!({"csi": {"driver": "d", "volumeHandle": "i"}}));
        let found = texts(&other, &volume(&json!({})));
        assert!(
            found[0].contains("\n-  \"VolumeHandle\": \"h\",\n+  \"VolumeHandle\": \"i\",\n"),
            "{found:?}"
        );
    }

    #[test]
    fn labels_of_nodes_get_their_new_names() {
        let on = |key: &str| {
            let expression = json!({"key": key, "operator": "Exists"});
            volume(
                &json!({"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}),
            )
        };
        let (old, new) = (on("beta.kubernetes.io/os"), on("kubernetes.io/os"));
        assert_eq!(texts(&new, &old), Vec::<String>::new());
        assert_eq!(texts(&old, &new).len(), 1);
        assert_eq!(
            warnings(&old, None),
            [
                "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/os is \
              deprecated since v1.14; use \"kubernetes.io/os\" instead"
            ]
        );
    }
}
