//! Hashes the names of workloads: equal names have equal hashes, and nothing else is revealed.

use admit_apimachinery::go;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};

/// The length of a short hash: among a billion of them, two are equal with a probability of one in ten thousand.
const SHORT: usize = 12;

/// Returns the SHA-256 in hexadecimal.
pub(super) fn long(text: &str) -> String {
    go::hex::encode(digest(&SHA256, text.as_bytes()))
}

/// Returns the beginning of the SHA-256 in URL-safe base64.
pub(super) fn short(text: &str) -> String {
    let mut hash = URL_SAFE_NO_PAD.encode(digest(&SHA256, text.as_bytes()));
    hash.truncate(SHORT);
    hash
}

/// Whether a text has the length of a short hash.
pub(super) fn is_short(text: &str) -> bool {
    text.len() == SHORT
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_other_tools() {
        assert_eq!(long(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(short(""), "47DEQpj8HBSa");
        assert!(is_short("47DEQpj8HBSa") && !is_short("Java") && !is_short("47DEQpj8HB.a"));
    }
}
