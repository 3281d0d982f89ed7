//! Reads request bodies, up to a size limit and in one of the supported formats.

use admit_apimachinery::go::mime;
use axum::body::Body as HttpBody;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;

use super::accept::TYPES;
use super::route::PATCHES;
use crate::call::{Call, FieldValidation, WriteOptions};
use crate::codec::{self, Body, Format, MAX_BODY, Received};
use crate::registry::PatchFormat;
use crate::resources::ResourceInfo;
use crate::status::Refusal;

/// The body of a request.
#[derive(Debug)]
pub(crate) enum Sent {
    /// The body may still be arriving.
    Coming(HttpBody),
    /// The body, or the error of reading it, which is reported only if the body is needed.
    Arrived(Result<Bytes, Refusal>),
}

impl Sent {
    /// Waits until the whole body has arrived.
    pub(super) async fn arrive(&mut self) {
        if let Self::Coming(body) = self {
            let body = std::mem::take(body);
            *self = Self::Arrived(collected(body).await);
        }
    }

    /// Returns the number of bytes that have arrived.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Arrived(Ok(bytes)) => bytes.len(),
            Self::Arrived(Err(_)) | Self::Coming(_) => 0,
        }
    }
}

/// # Errors
/// 413 beyond the limit, 400 if the client breaks off.
pub(super) async fn read(sent: Sent) -> Result<Bytes, Refusal> {
    match sent {
        Sent::Coming(body) => collected(body).await,
        Sent::Arrived(body) => body,
    }
}

async fn collected(body: HttpBody) -> Result<Bytes, Refusal> {
    match Limited::new(body, MAX_BODY).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(Refusal::too_large(MAX_BODY)),
        Err(error) => Err(Refusal::bad_request(format!("the body cannot be read: {error}"))),
    }
}

/// # Errors
/// 415 for a media type that objects of `info` cannot be read from.
pub(super) fn format(info: &ResourceInfo, headers: &HeaderMap) -> Result<Format, Refusal> {
    format_of(headers, info.builtin)
}

fn format_of(headers: &HeaderMap, protobuf: bool) -> Result<Format, Refusal> {
    let sent = headers.get(header::CONTENT_TYPE).filter(|sent| !sent.is_empty());
    let Some(sent) = sent else { return Ok(Format::Json) };
    match sent.to_str().ok().and_then(mime::media_type).as_deref() {
        Some("application/json") => Ok(Format::Json),
        Some("application/yaml") => Ok(Format::Yaml),
        Some("application/vnd.kubernetes.protobuf") if protobuf => Ok(Format::Protobuf),
        _ => Err(Refusal::unsupported_media_type(&TYPES)),
    }
}

pub(super) async fn object(info: &ResourceInfo, headers: &HeaderMap, body: Sent) -> Result<Body, Refusal> {
    let format = format(info, headers)?;
    Ok(Body { format, bytes: read(body).await? })
}

/// Reads options from a body; None if it is empty, whatever its content type.
///
/// # Errors
/// 413 and 400 as [`read`], 415 for an unsupported media type, 400 for an invalid body.
pub(super) async fn options(headers: &HeaderMap, body: Sent) -> Result<Option<Value>, Refusal> {
    let bytes = read(body).await?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let body = Body { format: format_of(headers, true)?, bytes };
    codec::receive_delete_options(&body).map(Some)
}

/// # Errors
/// 415 for a media type that is not a patch, or not one for this resource.
pub(super) fn patch_format(info: &ResourceInfo, headers: &HeaderMap) -> Result<PatchFormat, Refusal> {
    // Upstream compares texts here.
    let text = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match (text.split(';').next().unwrap_or_default(), info.builtin) {
        ("application/json-patch+json", _) => Ok(PatchFormat::Json),
        ("application/merge-patch+json", _) => Ok(PatchFormat::Merge),
        ("application/strategic-merge-patch+json", true) => Ok(PatchFormat::Strategic),
        ("application/apply-patch+yaml", _) => Ok(PatchFormat::Apply),
        (_, true) => Err(Refusal::unsupported_media_type(&PATCHES)),
        (_, false) => {
            let own: Vec<&str> = PATCHES.into_iter().filter(|patch| !patch.contains("strategic")).collect();
            Err(Refusal::unsupported_media_type(&own))
        }
    }
}

/// Returns the decoded body, or refuses unknown and duplicate fields if the client's field validation asks for that.
///
/// # Errors
/// 400 that lists them.
pub(super) fn known(
    call: &Call,
    kind: (&str, &str, &str),
    options: &WriteOptions,
    body: &Body,
    received: Received,
) -> Result<Value, Refusal> {
    match options.field_validation {
        FieldValidation::Strict if !received.strict.is_empty() => {
            Err(codec::strict_refusal(kind, body, &received))
        }
        FieldValidation::Warn => {
            received.strict.into_iter().for_each(|text| call.warnings.add(text));
            Ok(received.object)
        }
        FieldValidation::Strict | FieldValidation::Ignore => Ok(received.object),
    }
}
