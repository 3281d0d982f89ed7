//! Validates `metadata`, in the same way for every kind.

use admit_apimachinery::{go, labels, names::NameRule};
use std::collections::BTreeSet;

use indexmap::IndexSet;
use serde_json::Value;

use super::label_pairs;
use crate::kinds::{Naming, strategy};
use crate::object;
use crate::resources::{ResourceInfo, Scope};
use crate::status::{Cause, Causes};

/// The size limit of all annotations of an object together, in bytes.
const ANNOTATIONS_LIMIT: usize = 256 << 10;

/// Finalizers that Kubernetes itself sets, which need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// Validates the metadata of a new object, with the name rule of its kind.
pub(crate) fn validate(info: &ResourceInfo, object: &Value) -> Causes {
    let naming = strategy(info).and_then(|strategy| strategy.name);
    whole(info, object, naming.unwrap_or(Naming::Rule(NameRule::Subdomain)))
}

/// Validates the metadata of a replacing object, whose name must only fit into a path.
pub(crate) fn validate_replacing(info: &ResourceInfo, object: &Value) -> Causes {
    whole(info, object, Naming::Rule(NameRule::PathSegment))
}

/// Validates the metadata of a Scale, which has the name of its object.
pub(crate) fn validate_scale(info: &ResourceInfo, scale: &Value) -> Causes {
    let mut causes = whole(info, scale, Naming::Rule(NameRule::Subdomain));
    causes.extend(super::finalizers(scale));
    causes
}

fn whole(info: &ResourceInfo, object: &Value, naming: Naming) -> Causes {
    let mut causes = names(naming, object);
    match (info.scope, object::namespace(object)) {
        (Scope::Namespaced, "") => causes.push(Cause::required("metadata.namespace", "")),
        (Scope::Cluster, namespace) if !namespace.is_empty() => {
            causes.push(Cause::forbidden("metadata.namespace", "not allowed on this type"));
        }
        _ => {}
    }
    causes.extend(label_pairs(sorted(object, "labels"), "metadata.labels"));
    causes.extend(annotations(object));
    causes.extend(owner_references(object));
    causes.extend(finalizers(object));
    causes
}

fn names(naming: Naming, object: &Value) -> Causes {
    let problems = |name: &str, prefix: bool| naming.problems(object, name, prefix);
    let mut causes = Causes::default();
    let generate_name = object::meta_str(object, "generateName");
    if !generate_name.is_empty() {
        for problem in problems(generate_name, true) {
            causes.push(Cause::invalid("metadata.generateName", &generate_name.into(), &problem));
        }
    }
    let name = object::name(object);
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        for problem in problems(name, false) {
            causes.push(Cause::invalid("metadata.name", &name.into(), &problem));
        }
    }
    causes
}

/// Returns the errors in the labels, as whole messages.
pub(crate) fn label_problems(object: &Value) -> Vec<String> {
    texts(&label_pairs(sorted(object, "labels"), "metadata.labels"))
}

/// Returns the errors in the annotations, as whole messages.
pub(crate) fn annotation_problems(object: &Value) -> Vec<String> {
    texts(&annotations(object))
}

fn texts(causes: &Causes) -> Vec<String> {
    causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
}

fn annotations(object: &Value) -> Causes {
    let mut causes = Causes::default();
    let mut size = 0;
    for (key, value) in sorted(object, "annotations") {
        size += key.len() + value.len();
        for problem in labels::key(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &key.into(), &problem));
        }
    }
    if size > ANNOTATIONS_LIMIT {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_LIMIT));
    }
    causes
}

fn sorted<'v>(object: &'v Value, field: &str) -> Vec<(&'v str, &'v str)> {
    let mut pairs: Vec<_> = object::meta_map(object, field).collect();
    pairs.sort_unstable();
    pairs
}

fn owner_references(object: &Value) -> Causes {
    let Some(Value::Array(owners)) = object::meta(object, "ownerReferences") else {
        return Causes::default();
    };
    let mut causes: Causes = owners.iter().flat_map(owner_reference).collect();
    let text =
        |owner: &Value, field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut controllers = owners.iter().filter(|owner| owner.get("controller") == Some(&Value::Bool(true)));
    if let (Some(one), Some(other)) = (controllers.next(), controllers.next()) {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {}/{} and {}/{}",
            text(one, "kind"),
            text(one, "name"),
            text(other, "kind"),
            text(other, "name")
        );
        causes.push(Cause::invalid("metadata.ownerReferences", &Value::Array(owners.clone()), &why));
    }
    causes
}

