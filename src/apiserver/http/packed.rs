//! Compresses long answers for clients that take them so.

use std::io::Write as _;

use axum::body::{Body, HttpBody as _};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt as _, Collected};
use tokio::task::spawn_blocking;

/// Shorter answers are sent as they are.
const LEAST: u64 = 128 << 10;

/// The answer to a request with `asked` among its headers: streams, short ones and those of other clients stay as they are.
pub(super) async fn packed(response: Response, asked: &HeaderMap) -> Response {
    if !takes_gzip(asked) || response.body().size_hint().exact().is_none_or(|length| length <= LEAST) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // A document is whole already.
    let text = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    // Some milliseconds for each MiB: off the threads that carry bytes.
    let whole = text.clone();
    let Ok(Some(body)) = spawn_blocking(move || compressed(&text)).await else {
        return Response::from_parts(parts, Body::from(whole));
    };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(parts, Body::from(body))
}

/// A document that says on what it depends in words of its own.
pub(super) fn packed_document(document: http::Response<Bytes>, asked: &HeaderMap) -> http::Response<Bytes> {
    if !takes_gzip(asked) || u64::try_from(document.body().len()).is_ok_and(|length| length <= LEAST) {
        return document;
    }
    let Some(body) = compressed(document.body()) else { return document };
    let (mut parts, _) = document.into_parts();
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    http::Response::from_parts(parts, body)
}

fn compressed(text: &[u8]) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).and_then(|()| encoder.finish()).ok().map(Bytes::from)
}

/// As upstream reads the header: the word alone, without a quality.
fn takes_gzip(asked: &HeaderMap) -> bool {
    let encodings =
        asked.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    encodings.split(',').any(|encoding| encoding.trim() == "gzip")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_itself_asks_for_gzip() {
        let takes = |text| {
            takes_gzip(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, HeaderValue::from_static(text))]))
        };
        assert!(takes("gzip") && takes("br, gzip"));
        assert!(!takes("gzip;q=0") && !takes("*") && !takes("deflate") && !takes_gzip(&HeaderMap::new()));
    }
}
