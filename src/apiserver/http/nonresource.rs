//! Answers paths that are not resources: discovery, OpenAPI, version, health.

use std::sync::Arc;

use axum::response::Response;
use http::Method;
use serde_json::{Value, json};

use super::accept::{Accepted, TYPES, check_routed};
use super::measured::Reached;
use super::packed::packed_document;
use super::{Failure, Incoming, health, respond};
use crate::call::Query;
use crate::discovery;
use crate::resources::ResourceInfo;
use crate::server::Server;
use crate::status::Refusal;

pub(super) fn answer(server: &Server, incoming: &Incoming) -> Result<Response, Failure> {
    let path = incoming.path.as_str();
    let only_get = || {
        if incoming.method == Method::GET { Ok(()) } else { Err(Refusal::method_not_allowed()) }
    };
    let served = server.registry().served();
    let rows = served.table.rows();
    let trimmed = if path.starts_with("/api") { path.trim_end_matches('/') } else { path };
    match if path == "/version/" { "/version" } else { trimmed } {
        // Only documents are below the index of documents.
        "/openapi/v3/" => Ok(respond::nothing(404)),
        "" | "/" | "/index.html" => Ok(index(server)),
        "/version" => {
            only_get()?;
            check_routed(&incoming.headers, &["application/json"])?;
            Ok(respond::readable(&Server::version()))
        }
        "/api" => {
            only_get()?;
            discovered(discovery::handle(rows, &[], "/api", &incoming.headers), incoming, true)
        }
        trimmed if trimmed == "/apis" || trimmed.starts_with("/api/") || trimmed.starts_with("/apis/") => {
            let elsewhere = server.registry().aggregation().all();
            let found = discovery::handle(rows, &elsewhere, trimmed, &incoming.headers);
            if found.is_none() && is_elsewhere(server, trimmed) {
                return Ok(respond::service_unavailable());
            }
            // Upstream's router handles the versions of groups that it knows.
            let routed = match trimmed.strip_prefix("/apis/").and_then(|path| path.split_once('/')) {
                Some((group, _)) => rows.iter().any(|row| row.builtin && row.group == group),
                None => trimmed.starts_with("/api/"),
            };
            if found.is_none() && routed {
                return Err(Refusal::unknown_path().into());
            }
            discovered(found, incoming, routed)
        }
        other if other.starts_with("/openapi/") => document(server, rows, other, incoming),
        "/.well-known/openid-configuration" => {
            check_routed(&incoming.headers, &["application/json"])?;
            let host = incoming.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
            let document = server.issuer().configuration(host.unwrap_or_default());
            Ok(respond::issuer(&document, "application/json"))
        }
        "/openid/v1/jwks" | "/openid/v1/jwks/" => {
            accepted_key_set(incoming)?;
            Ok(respond::issuer(&server.issuer().key_set(), KEY_SET))
        }
        "/metrics" => Ok(respond::measured(server.metrics())),
        "/metrics/slis" => Ok(respond::measured(health::indicators(server))),
        "/statusz" => {
            check_page(incoming)?;
            Ok(respond::shown_text(status_page(server)))
        }
        // The flags of the process are shown by its `--help` only.
        "/flagz" => {
            check_page(incoming)?;
            Ok(respond::shown_text(format!("admit flagz\n{FOR_PEOPLE}\n\n")))
        }
        other => {
            let answered = health::answer(server, other, &Query::parse(&incoming.query));
            let mut response = answered.ok_or(Failure::NoSuchPage)?;
            if health::is_whole(other) {
                response.extensions_mut().insert(Reached::check(other, &incoming.method));
            }
            Ok(response)
        }
    }
}

