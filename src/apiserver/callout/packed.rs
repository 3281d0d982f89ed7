//! Reads responses that are compressed. Go's client says that it takes gzip, and so do servers behind proxies that compress.

use std::io::{self, Read as _};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use http::{HeaderMap, header};

use super::failure::NotSent;

/// The only encoding that is accepted.
pub(super) const ENCODING: &str = "gzip";

/// Returns what a body holds, up to `most` bytes.
///
/// # Errors
/// If it is not what its headers say, or too large.
pub(super) fn unpacked(headers: &HeaderMap, body: Bytes, most: usize) -> Result<Bytes, NotSent> {
    let encoding = headers.get(header::CONTENT_ENCODING).map(|encoding| encoding.as_bytes());
    if !encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case(ENCODING.as_bytes())) {
        return Ok(body);
    }
    let mut held = Vec::new();
    let mut decoder = MultiGzDecoder::new(body.as_ref()).take(most as u64 + 1);
    decoder.read_to_end(&mut held).map_err(|error| NotSent::Answer(described(&error).into()))?;
    if held.len() > most {
        return Err(NotSent::Answer("length limit exceeded".into()));
    }
    Ok(held.into())
}

/// Describes why gzip cannot be read, in Go's words.
fn described(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "unexpected EOF".to_owned(),
        _ => "gzip: invalid header".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap().into()
    }

    #[test]
    fn what_is_held_is_bounded() {
        let headers = HeaderMap::from_iter([(header::CONTENT_ENCODING, "GZIP".parse().unwrap())]);
        let read = |body: Bytes, most| unpacked(&headers, body, most).map_err(|error| error.to_string());
        assert_eq!(read(packed(b"{}"), 2).unwrap(), "{}");
        let bomb = packed(&vec![b' '; 1 << 20]);
        assert!(read(bomb, 1 << 16).unwrap_err().ends_with("length limit exceeded"));
        let cut = packed(b"{}").slice(..12);
        assert!(read(cut, 9).unwrap_err().ends_with("Original error: unexpected EOF"));
        assert!(
            read(Bytes::from_static(b"{}{}{}{}{}{}{}{}"), 9).unwrap_err().ends_with("gzip: invalid header")
        );
        assert_eq!(unpacked(&HeaderMap::new(), Bytes::from_static(b"{}"), 1).unwrap(), "{}");
    }
}
