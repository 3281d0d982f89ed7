//! Computes the digests that clients see: ETags, the hashes in OpenAPI addresses, discovery's storage version hashes.

use admit_apimachinery::go;
use ring::digest::{SHA256, SHA512, digest};

/// Returns the SHA-512 of `bytes` as upper-case hexadecimal digits, the form of the API server's entity tags.
#[must_use]
pub(crate) fn hex_upper(bytes: &[u8]) -> String {
    go::hex::encode(digest(&SHA512, bytes)).to_uppercase()
}

/// Returns the first eight bytes of the SHA-256 of `text` in base64: a storage version hash.
#[must_use]
pub(crate) fn short_base64(text: &str) -> String {
    let sum = digest(&SHA256, text.as_bytes());
    go::base64::encode(sum.as_ref().get(..8).unwrap_or_default())
}

/// Returns the SHA-256 of `bytes` as lower-case hexadecimal digits, as in certificate fingerprints.
#[must_use]
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    go::hex::encode(digest(&SHA256, bytes))
}
