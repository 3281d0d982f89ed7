//! Compresses long responses for clients that accept gzip.

use std::io::Write as _;

use axum::body::{Body, HttpBody as _};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, header};
use http_body_util::{BodyExt as _, Collected};
use tokio::task::spawn_blocking;

/// The size below which responses are not compressed.
const LEAST: u64 = 128 << 10;

/// Compresses the response to a request with the headers `asked`; streams and short responses stay as they are.
pub(super) async fn packed(response: Response, asked: &HeaderMap) -> Response {
    if !takes_gzip(asked) || response.body().size_hint().exact().is_none_or(|length| length <= LEAST) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // The body is in memory already.
    let text = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    // Takes some milliseconds for each MiB, so it runs off the threads that serve connections.
    let whole = text.clone();
    let Ok(Some(body)) = spawn_blocking(move || compressed(&text)).await else {
        return Response::from_parts(parts, Body::from(whole));
    };
    parts.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(parts, Body::from(body))
}

/// Compresses a document that has its own `Vary` header.
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

/// Returns whether the header accepts gzip; as upstream, quality values are ignored.
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
