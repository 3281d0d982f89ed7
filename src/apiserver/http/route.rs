//! Finds the route of a request to a resource as upstream's router does before any handler runs: by path, method,
//! `Content-Type` and `Accept`, in this order. Handlers look at the media types again, and then ranges count.

use http::{HeaderMap, Method, header};

use super::accept::TYPES;
use super::path::Place;
use super::{Failure, accept};
use crate::kinds::{Habit, has};
use crate::resources::{ResourceInfo, Scope, Subresource};
use crate::status::Refusal;

/// The media types of patches of built-in kinds.
pub(super) const PATCHES: [&str; 4] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// The media types of watches.
const STREAMS: [&str; 2] =
    ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];

/// Checks that a built-in kind has a route for the request, and returns the subresource of its path.
///
/// # Errors
/// 404 for the path, 405 for the method, 415 for the media type of a patch, 406 if nothing is accepted.
pub(super) fn builtin(
    info: &ResourceInfo,
    place: &Place,
    (method, headers): (&Method, &HeaderMap),
) -> Result<Option<Subresource>, Refusal> {
    let subresource = path(info, place)?;
    let verb = verb(method, place.name.is_some(), subresource.is_some());
    if subresource == Some(Subresource::Proxy) {
        return if verb.is_some() { Ok(subresource) } else { Err(Refusal::method_not_allowed()) };
    }
    let reads = *method == Method::GET;
    let routed = reads
        || (*method != Method::HEAD && *method != Method::OPTIONS && !place.watch && !is_across(info, place));
    let Some(verb) = verb.filter(|verb| routed && offers(info, subresource, verb)) else {
        return Err(Refusal::method_not_allowed());
    };
    if subresource.is_some_and(Subresource::is_connected) {
        return Ok(subresource);
    }
    if verb == "patch" && !consumes(headers) {
        return Err(Refusal::unmatched_media_type());
    }
    let texts: &[&str] = if subresource == Some(Subresource::Log) { &["text/plain"] } else { &[] };
    let streams: &[&str] = if verb == "list" || place.watch { &STREAMS } else { &[] };
    accept::check_routed(headers, &[texts, &TYPES, streams].concat())?;
    Ok(subresource)
}

/// Returns the subresource of the path of a built-in kind.
///
/// # Errors
/// 404 for a path without a route.
fn path(info: &ResourceInfo, place: &Place) -> Result<Option<Subresource>, Refusal> {
    let in_scope = match info.scope {
        Scope::Cluster => place.namespace.is_none(),
        Scope::Namespaced => {
            place.namespace.is_some() || (place.name.is_none() && offers(info, None, "list"))
        }
    };
    let subresource = place.subresource.as_deref().map(Subresource::named);
    let is_served = match subresource {
        None if place.watch => offers(info, None, "watch"),
        // Kinds that are only created have no names.
        None => {
            place.name.is_none()
                || ["get", "update", "patch", "delete"].iter().any(|verb| offers(info, None, verb))
        }
        Some(None) => false,
        Some(Some(subresource)) => {
            info.serves(subresource)
                && !place.watch
                && (place.rest.is_none() || subresource == Subresource::Proxy)
        }
    };
    if in_scope && is_served && !place.proxy {
        Ok(subresource.flatten())
    } else {
        Err(Refusal::unknown_path())
    }
}

/// Returns the subresource of the path of a custom resource, which has no empty parts: None for the resource itself, Some(None) for one
/// that it does not have. `verb` is that of authorization.
///
/// # Errors
/// The page of paths that are not served, if the path does not match the scope of the resource.
pub(super) fn custom(
    info: &ResourceInfo,
    place: &Place,
    verb: &str,
) -> Result<Option<Option<Subresource>>, Failure> {
    let in_scope = match info.scope {
        Scope::Cluster => place.namespace.is_none(),
        Scope::Namespaced => place.namespace.is_some() || matches!(verb, "list" | "watch"),
    };
    if !in_scope {
        return Err(Failure::NoSuchPage);
    }
    let named = |name: &str| Subresource::named(name).filter(|subresource| info.serves(*subresource));
    Ok(place.subresource.as_deref().map(named))
}

/// Returns whether answers of a path can be Tables.
pub(super) fn has_tables(info: &ResourceInfo, subresource: Option<Subresource>) -> bool {
    match subresource {
        _ if !info.builtin => true,
        // Only kinds that can be read have columns.
        None => offers(info, None, "get"),
        Some(Subresource::Status) => !has(info, Habit::StatusHasNoTable),
        Some(subresource) => subresource == Subresource::Scale,
    }
}

fn is_across(info: &ResourceInfo, place: &Place) -> bool {
    info.scope == Scope::Namespaced && place.namespace.is_none()
}

fn offers(info: &ResourceInfo, subresource: Option<Subresource>, verb: &str) -> bool {
    match subresource {
        Some(subresource) => subresource.verbs().contains(&verb),
        None => info.verbs.iter().any(|offered| offered == verb),
    }
}

/// Returns the verb of a method; None for a method that no path of this form has.
fn verb(method: &Method, named: bool, of_subresource: bool) -> Option<&'static str> {
    Some(match *method {
        Method::GET | Method::HEAD | Method::OPTIONS if named => "get",
        Method::GET | Method::HEAD | Method::OPTIONS => "list",
        Method::POST if !named || of_subresource => "create",
        Method::PUT if named => "update",
        Method::PATCH if named => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => return None,
    })
}

/// Returns whether one of the listed media types is that of a patch.
fn consumes(headers: &HeaderMap) -> bool {
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accept::media_types(text).any(|media_type| PATCHES.contains(&media_type))
}
