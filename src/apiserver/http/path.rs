//! Parses a path into group, version, namespace, resource, name and subresource.

use crate::call::unescape;

/// What a path points at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Resource(Place),
    /// Discovery, health, version, and what is not there.
    Other,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: Option<String>,
    pub(super) plural: String,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    /// What follows the subresource.
    pub(super) rest: Option<String>,
    /// The old `/watch/` prefix.
    pub(super) watch: bool,
}

pub(super) fn parse(path: &str) -> Target {
    let Some(decoded) = unescape(&path.replace('+', "%2B")) else { return Target::Other };
    let Some(rest) = decoded.strip_prefix('/') else { return Target::Other };
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let mut parts = rest.split('/');
    let (group, version) = match parts.next() {
        Some("api") => ("", parts.next()),
        Some("apis") => match parts.next() {
            Some(group) => (group, parts.next()),
            None => return Target::Other,
        },
        _ => return Target::Other,
    };
    let Some(version) = version else { return Target::Other };
    let mut parts: Vec<&str> = parts.collect();
    if parts.is_empty() {
        return Target::Other;
    }
    let mut place = Place { group: group.to_owned(), version: version.to_owned(), ..Place::default() };
    if parts.first() == Some(&"watch") && parts.len() > 1 {
        place.watch = true;
        parts.remove(0);
    }
    // `namespaces/NAME/status` is about the namespace, `namespaces/NAME/pods` about what is in it.
    let inside = parts.first() == Some(&"namespaces")
        && parts.len() > 2
        && !(group.is_empty() && matches!(parts.get(2), Some(&("status" | "finalize"))));
    if inside {
        place.namespace = parts.get(1).map(|part| (*part).to_owned());
        parts.drain(..2);
    }
    let mut parts = parts.into_iter().map(str::to_owned);
    place.plural = parts.next().unwrap_or_default();
    place.name = parts.next();
    place.subresource = parts.next();
    let rest: Vec<String> = parts.collect();
    place.rest = (!rest.is_empty()).then(|| rest.join("/"));
    Target::Resource(place)
}
