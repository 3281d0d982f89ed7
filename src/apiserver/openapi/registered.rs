//! Tells in which versions `DeleteOptions` and `WatchEvent` are registered, which each document publishes another part of.

use serde_json::{Value, json};

use super::operations::{META, gvk};

/// The versions of Kubernetes 1.36; to update to another release read them from `DeleteOptions` in a document that its server publishes.
const REGISTERED: &str = include_str!("registered.txt");
/// Kinds that are registered in every version.
const EVERYWHERE: [&str; 2] = ["DeleteOptions", "WatchEvent"];
/// The extension that tells the group, version and kind of a schema.
pub(super) const EXTENSION: &str = "x-kubernetes-group-version-kind";

/// Which versions a document tells.
#[derive(Clone, Debug, Default)]
pub(super) enum Told {
    /// Those of the server: in the document of version 2.
    #[default]
    All,
    /// Those that servers of custom kinds have, too: in documents of custom kinds.
    Shared,
    /// The first of the core group and this: in documents of built-in kinds of a group and version.
    Own(String, String),
}

impl Told {
    /// Returns the groups, versions and kinds of a kind that is registered everywhere; None for others.
    pub(super) fn of(&self, kind: &str) -> Option<Value> {
        if !EVERYWHERE.contains(&kind) {
            return None;
        }
        let kinds = match self {
            Self::All => registered(true).map(|(group, version)| gvk(group, version, kind)).collect(),
            Self::Shared => registered(false).map(|(group, version)| gvk(group, version, kind)).collect(),
            Self::Own(group, version) if group.is_empty() => json!([gvk(group, version, kind)]),
            Self::Own(group, version) => json!([gvk("", "v1", kind), gvk(group, version, kind)]),
        };
        Some(kinds)
    }
}

/// Makes the schemas of a document tell all versions, as version 2 does.
pub(super) fn tell_all(document: &mut Value) {
    let Some(schemas) = document.pointer_mut("/components/schemas") else { return };
    for kind in EVERYWHERE {
        let published = schemas.get_mut(format!("{META}.{kind}"));
        if let (Some(published), Some(kinds)) = (published, Told::All.of(kind)) {
            published[EXTENSION] = kinds;
        }
    }
}

/// Returns groups and versions; `of_server`: also those that are known to the server itself alone.
fn registered(of_server: bool) -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = REGISTERED.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_once(' ')).flat_map(move |(group, versions)| {
        let listed = move |version: &'static str| match version.strip_prefix('+') {
            Some(version) => of_server.then_some(version),
            None => Some(version),
        };
        versions.split(' ').filter_map(listed).map(move |version| (group.trim_matches('-'), version))
    })
}
