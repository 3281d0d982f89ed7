//! Determines the identity of a request, and its attributes for authorization.

use admit_apimachinery::names::path_segment;
use admit_policy::AccessAttributes;
use http::{HeaderMap, Method, header};

use super::path::{Place, Target};
use super::tls::Unverified;
use crate::call::{ListOptions, Query};
use crate::identity::Identity;
use crate::registry::selector;
use crate::server::Server;
use crate::status::Refusal;

/// Returns the user of a bearer token, or else that of the transport; a caller in process is the administrator.
pub(super) fn identity(server: &Server, parts: &http::request::Parts) -> Result<Identity, Refusal> {
    let bearer = parts.headers.get(header::AUTHORIZATION).and_then(|value| {
        // A header that is not UTF-8 is an unknown token, not a missing one.
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let mut parts = value.trim().split(' ');
        let is_bearer = parts.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"));
        // Text after the token is ignored; an empty token counts as none.
        let token = parts.next().filter(|token| is_bearer && !token.is_empty())?;
        Some(token.to_owned())
    });
    match bearer {
        Some(token) => {
            let known = server.authenticated(&token);
            known.map(|known| known.identity).ok_or_else(Refusal::unauthorized)
        }
        None if parts.extensions.get::<Unverified>().is_some() => Err(Refusal::unauthorized()),
        None => {
            let found = parts.extensions.get::<Identity>().cloned().unwrap_or_else(Identity::admin);
            if !server.answers_anonymous() && found == Identity::anonymous() {
                return Err(Refusal::unauthorized());
            }
            Ok(found)
        }
    }
}

/// Returns the warning about a bearer token that is not looked at because two blanks stand before it.
pub(super) fn ignored_token(headers: &HeaderMap) -> Option<&'static str> {
    const IGNORED: &str =
        "the provided Authorization header contains extra space before the bearer token, and is ignored";
    let value = String::from_utf8_lossy(headers.get(header::AUTHORIZATION)?.as_bytes());
    let (scheme, rest) = value.trim().split_once(' ')?;
    (scheme.eq_ignore_ascii_case("bearer") && rest.starts_with(' ')).then_some(IGNORED)
}

/// Returns the attributes of the request for authorization.
pub(super) fn attributes(parts: &http::request::Parts, target: &Target) -> AccessAttributes {
    match target {
        Target::Other | Target::Verb | Target::Broken => AccessAttributes::Path {
            verb: parts.method.as_str().to_lowercase(),
            path: parts.uri.path().to_owned(),
        },
        Target::Resource(place) => {
            let query = Query::parse(parts.uri.query().unwrap_or_default());
            let verb = verb(&parts.method, place, &query);
            let listing = matches!(verb, "list" | "watch" | "deletecollection");
            let selector = |name: &str| if listing { query.text(name) } else { String::new() };
            AccessAttributes::Resource {
                verb: verb.to_owned(),
                group: place.group.clone(),
                version: place.version.clone(),
                resource: place.plural.clone(),
                subresource: place.subresource.clone().unwrap_or_default(),
                namespace: namespace(place),
                name: place.name.clone().or_else(|| selected_name(verb, &query)).unwrap_or_default(),
                field_selector: selector("fieldSelector"),
                label_selector: selector("labelSelector"),
            }
        }
    }
}

/// Returns whether the response to a request is a stream.
pub(super) fn is_stream(attributes: &AccessAttributes) -> bool {
    match attributes {
        AccessAttributes::Path { .. } => false,
        AccessAttributes::Resource { verb, subresource, .. } => {
            matches!(verb.as_str(), "watch" | "proxy")
                || matches!(subresource.as_str(), "attach" | "exec" | "proxy" | "log" | "portforward")
        }
    }
}

/// Returns the namespace of the request; that of a Namespace is its own name.
fn namespace(place: &Place) -> String {
    let itself = place.plural == "namespaces";
    let namespace = if itself { &place.name } else { &place.namespace };
    namespace.clone().unwrap_or_default()
}

/// Returns the name that a list or watch selects with `metadata.name=`: rules with `resourceNames` apply to it.
fn selected_name(verb: &str, query: &Query) -> Option<String> {
    if !matches!(verb, "list" | "watch") {
        return None;
    }
    let name = selector::exact_name(query.get("fieldSelector")?)?;
    path_segment(&name, false).is_empty().then_some(name)
}

/// Returns the verb of a request to a resource; empty for a method that has none.
pub(super) fn verb(method: &Method, place: &Place, query: &Query) -> &'static str {
    let named = place.name.as_deref().is_some_and(|name| !name.is_empty());
    match *method {
        // For any method: nothing else is served below the old prefix.
        _ if place.watch => "watch",
        _ if place.proxy => "proxy",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD if ListOptions::wants_watch(query) => "watch",
        Method::GET | Method::HEAD => "list",
        _ => "",
    }
}
