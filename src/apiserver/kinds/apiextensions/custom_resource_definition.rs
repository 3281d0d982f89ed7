//! Defines the strategy of CustomResourceDefinitions: names, storage versions, conditions, and deletion.

use std::collections::HashSet;

use admit_policy::crd::{CompiledCrd, Definition};
use serde_json::{Value, json};

use crate::clock::Clock;
use crate::emptied;
use crate::kinds::shared::defaults::set_absent;
use crate::kinds::{Habit, Strategy};
use crate::object;
use crate::status::{Causes, causes};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "CustomResourceDefinition",
    habits: &[Habit::DisownsMetadata, Habit::NeedsVersion, Habit::EndsByItself],
    default: Some(|_, definition| default(definition)),
    prepare_create: Some(prepare_create),
    prepare_update: Some(prepare_update),
    mark_deleted: Some(mark_deleted),
    compile: Some(compile),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

/// The finalizer that keeps a definition until its objects are deleted.
pub(crate) const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

fn default(definition: &mut Value) {
    let names = &mut definition["spec"]["names"];
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    if !kind.is_empty() {
        set_absent(
            names,
            &[("singular", kind.to_lowercase().into()), ("listKind", format!("{kind}List").into())],
        );
    }
    set_absent(&mut definition["spec"], &[("conversion", json!({"strategy": "None"}))]);
}

/// Sets the status of a new definition, which is not served yet.
fn prepare_create(definition: &mut Value) {
    let stored = storage_version(definition);
    definition["status"] = json!({
        "conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": [stored]
    });
}

fn prepare_update(definition: &mut Value, old: &Value) {
    let mut stored =
        old.pointer("/status/storedVersions").and_then(Value::as_array).cloned().unwrap_or_default();
    let version = Value::from(storage_version(definition));
    if !stored.contains(&version) {
        stored.push(version);
        definition["status"]["storedVersions"] = Value::Array(stored);
    }
}

/// Returns the version that objects are stored in.
pub(crate) fn storage_version(definition: &Value) -> String {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let storage = versions.into_iter().flatten().find(|version| version["storage"] == true);
    storage.and_then(|version| version["name"].as_str()).unwrap_or_default().to_owned()
}

/// Marks a definition as terminating; a finalizer keeps it until its objects are deleted.
fn mark_deleted(definition: &mut Value, clock: &Clock) {
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

fn compile(definition: &Value, old: Option<&Value>) -> Causes {
    // Some keywords count even if they are empty.
    let definition = emptied::as_sent(definition, Vec::new);
    let compiled = match old {
        None => CompiledCrd::compile(&definition),
        Some(old) => CompiledCrd::compile_update(&definition, old),
    };
    compiled.err().map(|errors| causes(&errors)).unwrap_or_default()
}

/// Returns the warnings that the old definition did not have.
fn warnings(definition: &Value, old: Option<&Value>) -> Vec<String> {
    let of = |object: &Value| Definition::read(object).map(|read| read.warnings()).unwrap_or_default();
    let before: HashSet<String> = old.map(of).unwrap_or_default().into_iter().collect();
    of(definition).into_iter().filter(|warning| !before.contains(warning)).collect()
}

/// Returns the status of a condition; None if it does not exist.
pub(crate) fn condition<'v>(definition: &'v Value, kind: &str) -> Option<&'v str> {
    let conditions = definition.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?.get("status")?.as_str()
}

/// Sets a condition; an existing one keeps its position in the list.
pub(crate) fn set_condition(
    definition: &mut Value,
    clock: &Clock,
    kind: &str,
    status: &str,
    reason: &str,
    message: &str,
) {
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    let current = conditions.iter_mut().find(|condition| condition["type"] == kind);
    // The last transition time changes only with the condition's status.
    let since = current.as_ref().filter(|current| current["status"] == status);
    let since = since.map_or_else(|| clock.stamp().into(), |current| current["lastTransitionTime"].clone());
    let entry = json!({
        "type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message
    });
    match current {
        Some(current) => *current = entry,
        None => conditions.push(entry),
    }
}
