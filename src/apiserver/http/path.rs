//! Parses a path into group, version, namespace, resource, name and subresource.

use crate::call::unescape;

/// The target of a path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Resource(Place),
    /// Discovery, health, version, or an unknown path.
    Other,
    /// A verb of the old paths (`/watch/`, `/proxy/`) without a resource.
    Verb,
    /// An invalid path with a broken escape.
    Broken,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) namespace: Option<String>,
    pub(super) plural: String,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
    /// The rest of the path after the subresource.
    pub(super) rest: Option<String>,
    /// The old `/watch/` prefix.
    pub(super) watch: bool,
    /// The old `/proxy/` prefix, below which nothing is served.
    pub(super) proxy: bool,
}

impl Place {
    /// Returns the place without its empty parts, which custom resources take for absent: `/namespaces//widgets`.
    pub(super) fn filled(self) -> Self {
        let filled = |part: Option<String>| part.filter(|part| !part.is_empty());
        Self {
            namespace: filled(self.namespace),
            name: filled(self.name),
            subresource: filled(self.subresource),
            ..self
        }
    }
}

pub(super) fn parse(path: &str) -> Target {
    let Some(decoded) = unescape(&path.replace('+', "%2B")) else { return Target::Broken };
    // No route begins with `//`, although the resource could be derived.
    if decoded.starts_with("//") {
        return Target::Other;
    }
    let mut parts = decoded.trim_matches('/').split('/');
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
    if let Some(verb @ ("watch" | "proxy")) = parts.first().copied() {
        if parts.len() < 2 {
            return Target::Verb;
        }
        (place.watch, place.proxy) = (verb == "watch", verb == "proxy");
        parts.remove(0);
    }
    // `namespaces/NAME/status` is a subresource of the namespace, `namespaces/NAME/pods` a resource in it.
    let inside = parts.first() == Some(&"namespaces")
        && parts.len() > 2
        && !matches!(parts.get(2), Some(&("status" | "finalize")));
    if inside {
        place.namespace = parts.get(1).map(|part| (*part).to_owned());
        parts.drain(..2);
    }
    let mut parts = parts.into_iter().map(str::to_owned);
    place.plural = parts.next().unwrap_or_default();
    place.name = parts.next();
    place.subresource = if place.proxy { None } else { parts.next() };
    let rest: Vec<String> = parts.collect();
    place.rest = (!rest.is_empty()).then(|| rest.join("/"));
    Target::Resource(place)
}
