//! Builds responses: documents in the media type that was asked for, with their headers; Status refusals; plain text
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

/// Documents for people: always indented, as the reference writes them.
pub(super) fn readable(document: &Value) -> Response {
    json_text(200, format!("{document:#}"))
}

/// The text of a document.
pub(super) fn json_text(code: u16, text: impl Into<Body>) -> Response {
    let mut response = Response::new(text.into());
    *response.status_mut() = status(code);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// In the media type that the client asked for.
pub(super) fn document(code: u16, document: &Value, accepted: &Accepted) -> Response {
    match accepted {
        Accepted::Json(_) => json(code, document),
        // What cannot be told as it was asked for is told to people.
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

/// The refusal of what the caller may not do: upstream writes it where it writes plain pages, too.
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

/// What others need to verify this server's tokens: it changes with the key, which is seldom.
pub(super) fn issuer(document: &Value, media_type: &'static str) -> Response {
    let mut response = json_text(200, document.to_string());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// Go's page for a path that nothing serves.
pub(super) fn page_not_found() -> Response {
    text(404, "404 page not found\n")
}

/// The aggregator's page for a version whose server it does not reach.
pub(super) fn service_unavailable() -> Response {
    text(503, "service unavailable\n")
}

pub(super) fn text(code: u16, body: impl Into<String>) -> Response {
    let mut response = page(code, body);
    response.headers_mut().insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// A page of an error, before anything else is known of the request.
pub(super) fn page(code: u16, body: impl Into<String>) -> Response {
    let mut response = plain(code, body);
    response.headers_mut().insert(NO_SNIFF.0, NO_SNIFF.1);
    response
}

/// Text and nothing else.
pub(super) fn plain(code: u16, body: impl Into<String>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status(code);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A page for people, or for what collects measurements, which nobody is told not to guess the type of.
pub(super) fn shown_text(body: impl Into<String>) -> Response {
    let mut response = plain(200, body);
    response.headers_mut().insert(header::CACHE_CONTROL, NO_CACHE);
    response
}

/// Measurements, in the format of Prometheus that has no timestamps of creation.
pub(super) fn measured(body: impl Into<String>) -> Response {
    let mut response = shown_text(body);
    let format = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format));
    response
}

pub(super) fn finished(response: http::Response<Bytes>) -> Response {
    response.map(Body::from)
}

/// As many characters of warnings are sent whole.
const WARNINGS: usize = 4096;
/// Beyond that each is cut to so many.
const WARNING: usize = 256;

/// Adds a `Warning` header for each text, but for those that no header can hold, because of control characters in them.
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
