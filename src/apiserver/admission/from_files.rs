//! Shows policies and bindings that come from files as API objects: defines their mark, refuses client writes to them,
//! and selects the stored policies that this server enforces itself.
//!
//! A program that enforces policies from files (`admit up`, through its webhook) stores them here as well, so that
//! `kubectl get validatingadmissionpolicies` lists everything that is in force. They are ordinary stored objects, so
//! lists, watches, selectors and resourceVersions work unchanged. What differs depends on a mark, an annotation and a
//! label of the same name:
//!
//! - Only the server sets the mark, so it can be relied on, also after a restart.
//! - A marked object is read-only: a client that writes it is told which file to change.
//! - This server does not enforce a policy and a binding that are both marked; the program that stores them does.
//!   Where one of the two is a client's object, only this server knows the pair, and enforces it.
//! - A client's object that already has the name stays and is enforced. The file's policy is enforced as well, and is
//!   shown as soon as the name is free.
//!   enforced as well, and is shown as soon as the name is free.

use std::collections::HashSet;
use std::sync::Arc;

use admit_apimachinery::pointer;
use serde_json::Value;

use super::policy_keys;
use super::review::{Operation, Review};
use crate::object;
use crate::objects::Objects;
use crate::resources::ResourceInfo;
use crate::status::{Cause, Refusal};

/// Names the annotation that holds the file's path, and the label that selects such objects.
pub(crate) const MARK: &str = "admit.dev/from-file";

/// Returns the path of the file that the object comes from, or None for a client's object.
pub(crate) fn file_of(object: &Value) -> Option<&str> {
    object::meta(object, "annotations")?.get(MARK)?.as_str()
}

/// Refuses client writes to objects that come from files, and client-set marks.
pub(super) fn refuse(objects: &dyn Objects, review: &Review<'_>) -> Result<(), Refusal> {
    let info = &*review.call.info;
    if review.call.admitted || !are_shown(info) {
        return Ok(());
    }
    // A review of an object that is deleted with its collection has no name.
    let name = review.old_object.map_or(review.name, object::name);
    let stored = objects.latest_object(&review.call.key(name));
    let file = stored.as_ref().and_then(|stored| file_of(&stored.object));
    match (file, review.operation) {
        (Some(file), Operation::Create) => {
            Err(Refusal::already_exists(info, name).suffixed(&format!(": {}", remedy(file))))
        }
        (Some(file), _) => Err(Refusal::forbidden(info, name, &remedy(file))),
        (None, _) => match review.object.map(marks).unwrap_or_default() {
            causes if causes.is_empty() => Ok(()),
            causes => Err(Refusal::invalid(info, name, causes)),
        },
    }
}

fn are_shown(info: &ResourceInfo) -> bool {
    info.builtin && policy_keys::concerns(&info.storage_key)
}

fn remedy(file: &str) -> String {
    format!(
        "it is in force from the file {file} and read-only here; change it in the file, or remove it from there"
    )
}

fn marks(object: &Value) -> Vec<Cause> {
    let is_marked = |map: &str| object::meta_map(object, map).any(|(key, _)| key == MARK);
    let why = "is set by the server on what is in force from files; leave it out";
    let marked = ["annotations", "labels"].into_iter().filter(|map| is_marked(map));
    marked.map(|map| Cause::forbidden(format!("metadata.{map}[{MARK}]"), why)).collect()
}

/// Selects the stored policies and bindings that this server enforces.
pub(super) fn decided_here(
    mut policies: Vec<Arc<Value>>,
    mut bindings: Vec<Arc<Value>>,
) -> (Vec<Arc<Value>>, Vec<Arc<Value>>) {
    let is_of_file = |object: &Value| file_of(object).is_some();
    let of_files = policies.iter().filter(|policy| is_of_file(policy));
    let of_files: HashSet<String> = of_files.map(|policy| object::name(policy).to_owned()).collect();
    bindings.retain(|binding| !is_of_file(binding) || !of_files.contains(policy_of(binding)));
    let bound: HashSet<&str> = bindings.iter().map(|binding| policy_of(binding)).collect();
    policies.retain(|policy| !is_of_file(policy) || bound.contains(object::name(policy)));
    (policies, bindings)
}

fn policy_of(binding: &Value) -> &str {
    pointer::text(binding, "/spec/policyName")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str, file: Option<&str>, policy: Option<&str>) -> Arc<Value> {
        let annotations = file.map(|file| json!({MARK: file}));
        Arc::new(
            json!({"metadata": {"name": name, "annotations": annotations}, "spec": {"policyName": policy}}),
        )
    }

    #[test]
    fn pairs_of_files_are_decided_elsewhere() {
        let file = Some("a.yaml");
        let policies = ["of-file", "of-file-too", "of-client"];
        let policies = policies.map(|name| object(name, file.filter(|_| name != "of-client"), None));
        let bindings = [
            ("both-of-files", file, "of-file"),
            ("binding-of-file", file, "of-client"),
            ("policy-of-file", None, "of-file-too"),
            ("none-of-file", None, "of-client"),
        ];
        let bindings = bindings.map(|(name, file, policy)| object(name, file, Some(policy)));
        let (policies, bindings) = decided_here(policies.into(), bindings.into());
        let names = |objects: &[Arc<Value>]| -> Vec<String> {
            objects.iter().map(|object| object::name(object).to_owned()).collect()
        };
        assert_eq!(names(&policies), ["of-file-too", "of-client"]);
        assert_eq!(names(&bindings), ["binding-of-file", "policy-of-file", "none-of-file"]);
    }
}
