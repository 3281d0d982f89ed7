//! Passes requests on to the servers of APIServices. The user is authenticated and authorized here; the other server is told who it is.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, header};
use tokio::time::timeout;

use super::accept::Accepted;
use super::body::Sent;
use super::path::Target;
use super::{Incoming, body, respond};
use crate::aggregation::Delegated;
use crate::callout::{self, Backend};
use crate::server::Server;
use crate::status::Refusal;

/// How long a server may take to begin its response.
const PATIENCE: Duration = Duration::from_mins(1);
/// Headers that are about one connection, not about what is sent over it.
const OF_CONNECTIONS: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Returns the version that a request is about, if another server serves it.
pub(super) fn delegated(server: &Server, target: &Target, path: &str) -> Option<Arc<Delegated>> {
    let (group, version) = match target {
        Target::Resource(place) => (place.group.as_str(), place.version.as_str()),
        Target::Other => {
            let (group, rest) = path.strip_prefix("/apis/")?.split_once('/')?;
            (group, rest.split('/').next().unwrap_or_default())
        }
        Target::Verb | Target::Broken => return None,
    };
    let registry = server.registry();
    let found = registry.aggregation().find(group, version)?;
    let served = registry.served();
    let is_own = served.table.rows().iter().any(|row| row.group == group && row.version == version);
    (!is_own).then_some(found)
}

/// Passes a request on, and its response back as it comes. The body of a change has arrived.
pub(super) async fn forward(server: &Server, delegated: &Delegated, incoming: Incoming) -> Response {
    if !delegated.is_available {
        return respond::service_unavailable();
    }
    if incoming.headers.contains_key(header::UPGRADE) {
        let why = "connections that are upgraded are not supported for the servers of APIServices: they are not passed on";
        return respond::page(501, format!("{why}\n"));
    }
    let Ok(backend) = Backend::of(server.registry(), &delegated.callee) else {
        return respond::service_unavailable();
    };
    let told_in = Accepted::parse_whole(&incoming.headers, &incoming.query);
    let refused = |refusal: Refusal| respond::refusal(&refusal, &told_in);
    let request = match passed_on(incoming, &backend.authority()).await {
        Ok(request) => request,
        Err(refusal) => return refused(refusal),
    };
    match timeout(PATIENCE, backend.send(request)).await {
        Ok(Ok(response)) if redirects(&response) => {
            respond::plain(502, "the backend attempted to redirect this request, which is not permitted")
        }
        Ok(Ok(mut response)) => {
            OF_CONNECTIONS.iter().for_each(|name| drop(response.headers_mut().remove(name)));
            response.map(Body::new)
        }
        Ok(Err(why)) => respond::page(503, format!("{why}\n")),
        Err(_) => refused(Refusal::timed_out()),
    }
}

/// Whether the client is sent elsewhere, where it might show its credentials.
fn redirects<T>(response: &http::Response<T>) -> bool {
    response.status().is_redirection() && response.headers().contains_key(header::LOCATION)
}

async fn passed_on(incoming: Incoming, authority: &str) -> Result<Request<Body>, Refusal> {
    let Incoming { method, path, query, mut headers, identity, body, .. } = incoming;
    let uri = if query.is_empty() { path } else { format!("{path}?{query}") };
    let asked = headers.get(header::HOST).cloned();
    // The user is told in headers of its own, and the length is that of the body as it is sent.
    let own = [header::AUTHORIZATION, header::CONTENT_LENGTH, header::HOST];
    OF_CONNECTIONS.iter().chain(&own).for_each(|name| drop(headers.remove(name)));
    let impersonating = headers.keys().filter(|name| name.as_str().starts_with("impersonate-")).cloned();
    for name in impersonating.collect::<Vec<_>>() {
        headers.remove(name);
    }
    callout::introduce(&identity, &mut headers).map_err(|why| {
        Refusal::bad_request(format!(
            "the user cannot be told to the server of the APIService in headers: {why}"
        ))
    })?;
    let set = |headers: &mut http::HeaderMap, name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    };
    set(&mut headers, "host", authority);
    set(&mut headers, "x-forwarded-uri", uri.split('?').next().unwrap_or_default());
    set(&mut headers, "x-forwarded-proto", "https");
    if let Some(host) = asked {
        headers.insert("x-forwarded-host", host);
    }
    // Bodies of reads are not waited for: they mean nothing, and would need room.
    let bytes = match body {
        arrived @ Sent::Arrived(_) => body::read(arrived).await?,
        Sent::Coming(_) => Bytes::new(),
    };
    let mut request = Request::new(Body::from(bytes));
    *request.method_mut() = method;
    *request.uri_mut() =
        uri.parse().map_err(|_| Refusal::bad_request("the path cannot be passed on".to_owned()))?;
    *request.headers_mut() = headers;
    Ok(request)
}
