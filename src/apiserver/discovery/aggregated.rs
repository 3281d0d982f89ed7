//! Builds aggregated discovery: all groups and resources in two documents (`/api`, `/apis`), which current clients request
//! first.

use std::sync::Arc;

use admit_apimachinery::yaml::write_sorted;
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::order::groups;
use crate::builtin::{encode, tables};
use crate::resources::{ResourceInfo, Scope};

/// A format of the aggregated documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    Yaml,
    Protobuf,
}

impl Format {
    /// Returns the format of a media type; that of ranges is JSON.
    fn of(media_type: &str) -> Option<Self> {
        match media_type {
            "application/json" | "application/*" | "*/*" => Some(Self::Json),
            "application/yaml" => Some(Self::Yaml),
            "application/vnd.kubernetes.protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }

    /// Returns the content type. Clients recognize an aggregated body only if it repeats these parameters, in this order.
    pub(super) const fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::Yaml => "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
            Self::Protobuf => {
                "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
            }
        }
    }

    /// Writes an aggregated document. `json`: the document as JSON.
    pub(super) fn written(self, document: &Value, json: String) -> Bytes {
        match self {
            Self::Json => json.into(),
            Self::Yaml => write_sorted(document).into(),
            Self::Protobuf => encode::encode(tables(), document).unwrap_or_default().into(),
        }
    }
}

/// Returns the aggregated format that the `Accept` header lists before a plain one, if any. The beta is not served.
pub(super) fn requested(accept: &str) -> Option<Format> {
    for clause in accept.split(',') {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default();
        let parameters: Vec<&str> = parts.collect();
        let has = |parameter: &str| parameters.contains(&parameter);
        let aggregated = has("g=apidiscovery.k8s.io") && has("as=APIGroupDiscoveryList");
        match Format::of(media_type) {
            Some(format) if aggregated && has("v=v2") => return Some(format),
            Some(_) if !aggregated => return None,
            _ => {}
        }
    }
    None
}

/// Returns the document of `/api` (`legacy_group`: the core group only) or of `/apis` (all others).
pub(super) fn document(rows: &[Arc<ResourceInfo>], legacy_group: bool) -> Value {
    let items: Vec<Value> = groups(rows)
        .iter()
        .filter(|group| group.name.is_empty() == legacy_group)
        .map(|group| {
            let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": group.name}) };
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|(version, rows)| {
                    let resources: Vec<Value> = rows.iter().map(|row| resource(row)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn resource(row: &ResourceInfo) -> Value {
    let scope = match row.scope {
        Scope::Cluster => "Cluster",
        Scope::Namespaced => "Namespaced",
    };
    let mut entry = Map::new();
    entry.insert("resource".into(), row.plural.as_str().into());
    entry.insert("responseKind".into(), own_kind(row));
    entry.insert("scope".into(), scope.into());
    entry.insert("singularResource".into(), row.singular.as_str().into());
    entry.insert("verbs".into(), row.verbs.clone().into());
    if !row.short_names.is_empty() {
        entry.insert("shortNames".into(), row.short_names.clone().into());
    }
    if !row.categories.is_empty() {
        entry.insert("categories".into(), row.categories.clone().into());
    }
    if !row.subresources.is_empty() {
        let subresources: Vec<Value> = row
            .subresources
            .iter()
            .map(|subresource| {
                let kind = match subresource.own_kind(row) {
                    Some((group, version, kind)) => json!({"group": group, "version": version, "kind": kind}),
                    None => own_kind(row),
                };
                json!({"subresource": subresource.name(), "responseKind": kind, "verbs": subresource.verbs()})
            })
            .collect();
        entry.insert("subresources".into(), subresources.into());
    }
    Value::Object(entry)
}

/// Returns the response kind. Built-in kinds leave group and version empty, which clients take from the enclosing entry.
fn own_kind(row: &ResourceInfo) -> Value {
    let (group, version) = if row.builtin { ("", "") } else { (row.group.as_str(), row.version.as_str()) };
    json!({"group": group, "version": version, "kind": row.kind})
}
