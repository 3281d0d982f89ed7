//! Paths that are no resources: discovery, OpenAPI, version, health.

use axum::response::Response;
use http::Method;
use serde_json::json;

use super::accept::Accepted;
use super::{Failure, Incoming, respond};
use crate::discovery;
use crate::registry::Query;
use crate::server::Server;
use crate::status::Refusal;

pub(super) fn answer(server: &Server, incoming: &Incoming, accepted: &Accepted) -> Result<Response, Failure> {
    let path = incoming.path.as_str();
    let only_get = || {
        if incoming.method == Method::GET { Ok(()) } else { Err(Refusal::method_not_allowed()) }
    };
    let served = server.registry().served();
    let rows = served.table.rows();
    match path.strip_suffix('/').filter(|_| path.starts_with("/api") || path == "/version/").unwrap_or(path) {
        "" | "/" | "/index.html" => Ok(index(server)),
        "/version" => {
            only_get()?;
            Ok(respond::readable(&Server::version()))
        }
        "/api" => {
            only_get()?;
            discovered(discovery::handle(rows, "/api", &incoming.headers), accepted)
        }
        trimmed if trimmed == "/apis" || trimmed.starts_with("/api/") || trimmed.starts_with("/apis/") => {
            match discovery::handle(rows, trimmed, &incoming.headers) {
                None if trimmed.starts_with("/api/") => Err(Refusal::unknown_path().into()),
                found => discovered(found, accepted),
            }
        }
        other if other.starts_with("/openapi/") => {
            let found = server.openapi().handle(rows, other, &incoming.query, &incoming.headers);
            match found {
                Some(response) => Ok(respond::finished(response)),
                // Below the index of documents a path that is none has an answer without words.
                None if other.starts_with("/openapi/v3/") => Ok(respond::nothing(404)),
                None => Err(Failure::NoSuchPage),
            }
        }
        "/.well-known/openid-configuration" => {
            let host = incoming.headers.get(http::header::HOST).and_then(|host| host.to_str().ok());
            let document = server.issuer().configuration(host.unwrap_or_default());
            Ok(respond::issuer(&document, "application/json"))
        }
        "/openid/v1/jwks" => {
            accepted_key_set(incoming)?;
            Ok(respond::issuer(&server.issuer().key_set(), KEY_SET))
        }
        other => health(server, other, &Query::parse(&incoming.query)).ok_or(Failure::NoSuchPage),
    }
}

const KEY_SET: &str = "application/jwk-set+json";

fn accepted_key_set(incoming: &Incoming) -> Result<(), Refusal> {
    let header = incoming.headers.get(http::header::ACCEPT).and_then(|value| value.to_str().ok());
    let taken = |text: &str| {
        let mut types = text.split(',').map(|clause| clause.split(';').next().unwrap_or_default().trim());
        types.any(|media_type| matches!(media_type, "*/*" | KEY_SET))
    };
    if header.is_none_or(taken) { Ok(()) } else { Err(Refusal::no_representation(&[KEY_SET])) }
}

fn discovered(found: Option<http::Response<bytes::Bytes>>, accepted: &Accepted) -> Result<Response, Failure> {
    let response = found.ok_or(Failure::NoSuchPage)?;
    // Discovery negotiates its aggregated forms itself; what it falls back to is JSON.
    let aggregated = response.headers().contains_key(http::header::ETAG);
    match accepted {
        Accepted::Nothing if !aggregated => {
            accepted.check()?;
            Ok(respond::finished(response))
        }
        Accepted::Yaml(_) if !aggregated => {
            let document = serde_json::from_slice(response.body()).unwrap_or_default();
            Ok(respond::document(200, &document, accepted))
        }
        _ => Ok(respond::finished(response)),
    }
}

fn index(server: &Server) -> Response {
    let served = server.registry().served();
    let mut paths: Vec<String> =
        ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]
            .map(str::to_owned)
            .to_vec();
    for row in served.table.rows().iter().filter(|row| !row.group.is_empty()) {
        paths.push(format!("/apis/{}", row.group));
        paths.push(format!("/apis/{}/{}", row.group, row.version));
    }
    paths.sort();
    paths.dedup();
    respond::readable(&json!({"paths": paths}))
}

/// `/readyz`, `/readyz?verbose`, `/readyz/PART`; the same below `/livez` and `/healthz`.
fn health(server: &Server, path: &str, query: &Query) -> Option<Response> {
    let (probe, part) = match path.trim_start_matches('/').split_once('/') {
        Some((probe, part)) => (probe, Some(part)),
        None => (path.trim_start_matches('/'), None),
    };
    if !matches!(probe, "healthz" | "livez" | "readyz") {
        return None;
    }
    let parts = server.health(probe == "readyz");
    if let Some(part) = part {
        let (_, ok) = parts.iter().find(|(name, _)| name == part)?;
        return Some(if *ok {
            respond::text(200, "ok")
        } else {
            respond::text(500, "internal server error: not ready\n")
        });
    }
    let excluded = query.get("exclude").unwrap_or_default();
    let failed = parts.iter().any(|(name, ok)| !ok && name != excluded);
    if query.get("verbose").is_none() && !failed {
        return Some(respond::text(200, "ok"));
    }
    let mut text = String::new();
    for (name, ok) in &parts {
        text.push_str(&match (ok, name == excluded) {
            (_, true) => format!("[+]{name} excluded: ok\n"),
            (true, false) => format!("[+]{name} ok\n"),
            (false, false) => format!("[-]{name} failed: reason withheld\n"),
        });
    }
    text.push_str(&format!("{probe} check {}\n", if failed { "failed" } else { "passed" }));
    Some(respond::text(if failed { 500 } else { 200 }, text))
}
