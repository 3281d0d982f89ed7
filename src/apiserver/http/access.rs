//! Who a request acts as, and whether that user may do what it asks. Administrators may do everything, and may act as
//! others; other users may do what everybody may: look at health, version and discovery, and ask about themselves.

use http::{HeaderMap, Method, header};

use super::Incoming;
use super::path::{Place, Target};
use crate::identity::Identity;
use crate::registry::Query;
use crate::server::Server;
use crate::status::Refusal;

const IMPERSONATE_USER: &str = "impersonate-user";
const IMPERSONATE_GROUP: &str = "impersonate-group";
const IMPERSONATE_UID: &str = "impersonate-uid";
const IMPERSONATE_EXTRA: &str = "impersonate-extra-";

/// A bearer token says who it is, whatever the transport found; a caller in process is the administrator.
pub(super) fn identity(server: &Server, parts: &http::request::Parts) -> Result<Identity, Refusal> {
    let bearer = parts
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.strip_prefix("Bearer "));
    let own = match bearer {
        Some(token) => server.identity_of(token.trim()).ok_or_else(Refusal::unauthorized)?,
        None => parts.extensions.get::<Identity>().cloned().unwrap_or_else(Identity::admin),
    };
    impersonated(own, &parts.headers)
}

fn impersonated(own: Identity, headers: &HeaderMap) -> Result<Identity, Refusal> {
    let texts = |name: &str| -> Vec<String> {
        headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).map(str::to_owned).collect()
    };
    let Some(user) = texts(IMPERSONATE_USER).into_iter().next() else { return Ok(own) };
    if !own.is_admin() {
        let why = format!(
            "users \"{user}\" is forbidden: User \"{}\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
            own.username
        );
        return Err(Refusal::denied(403, "Forbidden", why));
    }
    let mut groups = texts(IMPERSONATE_GROUP);
    // A service account is in the groups of its kind without saying so.
    let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    if let Some((namespace, _)) = account.filter(|_| groups.is_empty()) {
        groups.push("system:serviceaccounts".to_owned());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    let mut identity = Identity::new(user, groups);
    identity.uid = texts(IMPERSONATE_UID).into_iter().next().unwrap_or_default();
    for name in headers.keys() {
        if let Some(key) = name.as_str().strip_prefix(IMPERSONATE_EXTRA) {
            identity.extra.insert(key.to_owned(), texts(name.as_str()));
        }
    }
    Ok(identity)
}

pub(super) fn authorize(incoming: &Incoming, target: &Target) -> Result<(), Refusal> {
    let path = incoming.path.as_str();
    let public = ["/healthz", "/livez", "/readyz", "/version"];
    if incoming.identity.is_admin() || public.iter().any(|prefix| path.starts_with(prefix)) {
        return Ok(());
    }
    let user = &incoming.identity.username;
    match target {
        Target::Resource(place) => {
            let own_reviews = ["selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"];
            if incoming.identity.is_authenticated() && own_reviews.contains(&place.plural.as_str()) {
                return Ok(());
            }
            Err(refused(user, verb(incoming, place), place))
        }
        Target::Other => {
            let discovery = ["/api", "/apis", "/openapi"];
            let below = |prefix: &str| {
                path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            let reading = incoming.method == Method::GET || incoming.method == Method::HEAD;
            if incoming.identity.is_authenticated() && reading && discovery.iter().any(|prefix| below(prefix))
            {
                return Ok(());
            }
            let verb = incoming.method.as_str().to_lowercase();
            let why = format!("forbidden: User \"{user}\" cannot {verb} path \"{path}\"");
            Err(Refusal::denied(403, "Forbidden", why))
        }
    }
}

fn refused(user: &str, verb: &str, place: &Place) -> Refusal {
    let resource = match &place.subresource {
        Some(subresource) => format!("{}/{subresource}", place.plural),
        None => place.plural.clone(),
    };
    let scope = match &place.namespace {
        Some(namespace) => format!("in the namespace \"{namespace}\""),
        None => "at the cluster scope".to_owned(),
    };
    let why = format!(
        "User \"{user}\" cannot {verb} resource \"{resource}\" in API group \"{}\" {scope}",
        place.group
    );
    Refusal::resource_forbidden(&place.group, &place.plural, place.name.as_deref().unwrap_or_default(), &why)
}

fn verb(incoming: &Incoming, place: &Place) -> &'static str {
    let named = place.name.is_some();
    let watching = || matches!(Query::parse(&incoming.query).get("watch"), Some("true" | "1"));
    match incoming.method {
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ if place.watch || watching() => "watch",
        _ if named => "get",
        _ => "list",
    }
}
