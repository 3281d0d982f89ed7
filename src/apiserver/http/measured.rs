//! Measures requests for `/metrics`. What a request asked for travels with its response; it is counted when the response is there, or
//! when the stream that it opens ends.

use axum::body::{Body, HttpBody as _};
use axum::response::Response;
use http::{HeaderMap, Method, header};
use http_body_util::BodyExt as _;
use tokio::time::Instant;

use super::Incoming;
use super::path::Place;
use crate::call::{ListOptions, Query};
use crate::metrics::{Answered, Asked, UnderWay};
use crate::resources::ResourceInfo;
use crate::server::Server;

/// Subresources that are connections to something else.
const CONNECTIONS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];
const APPLY: &str = "application/apply-patch+yaml";

/// What the request of a response asked for; requests that reach no resource have none.
#[derive(Clone, Debug)]
pub(super) struct Reached {
    asked: Asked,
    dry_run: &'static str,
    /// Whether it selects one object by name, which the labels of a stream tell.
    of_one: bool,
}

impl Reached {
    /// Describes a request to a served resource.
    pub(super) fn resource(server: &Server, info: &ResourceInfo, place: &Place, incoming: &Incoming) -> Self {
        let query = Query::parse(&incoming.query);
        let scope = scope(&incoming.method, place);
        let subresource = place.subresource.as_deref().unwrap_or_default();
        let verb = verb(&incoming.method, place, scope, &query, &incoming.headers);
        let asked = server.measures().asked(info, (verb, subresource), scope);
        let selector = query.get("fieldSelector");
        let of_one = selector.is_some_and(|selector| selector.contains("metadata.name="));
        Self { asked, dry_run: dry_run(&query), of_one }
    }

    /// Counts that the resource is deprecated; `why` is the text of its warning.
    pub(super) fn deprecated(&self, server: &Server, info: &ResourceInfo, why: &str) {
        server.measures().deprecated(info, &self.asked.subresource, why);
    }

    /// Describes a health check.
    pub(super) fn check(path: &str, method: &Method) -> Self {
        let verb = if method == Method::GET || method == Method::HEAD { "GET" } else { method_name(method) };
        Self { asked: Asked::of_path(path, verb), dry_run: "", of_one: false }
    }
}

/// Counts `response`, to a request that arrived at `began`, now or when it ends.
pub(super) fn counted(server: &Server, began: Instant, mut response: Response) -> Response {
    let Some(Reached { asked, dry_run, of_one }) = response.extensions_mut().remove::<Reached>() else {
        return response;
    };
    let code = response.status().as_u16();
    let size = response.body().size_hint().exact();
    let answered = Answered { asked, dry_run, code, size, took: began.elapsed() };
    if size.is_some() {
        server.measures().answered(&answered);
        return response;
    }
    let stream = answered.asked.clone();
    let under_way = server.measures().begin_stream(&if of_one { stream.of_one() } else { stream });
    let ending = Ending { server: server.clone(), began, answered, _under_way: under_way };
    let (parts, body) = response.into_parts();
    let body = body.map_frame(move |frame| {
        let _ends_with_the_body = &ending;
        frame
    });
    Response::from_parts(parts, Body::new(body))
}

/// Counts a stream when it ends or the client leaves.
struct Ending {
    server: Server,
    began: Instant,
    answered: Answered,
    _under_way: UnderWay,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.answered.took = self.began.elapsed();
        self.server.measures().answered(&self.answered);
    }
}

fn scope(method: &Method, place: &Place) -> &'static str {
    match place {
        Place { name: Some(_), .. } => "resource",
        _ if method == Method::POST => "resource",
        Place { namespace: Some(_), .. } => "namespace",
        _ => "cluster",
    }
}

fn verb(method: &Method, place: &Place, scope: &str, query: &Query, headers: &HeaderMap) -> &'static str {
    if place.subresource.as_deref().is_some_and(|name| CONNECTIONS.contains(&name)) {
        return "CONNECT";
    }
    let applies =
        || headers.get(header::CONTENT_TYPE).is_some_and(|given| given.as_bytes() == APPLY.as_bytes());
    match *method {
        _ if place.watch => "WATCH",
        Method::GET if ListOptions::wants_watch(query) => "WATCH",
        Method::GET | Method::HEAD if scope == "resource" => "GET",
        Method::GET | Method::HEAD => "LIST",
        Method::PATCH if applies() => "APPLY",
        _ => method_name(method),
    }
}

fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

fn dry_run(query: &Query) -> &'static str {
    match query.get("dryRun") {
        None | Some("") => "",
        Some("All") => "All",
        Some(_) => "invalid",
    }
}
