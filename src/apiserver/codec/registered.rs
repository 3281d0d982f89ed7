//! Knows which kinds a version has, also those that are no longer served.

use crate::builtin::tables;
use crate::resources::EVICTION;

/// Whether a version that is no longer served is still accepted: for evictions, from old clients.
pub(super) fn is_taken_too(api_version: &str, kind: &str) -> bool {
    (api_version, kind) == ("policy/v1beta1", EVICTION.2)
}

/// Known versions that are no longer served, with their kinds.
const UNSERVED: &str = include_str!("unserved.txt");

fn was_served(api_version: &str, kind: &str) -> bool {
    let mut lines = UNSERVED.lines().map(str::split_ascii_whitespace);
    lines.any(|mut words| words.next() == Some(api_version) && words.any(|known| known == kind))
}

/// Whether the version has this kind: of an object, of a list, or one that every version has.
pub(crate) fn is_registered(api_version: &str, kind: &str) -> bool {
    const EVERYWHERE: [&str; 7] = [
        "CreateOptions",
        "DeleteOptions",
        "GetOptions",
        "ListOptions",
        "PatchOptions",
        "UpdateOptions",
        "WatchEvent",
    ];
    /// Kinds of the core version that are not resources.
    const CORE: [&str; 6] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "List", "Status"];
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_kind = |kind: &str| tables().kind(group, version, kind).is_some() || was_served(api_version, kind);
    is_kind(kind)
        || kind.strip_suffix("List").is_some_and(is_kind)
        || EVERYWHERE.contains(&kind)
        || (api_version == "v1" && CORE.contains(&kind))
}
