//! CustomResourceDefinitions: their status at first, the versions that they stored, and how they are deleted.

use serde_json::{Value, json};

use crate::clock::Clock;
use crate::object;
use crate::registry::crd_conditions::set_condition;
use crate::status::Causes;

/// Holds a definition until its objects are gone.
pub(in crate::registry) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// A definition without a status is not served yet.
pub(in crate::registry) fn prepare_create(definition: &mut Value) {
    let stored = storage_version(definition);
    definition["status"] = json!({
        "conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": [stored]
    });
}

pub(in crate::registry) fn prepare_update(definition: &mut Value, old: &Value) {
    let mut stored =
        old.pointer("/status/storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    let version = Value::from(storage_version(definition));
    if !stored.contains(&version) {
        stored.push(version);
        definition["status"]["storedVersions"] = Value::Array(stored);
    }
}

/// The name of the version that is stored; empty where there is none.
pub(in crate::registry) fn storage_version(definition: &Value) -> String {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|version| version["storage"] == true);
    storage.and_then(|version| version["name"].as_str()).unwrap_or_default().to_owned()
}

/// A definition stays, visibly, until its objects are gone.
pub(in crate::registry) fn mark_deleted(definition: &mut Value, clock: &Clock) {
    object::set_meta(definition, "deletionTimestamp", Some(clock.stamp().into()));
    let mut finalizers: Vec<String> = object::finalizers(definition).into_iter().map(str::to_owned).collect();
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    object::set_meta(definition, "finalizers", Some(json!(finalizers)));
    set_condition(
        definition,
        clock,
        "Terminating",
        "True",
        "InstanceDeletionPending",
        "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
    );
}

/// What is wrong with a definition, or with its change.
pub(in crate::registry) fn validate(definition: &Value, old: Option<&Value>) -> Causes {
    crate::served::definition_causes(definition, old)
}