/// Answers a request for an OpenAPI document.
fn document(
    server: &Server,
    rows: &[Arc<ResourceInfo>],
    path: &str,
    incoming: &Incoming,
) -> Result<Response, Failure> {
    match server.openapi().handle(rows, path, &incoming.query, &incoming.headers) {
        // The documents of version 3 are never compressed.
        Some(response) if path == "/openapi/v2" => {
            Ok(respond::finished(packed_document(response, &incoming.headers)))
        }
        Some(response) => Ok(respond::finished(response)),
        // Unknown paths below the index of documents have an empty body.
        None if path.starts_with("/openapi/v3/") => Ok(respond::nothing(404)),
        None => Err(Failure::NoSuchPage),
    }
}

/// The paths besides those of health checks and groups.
const PAGES: [&str; 14] = [
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/flagz",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/statusz",
    "/version",
];
const FOR_PEOPLE: &str = "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility \
    guarantees and is for debugging purposes only.";
const KEY_SET: &str = "application/jwk-set+json";

fn accepted_key_set(incoming: &Incoming) -> Result<(), Refusal> {
    let header = incoming.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
    let taken = |text: &str| {
        let mut types = text.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim());
        types.any(|media_type| matches!(media_type, "*/*" | KEY_SET))
    };
    if header.is_none_or(|text| text.is_empty() || taken(text)) {
        Ok(())
    } else {
        Err(Refusal::no_representation(&[KEY_SET]))
    }
}

/// Checks that the client accepts plain text, the only type of pages for people.
fn check_page(incoming: &Incoming) -> Result<(), Refusal> {
    let header = incoming.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
    let wanted = |clause: &str| {
        let media_type = clause.split(';').next().unwrap_or_default().trim();
        matches!(media_type, "*/*" | "text/*" | "text/plain")
    };
    if header.is_none_or(|text| text.trim().is_empty() || text.split(',').any(wanted)) {
        return Ok(());
    }
    Err(Refusal::not_acceptable(&["application/json", "application/yaml", "text/plain"]))
}

fn is_elsewhere(server: &Server, path: &str) -> bool {
    let version = path.strip_prefix("/apis/").and_then(|path| path.split_once('/'));
    version.is_some_and(|(group, version)| server.registry().is_served_elsewhere(group, version))
}

/// Answers with a discovery document; `routed`: whether upstream's router checks the media type first.
fn discovered(
    found: Option<http::Response<bytes::Bytes>>,
    incoming: &Incoming,
    routed: bool,
) -> Result<Response, Failure> {
    let response = found.ok_or(Failure::NoSuchPage)?;
    if routed {
        check_routed(&incoming.headers, &TYPES)?;
    }
    // Discovery has negotiated its aggregated forms itself.
    if response.headers().contains_key(http::header::ETAG) {
        return Ok(respond::finished(response));
    }
    let accepted = Accepted::parse_whole(&incoming.headers, "");
    accepted.check()?;
    if let Accepted::Json(_) | Accepted::Pretty(_) = accepted {
        return Ok(respond::finished(response));
    }
    let document: Value = serde_json::from_slice(response.body()).unwrap_or_default();
    Ok(respond::document(200, &document, &accepted))
}

fn index(server: &Server) -> Response {
    let served = server.registry().served();
    let mut paths: Vec<String> = PAGES.map(str::to_owned).to_vec();
    paths.extend(health::paths(server));
    for row in served.table.rows().iter().filter(|row| !row.group.is_empty()) {
        paths.push(format!("/apis/{}", row.group));
        paths.push(format!("/apis/{}/{}", row.group, row.version));
    }
    paths.sort();
    paths.dedup();
    respond::readable(&json!({"paths": paths}))
}

/// Returns the status page of the server for people, whose format may change.
fn status_page(server: &Server) -> String {
    let version = Server::version();
    let text = |field: &str| version[field].as_str().unwrap_or_default().to_owned();
    format!(
        "admit statusz\n{FOR_PEOPLE}\n\nStarted: {}\nBinary version: {}\nEmulation version: {}.{}\n",
        server.started(),
        text("gitVersion"),
        text("emulationMajor"),
        text("emulationMinor")
    )
}
