//! Builds responses: documents in the requested media type, with their headers; refusals as a Status; plain text
//! pages.

use admit_apimachinery::yaml::write_sorted;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::Value;

use super::accept::Accepted;
use crate::builtin::{encode, tables};
use crate::status::Refusal;

const PROTOBUF: HeaderValue = HeaderValue::from_static("application/vnd.kubernetes.protobuf");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, private");
const NO_SNIFF: (HeaderName, HeaderValue) =
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));

pub(super) fn json(code: u16, document: &Value) -> Response {
    json_text(code, format!("{document}\n"))
}

/// Responds with indented JSON, as the reference does for documents that people read.
pub(super) fn readable(document: &Value) -> Response {
    json_text(200, format!("{document:#}"))
}

/// Responds with JSON text.
pub(super) fn json_text(code: u16, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status(code);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// Responds with a document in the accepted media type.
pub(super) fn document(code: u16, document: &Value, accepted: &Accepted) -> Response {
    match accepted {
        Accepted::Json(_) => json(code, document),
        // If nothing is acceptable, the response is indented JSON.
        Accepted::Nothing | Accepted::Pretty(_) => json_text(code, format!("{document:#}")),
        Accepted::Protobuf(_) => match encode::encode(tables(), document) {
            Some(bytes) => {
                let mut response = json(code, &Value::Null);
                *response.body_mut() = Body::from(bytes);
                response.headers_mut().insert(header::CONTENT_TYPE, PROTOBUF);
                response
            }
            None => json(code, document),
        },
        Accepted::Yaml(_) => {
            let mut response = json(code, document);
            *response.body_mut() = Body::from(write_sorted(document));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
            response
        }
    }
}

pub(super) fn refusal(refusal: &Refusal, accepted: &Accepted) -> Response {
    let status = refusal.to_value();
    let mut response = document(refusal.code(), &status, accepted);
    let seconds = status.pointer("/details/retryAfterSeconds").and_then(Value::as_u64);
    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Responds with the refusal of a forbidden request, which has `X-Content-Type-Options: nosniff` as upstream.
pub(super) fn not_allowed(refused: &Refusal, accepted: &Accepted) -> Response {
    let mut response = refusal(refused, accepted);
    response.headers_mut().insert(NO_SNIFF.0, NO_SNIFF.1);
    response
}

pub(super) fn nothing(code: u16) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status(code);
    response.headers_mut().insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// Responds with a document that verifiers of this server's tokens read and may cache: it changes only with the key.
pub(super) fn issuer(document: &Value, media_type: &'static str) -> Response {
    let mut response = json_text(200, document.to_string());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// Responds with Go's page for an unknown path.
pub(super) fn page_not_found() -> Response {
    text(404, "404 page not found\n")
}

/// Responds with the aggregator's page for a version whose server it cannot reach.
pub(super) fn service_unavailable() -> Response {
    text(503, "service unavailable\n")
}

pub(super) fn text(code: u16, body: impl Into<String>) -> Response {
    let mut response = page(code, body);
    response.headers_mut().insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// Responds with an error page, for errors before the request is parsed.
pub(super) fn page(code: u16, body: impl Into<String>) -> Response {
    let mut response = plain(code, body);
    response.headers_mut().insert(NO_SNIFF.0, NO_SNIFF.1);
    response
}

/// Responds with plain text, without further headers.
pub(super) fn plain(code: u16, body: impl Into<String>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status(code);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Responds with a page for people or metrics collectors, without `X-Content-Type-Options`.
pub(super) fn shown_text(body: impl Into<String>) -> Response {
    let mut response = plain(200, body);
    response.headers_mut().insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// Responds with metrics in the Prometheus text format without creation timestamps.
pub(super) fn measured(body: impl Into<String>) -> Response {
    let mut response = shown_text(body);
    let format = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format));
    response
}

pub(super) fn finished(response: http::Response<Bytes>) -> Response {
    response.map(Body::from)
}

/// The total characters of warnings up to which they are sent whole.
const WARNINGS: usize = 4096;
/// The characters to which each is cut beyond that.
const WARNING: usize = 256;

/// Adds a `Warning` header for each text, except those with control characters, which no header can hold.
pub(super) fn warn(response: &mut Response, texts: &[String]) {
    let total: usize = texts.iter().filter(|text| is_header(text)).map(|text| text.chars().count()).sum();
    let longest = if total > WARNINGS { WARNING } else { usize::MAX };
    let mut written = 0;
    for text in texts.iter().filter(|text| !text.is_empty()) {
        if written >= WARNINGS && total > WARNINGS {
            return;
        }
        let text: String = text.chars().take(longest).collect();
        if !is_header(&text) {
            continue;
        }
        written += text.chars().count();
        let quoted = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

fn is_header(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

fn status(code: u16) -> StatusCode {
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
