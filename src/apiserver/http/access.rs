//! Who a request is from, and what it wants to do, as the roles are asked about it.

use admit_policy::host::AccessAttributes;
use http::{Method, header};

use super::Incoming;
use super::path::{Place, Target};
use crate::identity::Identity;
use crate::registry::Query;
use crate::server::Server;
use crate::status::Refusal;

/// A bearer token says who it is, whatever the transport found; a caller in process is the administrator.
pub(super) fn identity(server: &Server, parts: &http::request::Parts) -> Result<Identity, Refusal> {
    let bearer = parts
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    match bearer {
        Some(token) => {
            let known = server.authenticated(token.trim());
            known.map(|known| known.identity).ok_or_else(Refusal::unauthorized)
        }
        None => Ok(parts.extensions.get::<Identity>().cloned().unwrap_or_else(Identity::admin)),
    }
}

/// The request as something that may be allowed.
pub(super) fn attributes(incoming: &Incoming, target: &Target) -> AccessAttributes {
    match target {
        Target::Other => AccessAttributes::Path {
            verb: incoming.method.as_str().to_lowercase(),
            path: incoming.path.clone(),
        },
        Target::Resource(place) => {
            let query = Query::parse(&incoming.query);
            let verb = verb(&incoming.method, place, &query);
            let listing = matches!(verb, "list" | "watch" | "deletecollection");
            let selector = |name: &str| if listing { query.text(name) } else { String::new() };
            AccessAttributes::Resource {
                verb: verb.to_owned(),
                group: place.group.clone(),
                version: place.version.clone(),
                resource: place.plural.clone(),
                subresource: place.subresource.clone().unwrap_or_default(),
                namespace: namespace(place),
                name: place.name.clone().unwrap_or_default(),
                field_selector: selector("fieldSelector"),
                label_selector: selector("labelSelector"),
            }
        }
    }
}

/// A namespace lies in itself.
fn namespace(place: &Place) -> String {
    let itself = place.group.is_empty() && place.plural == "namespaces";
    let namespace = if itself { &place.name } else { &place.namespace };
    namespace.clone().unwrap_or_default()
}

fn verb(method: &Method, place: &Place, query: &Query) -> &'static str {
    let named = place.name.is_some();
    let watching = || matches!(query.get("watch"), Some("true" | "1"));
    match *method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ if place.watch => "watch",
        _ if named => "get",
        _ if watching() => "watch",
        _ => "list",
    }
}
