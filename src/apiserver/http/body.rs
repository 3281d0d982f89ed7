//! Reads request bodies, up to a size limit and in one of the supported formats.

use axum::body::Body as HttpBody;
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt as _, Limited};

use crate::codec::{Body, Format, MAX_BODY};
use crate::registry::PatchFormat;
use crate::resources::ResourceInfo;
use crate::status::Refusal;

/// The body of a request.
#[derive(Debug)]
pub(crate) enum Sent {
    /// It may still be on its way.
    Coming(HttpBody),
    /// It has arrived, or why it has not: told where the body is asked for, since a request that is refused before needs none.
    Arrived(Result<Bytes, Refusal>),
}

impl Sent {
    /// Waits until everything is here that comes.
    pub(super) async fn arrive(&mut self) {
        if let Self::Coming(body) = self {
            let body = std::mem::take(body);
            *self = Self::Arrived(collected(body).await);
        }
    }

    /// The bytes that have arrived.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Arrived(Ok(bytes)) => bytes.len(),
            Self::Arrived(Err(_)) | Self::Coming(_) => 0,
        }
    }
}

/// # Errors
/// 413 for more than the limit, 400 when the client gives up.
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
/// 415 for a media type that objects of `info` are not read from.
pub(super) fn format(info: &ResourceInfo, headers: &HeaderMap) -> Result<Format, Refusal> {
    match media_type(headers).as_deref() {
        None | Some("application/json") => Ok(Format::Json),
        Some("application/yaml") => Ok(Format::Yaml),
        Some("application/vnd.kubernetes.protobuf") if info.builtin => Ok(Format::Protobuf),
        Some(_) => {
            let all = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];
            Err(Refusal::unsupported_media_type(&all))
        }
    }
}

pub(super) async fn object(info: &ResourceInfo, headers: &HeaderMap, body: Sent) -> Result<Body, Refusal> {
    let format = format(info, headers)?;
    Ok(Body { format, bytes: read(body).await? })
}

/// # Errors
/// 415 for a media type that is no patch, or none for this resource.
pub(super) fn patch_format(info: &ResourceInfo, headers: &HeaderMap) -> Result<PatchFormat, Refusal> {
    match (media_type(headers).as_deref(), info.builtin) {
        (Some("application/json-patch+json"), _) => Ok(PatchFormat::Json),
        (Some("application/merge-patch+json"), _) => Ok(PatchFormat::Merge),
        (Some("application/strategic-merge-patch+json"), true) => Ok(PatchFormat::Strategic),
        (Some("application/apply-patch+yaml"), _) => Ok(PatchFormat::Apply),
        (_, true) => Err(Refusal::unmatched_media_type()),
        (_, false) => Err(Refusal::unsupported_media_type(&[
            "application/json-patch+json",
            "application/merge-patch+json",
            "application/apply-patch+yaml",
        ])),
    }
}

/// The media type without parameters; None when there is no header.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let media_type = text.split(';').next().unwrap_or_default().trim().to_lowercase();
    (!media_type.is_empty()).then_some(media_type)
}
