//! Builds unaggregated discovery: one list of groups, and one list of resources per group and version.

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::order::{Group, groups, priority};
use crate::digest;
use crate::resources::{ResourceInfo, Scope};

/// Returns the document of `/api`. `host` is the address that the client used.
pub(super) fn api_versions(rows: &[Arc<ResourceInfo>], host: &str) -> Value {
    let groups = groups(rows);
    let versions: Vec<&str> = groups
        .iter()
        .filter(|group| group.name.is_empty())
        .flat_map(|group| group.versions.iter().map(|(version, _)| *version))
        .collect();
    json!({
        "kind": "APIVersions",
        "versions": versions,
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    })
}

/// Returns the document of `/apis`.
pub(super) fn group_list(rows: &[Arc<ResourceInfo>]) -> Value {
    let mut groups = groups(rows);
    groups.retain(|group| !group.name.is_empty());
    // This document orders groups by the priorities of their APIServices, then by the APIServices' names, which begin with a version.
    groups.sort_by_cached_key(|group| {
        let names = group.versions.iter().map(|(version, _)| format!("{version}.{}", group.name));
        (Reverse(priority(group.name)), names.min())
    });
    let groups: Vec<Value> = groups.iter().map(|group| Value::Object(group_entry(group))).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// Returns the document of `/apis/GROUP`.
pub(super) fn group(rows: &[Arc<ResourceInfo>], name: &str) -> Option<Value> {
    let groups = groups(rows);
    let group = groups.iter().find(|group| group.name == name && !name.is_empty())?;
    let mut document = Map::new();
    document.insert("kind".into(), "APIGroup".into());
    document.insert("apiVersion".into(), "v1".into());
    document.append(&mut group_entry(group));
    Some(Value::Object(document))
}

/// Returns the document of `/api/VERSION` or `/apis/GROUP/VERSION`.
pub(super) fn resource_list(rows: &[Arc<ResourceInfo>], group: &str, version: &str) -> Option<Value> {
    let groups = groups(rows);
    let (_, rows) = groups
        .iter()
        .find(|candidate| candidate.name == group)?
        .versions
        .iter()
        .find(|(candidate, _)| *candidate == version)?;
    let resources: Vec<Value> = rows.iter().flat_map(|row| resource_entries(row)).collect();
    let mut document = Map::new();
    document.insert("kind".into(), "APIResourceList".into());
    // Upstream's list of the core group has no `apiVersion`.
    if !group.is_empty() {
        document.insert("apiVersion".into(), "v1".into());
    }
    document.insert("groupVersion".into(), group_version(group, version).into());
    document.insert("resources".into(), resources.into());
    Some(Value::Object(document))
}

fn group_entry(group: &Group<'_>) -> Map<String, Value> {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|(version, _)| json!({"groupVersion": group_version(group.name, version), "version": version}))
        .collect();
    let preferred = versions.first().cloned().unwrap_or_default();
    let mut entry = Map::new();
    entry.insert("name".into(), group.name.into());
    entry.insert("versions".into(), versions.into());
    entry.insert("preferredVersion".into(), preferred);
    entry
}

fn resource_entries(row: &ResourceInfo) -> Vec<Value> {
    let namespaced = row.scope == Scope::Namespaced;
    let mut main = Map::new();
    main.insert("name".into(), row.plural.as_str().into());
    main.insert("singularName".into(), row.singular.as_str().into());
    main.insert("namespaced".into(), namespaced.into());
    main.insert("kind".into(), row.kind.as_str().into());
    main.insert("verbs".into(), row.verbs.clone().into());
    if !row.short_names.is_empty() {
        main.insert("shortNames".into(), row.short_names.clone().into());
    }
    if !row.categories.is_empty() {
        main.insert("categories".into(), row.categories.clone().into());
    }
    if !row.storage_key.is_empty() {
        main.insert("storageVersionHash".into(), storage_hash(row).into());
    }
    let mut entries = vec![Value::Object(main)];
    entries.extend(row.subresources.iter().map(|subresource| {
        let mut entry = Map::new();
        entry.insert("name".into(), format!("{}/{}", row.plural, subresource.name()).into());
        entry.insert("singularName".into(), "".into());
        entry.insert("namespaced".into(), namespaced.into());
        let kind = match subresource.own_kind(row) {
            Some((group, version, kind)) => {
                if !version.is_empty() {
                    entry.insert("group".into(), group.into());
                    entry.insert("version".into(), version.into());
                }
                kind
            }
            None => &row.kind,
        };
        entry.insert("kind".into(), kind.into());
        entry.insert("verbs".into(), subresource.verbs().into());
        Value::Object(entry)
    }));
    entries
}

/// Hashes the version and group in which the kind was first stored, which later storage versions do not change.
fn storage_hash(row: &ResourceInfo) -> String {
    digest::short_base64(&format!("{}/{}", row.first_stored, row.kind))
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