fn owner_reference(owner: &Value) -> Causes {
    let at = |field: &str| format!("metadata.ownerReferences.{field}");
    let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    let mut causes = Causes::default();
    let api_version = text("apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    if version.is_empty() || version.contains('/') {
        causes.push(Cause::invalid(at("apiVersion"), &api_version.into(), "version must not be empty"));
    }
    for field in ["kind", "name", "uid"] {
        if text(field).is_empty() {
            let why =
                if field == "uid" || field == "kind" || field == "name" { "must not be empty" } else { "" };
            causes.push(Cause::invalid(at(field), &"".into(), why));
        }
    }
    if text("kind") == "Event" && version == "v1" && (group.is_empty() || group == "events.k8s.io") {
        let why = format!("{group}/{version}, Kind=Event is disallowed from being an owner");
        causes.push(Cause::invalid("metadata.ownerReferences", owner, &why));
    }
    causes
}

fn finalizers(object: &Value) -> Causes {
    let mut causes = Causes::default();
    let finalizers = object::finalizers(object);
    for finalizer in &finalizers {
        for problem in labels::key(finalizer) {
            causes.push(Cause::invalid("metadata.finalizers", &(*finalizer).into(), &problem));
        }
    }
    if finalizers.contains(&"orphan") && finalizers.contains(&"foregroundDeletion") {
        let value = Value::from(finalizers);
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid("metadata.finalizers", &value, why));
    }
    causes
}

/// Validates that an update keeps immutable metadata.
pub(crate) fn validate_update(object: &Value, old: &Value) -> Causes {
    let mut causes = Causes::default();
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"] {
        let value = object::meta_str(object, field);
        if value != object::meta_str(old, field) {
            causes.push(Cause::invalid(format!("metadata.{field}"), &value.into(), "field is immutable"));
        }
    }
    let grace = |object: &Value| object::meta(object, "deletionGracePeriodSeconds").cloned();
    if grace(object) != grace(old) {
        let value = grace(object).unwrap_or_default();
        causes.push(Cause::invalid("metadata.deletionGracePeriodSeconds", &value, "field is immutable"));
    }
    causes.extend(label_pairs(sorted(object, "labels"), "metadata.labels"));
    causes.extend(annotations(object));
    causes.extend(owner_references(object));
    if object::is_terminating(old) {
        let before: BTreeSet<&str> = object::finalizers(old).into_iter().collect();
        let added: BTreeSet<&str> =
            object::finalizers(object).into_iter().filter(|finalizer| !before.contains(finalizer)).collect();
        if !added.is_empty() {
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                go::quote::quote_all(added, ", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    causes
}

/// Returns the warnings about new finalizers of a custom resource, sorted; none for built-in kinds.
pub(crate) fn finalizer_warnings(info: &ResourceInfo, object: &Value, old: Option<&Value>) -> Vec<String> {
    if info.builtin {
        return Vec::new();
    }
    let before: BTreeSet<&str> = old.map(object::finalizers).into_iter().flatten().collect();
    let now: BTreeSet<&str> = object::finalizers(object).into_iter().collect();
    let mut warnings = Vec::new();
    for finalizer in now.difference(&before) {
        let mut warn =
            |why: &str| warnings.push(format!("metadata.finalizers: {}: {why}", go::quote(finalizer)));
        labels::key(finalizer).iter().for_each(|problem| warn(problem));
        if finalizer.contains('/') || STANDARD_FINALIZERS.contains(finalizer) {
            continue;
        }
        let path = if finalizer.contains('.') { "including a path (/) " } else { "" };
        warn(&format!(
            "prefer a domain-qualified finalizer name {path}to avoid accidental conflicts with other finalizer writers"
        ));
    }
    warnings
}

/// Removes duplicate owner references; returns the warning about them.
pub(crate) fn dedup_owners(object: &mut Value) -> Option<String> {
    let Some(Value::Array(owners)) = object::known_meta_mut(object, "ownerReferences") else { return None };
    let mut seen: IndexSet<Value> = IndexSet::with_capacity(owners.len());
    let mut repeated: IndexSet<String> = IndexSet::new();
    for owner in owners.drain(..) {
        let (at, is_new) = seen.insert_full(owner);
        if !is_new {
            let uid = seen.get_index(at).and_then(|owner| owner.get("uid")).and_then(Value::as_str);
            repeated.insert(uid.unwrap_or_default().to_owned());
        }
    }
    owners.extend(seen);
    let repeated: Vec<String> = repeated.into_iter().collect();
    (!repeated.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may \
             reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            repeated.join(",")
        )
    })
}
