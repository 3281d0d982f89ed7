//! Adds what other servers serve to the documents of discovery: their groups and versions, and the resources that they say they have.

use std::sync::Arc;

use admit_apimachinery::pointer::text;
use serde_json::{Map, Value, json};

use super::order::{compare_versions, priority};
use crate::aggregation::Delegated;

/// The versions of groups other than the core group.
fn of_groups(elsewhere: &[Arc<Delegated>]) -> impl Iterator<Item = &Arc<Delegated>> {
    elsewhere.iter().filter(|delegated| !delegated.group.is_empty())
}

/// Adds the groups to an APIGroupList.
pub(super) fn add_to_list(document: &mut Value, elsewhere: &[Arc<Delegated>]) {
    let Some(groups) = document.get_mut("groups").and_then(Value::as_array_mut) else { return };
    for delegated in of_groups(elsewhere) {
        match groups.iter_mut().find(|group| text(group, "/name") == delegated.group) {
            Some(group) => add_version(group, delegated),
            None => {
                let at = place(groups.iter().map(|group| text(group, "/name")), delegated);
                groups.insert(at, group_entry(delegated));
            }
        }
    }
}

/// Returns an APIGroup with the versions that are served here, if any, and elsewhere.
pub(super) fn group(own: Option<Value>, name: &str, elsewhere: &[Arc<Delegated>]) -> Option<Value> {
    let mut group = own;
    for delegated in of_groups(elsewhere).filter(|delegated| delegated.group == name) {
        match &mut group {
            Some(group) => add_version(group, delegated),
            None => {
                let mut document = json!({"kind": "APIGroup", "apiVersion": "v1"});
                if let (Value::Object(document), Value::Object(entry)) =
                    (&mut document, group_entry(delegated))
                {
                    document.extend(entry);
                }
                group = Some(document);
            }
        }
    }
    group
}

/// Adds groups and resources to an APIGroupDiscoveryList.
pub(super) fn add_to_aggregated(document: &mut Value, elsewhere: &[Arc<Delegated>]) {
    let Some(groups) = document.get_mut("items").and_then(Value::as_array_mut) else { return };
    for delegated in of_groups(elsewhere) {
        let version = match delegated.is_available {
            true => {
                let resources = resources(delegated);
                json!({"version": delegated.version, "resources": resources, "freshness": "Current"})
            }
            false => json!({"version": delegated.version, "freshness": "Stale"}),
        };
        match groups.iter_mut().find(|group| text(group, "/metadata/name") == delegated.group) {
            Some(group) => insert(group, version),
            None => {
                let at = place(groups.iter().map(|group| text(group, "/metadata/name")), delegated);
                groups.insert(at, json!({"metadata": {"name": delegated.group}, "versions": [version]}));
            }
        }
    }
}

fn group_entry(delegated: &Delegated) -> Value {
    let version = version_entry(delegated);
    json!({"name": delegated.group, "versions": [version], "preferredVersion": version})
}

fn version_entry(Delegated { group, version, .. }: &Delegated) -> Value {
    json!({"groupVersion": format!("{group}/{version}"), "version": version})
}

fn add_version(group: &mut Value, delegated: &Delegated) {
    insert(group, version_entry(delegated));
    if let Some(preferred) = group.pointer("/versions/0").cloned() {
        group["preferredVersion"] = preferred;
    }
}

/// Inserts a version in its order, unless it is there.
fn insert(group: &mut Value, version: Value) {
    let Some(versions) = group.get_mut("versions").and_then(Value::as_array_mut) else { return };
    let name = text(&version, "/version");
    let order =
        versions.iter().map(|known| compare_versions(text(known, "/version"), name)).collect::<Vec<_>>();
    if order.iter().all(|order| order.is_ne()) {
        let at = order.iter().position(|order| order.is_gt()).unwrap_or(versions.len());
        versions.insert(at, version);
    }
}

/// Returns the position of a group among those of other names: by priority, then by name.
fn place<'n>(names: impl Iterator<Item = &'n str>, delegated: &Delegated) -> usize {
    let before = |name: &&str| {
        let theirs = priority(name);
        theirs > delegated.priority || (theirs == delegated.priority && *name < delegated.group.as_str())
    };
    names.take_while(before).count()
}

/// Converts the entries of an APIResourceList, in which subresources stand beside resources.
fn resources(delegated: &Delegated) -> Vec<Value> {
    let listed = |entry: &&Value| !text(entry, "/name").contains('/');
    delegated.resources.iter().filter(listed).map(|entry| resource(entry, &delegated.resources)).collect()
}

fn resource(entry: &Value, all: &[Value]) -> Value {
    let name = text(entry, "/name");
    let namespaced = entry.get("namespaced").is_some_and(|namespaced| namespaced == true);
    let mut resource = Map::from_iter([
        ("resource".to_owned(), name.into()),
        ("responseKind".to_owned(), kind(entry)),
        ("scope".to_owned(), if namespaced { "Namespaced" } else { "Cluster" }.into()),
        ("singularResource".to_owned(), text(entry, "/singularName").into()),
        ("verbs".to_owned(), verbs(entry)),
    ]);
    for field in ["shortNames", "categories"] {
        if let Some(names) = entry.get(field).filter(|names| names.is_array()) {
            resource.insert(field.to_owned(), names.clone());
        }
    }
    let below: Vec<Value> = all
        .iter()
        .filter_map(|part| Some((text(part, "/name").strip_prefix(name)?.strip_prefix('/')?, part)))
        .map(|(part_name, part)| {
            json!({"subresource": part_name, "responseKind": kind(part), "verbs": verbs(part)})
        })
        .collect();
    if !below.is_empty() {
        resource.insert("subresources".to_owned(), below.into());
    }
    Value::Object(resource)
}

fn kind(entry: &Value) -> Value {
    json!({"group": text(entry, "/group"), "version": text(entry, "/version"), "kind": text(entry, "/kind")})
}

fn verbs(entry: &Value) -> Value {
    entry.get("verbs").filter(|verbs| verbs.is_array()).cloned().unwrap_or_else(|| json!([]))
}
