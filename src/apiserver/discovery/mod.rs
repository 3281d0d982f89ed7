//! Serves discovery: the documents `/api`, `/apis` and below, which tell clients what the server serves.
//!
//! Input: the rows of the resource table, what other servers serve, the path and the request headers. Output: a finished response, or `None`
//! where the path is no discovery document (the router then answers 404). What is served here
//! is derived from the rows, so discovery cannot disagree with it.

mod aggregated;
mod delegated;
mod legacy;
mod order;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use serde_json::Value;

use crate::aggregation::Delegated;
use crate::digest;
use crate::resources::ResourceInfo;

pub(crate) use order::{compare_versions, priority};

/// Answers `GET` of a discovery path.
#[must_use]
pub(crate) fn handle(
    rows: &[Arc<ResourceInfo>],
    elsewhere: &[Arc<Delegated>],
    path: &str,
    headers: &HeaderMap,
) -> Option<Response<Bytes>> {
    let host = text(headers, header::HOST);
    match path {
        "/api" | "/apis" => {
            let legacy_group = path == "/api";
            Some(if let Some(format) = aggregated::requested(text(headers, header::ACCEPT)) {
                let mut document = aggregated::document(rows, legacy_group);
                if !legacy_group {
                    delegated::add_to_aggregated(&mut document, elsewhere);
                }
                tagged(&document, format, headers)
            } else if legacy_group {
                json(&legacy::api_versions(rows, host))
            } else {
                let mut document = legacy::group_list(rows);
                delegated::add_to_list(&mut document, elsewhere);
                json(&document)
            })
        }
        _ => {
            if let Some(version) = path.strip_prefix("/api/") {
                return legacy::resource_list(rows, "", version).as_ref().map(json);
            }
            let (group, version) = match path.strip_prefix("/apis/")?.split_once('/') {
                Some((group, version)) => (group, Some(version)),
                None => (path.strip_prefix("/apis/")?, None),
            };
            match version {
                None => {
                    let own = legacy::group(rows, group);
                    delegated::group(own, group, elsewhere).as_ref().map(json)
                }
                Some(version) => legacy::resource_list(rows, group, version).as_ref().map(json),
            }
        }
    }
}

fn json(document: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(document.to_string()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, private"));
    response
}

/// Builds the response. An aggregated document has a digest as ETag, the same for all formats, so that an unchanged one is
/// answered by 304.
fn tagged(document: &Value, format: aggregated::Format, request: &HeaderMap) -> Response<Bytes> {
    let json = document.to_string();
    let etag = format!("\"{}\"", digest::hex_upper(json.as_bytes()));
    let unchanged = text(request, header::IF_NONE_MATCH) == etag;
    let mut response = Response::new(if unchanged { Bytes::new() } else { format.written(document, json) });
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    if !unchanged {
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(format.content_type()));
    }
    if let Ok(etag) = header::HeaderValue::from_str(&etag) {
        headers.insert(header::ETAG, etag);
    }
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("public"));
    headers.insert(header::VARY, header::HeaderValue::from_static("Accept"));
    response
}

/// Returns the value of a header; empty if it is absent or not a string.
fn text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
