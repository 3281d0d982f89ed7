//! Checks that a certificate and a private key match, with the errors of `X509KeyPair` in Go's crypto/tls.

use admit_apimachinery::go::pem::{self, Block};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use thiserror::Error;
use x509_parser::prelude::{FromDer, SubjectPublicKeyInfo};

const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Why a certificate and a key do not match.
#[derive(Debug, Error)]
pub(super) enum PairError {
    /// The kinds of the blocks that were found.
    #[error("tls: failed to find {}", no_certificate(.0))]
    NoCertificate(Vec<String>),
    /// The kinds of the blocks that were found.
    #[error("tls: {}", no_key(.0))]
    NoKey(Vec<String>),
    #[error("x509: malformed certificate")]
    Certificate,
    #[error("tls: failed to parse private key")]
    Key,
    #[error("tls: private key type does not match public key type")]
    Type,
    #[error("tls: private key does not match public key")]
    Other,
}

/// Checks that the first certificate in `certificates` and the first key in `keys` match.
pub(super) fn paired(certificates: &str, keys: &str) -> Result<(), PairError> {
    let certificate = first(certificates, |kind| kind == CERTIFICATE).map_err(PairError::NoCertificate)?;
    let key = first(keys, |kind| kind == PRIVATE_KEY || kind.ends_with(" PRIVATE KEY"))
        .map_err(PairError::NoKey)?;
    let (_, certificate) =
        x509_parser::parse_x509_certificate(&certificate.bytes).map_err(|_| PairError::Certificate)?;
    // A valid key of an unsupported size or curve is not compared.
    let Some(public) = public_key(&key.bytes)? else { return Ok(()) };
    let (_, public) = SubjectPublicKeyInfo::from_der(&public).map_err(|_| PairError::Key)?;
    let own = certificate.public_key();
    if own.algorithm.algorithm != public.algorithm.algorithm {
        return Err(PairError::Type);
    }
    if own.subject_public_key.data != public.subject_public_key.data {
        return Err(PairError::Other);
    }
    Ok(())
}

/// Returns the public key of a private key; None if the private key is valid but unsupported.
fn public_key(bytes: &[u8]) -> Result<Option<Vec<u8>>, PairError> {
    let forms: [fn(Vec<u8>) -> PrivateKeyDer<'static>; 3] = [
        |bytes| PrivateKeyDer::Pkcs1(bytes.into()),
        |bytes| PrivateKeyDer::Pkcs8(bytes.into()),
        |bytes| PrivateKeyDer::Sec1(bytes.into()),
    ];
    let read = forms.into_iter().find_map(|form| any_supported_type(&form(bytes.to_vec())).ok());
    if let Some(key) = read {
        return Ok(key.public_key().map(|public| public.to_vec()));
    }
    // All formats are sequences that begin with a version number.
    match x509_parser::der_parser::parse_der(bytes) {
        Ok(([], form)) if is_versioned(&form) => Ok(None),
        _ => Err(PairError::Key),
    }
}

fn is_versioned(form: &x509_parser::der_parser::ber::BerObject<'_>) -> bool {
    let items = form.as_sequence().map(Vec::as_slice).unwrap_or_default();
    items.len() > 2 && items.first().is_some_and(|version| version.as_u32().is_ok())
}

/// Returns the first PEM block of an accepted kind, or the kinds of all blocks.
fn first(text: &str, is_asked: fn(&str) -> bool) -> Result<Block, Vec<String>> {
    let (mut rest, mut skipped) = (text, Vec::new());
    while let Some((block, after)) = pem::first(rest) {
        crate::interrupt::checkpoint();
        if is_asked(&block.kind) {
            return Ok(block);
        }
        skipped.push(block.kind);
        rest = after;
    }
    Err(skipped)
}

fn no_certificate(skipped: &[String]) -> String {
    match skipped {
        [] => "any PEM data in certificate input".to_owned(),
        [kind] if kind.ends_with(PRIVATE_KEY) => {
            "certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"
                .to_owned()
        }
        kinds => format!(
            "\"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]",
            kinds.join(" ")
        ),
    }
}

fn no_key(skipped: &[String]) -> String {
    match skipped {
        [] => "failed to find any PEM data in key input".to_owned(),
        [kind] if kind == CERTIFICATE => {
            "found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        kinds => format!(
            "failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks \
             of the following types: [{}]",
            kinds.join(" ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["a.example".to_owned()]).expect("a certificate");
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn a_key_belongs_to_its_own_certificate() {
        let ((certificate, key), (_, other)) = (made(), made());
        assert!(paired(&certificate, &key).is_ok());
        let told = |certificate: &str, key: &str| paired(certificate, key).expect_err("no pair").to_string();
        assert_eq!(told(&certificate, &other), "tls: private key does not match public key");
        assert_eq!(told("a", "a"), "tls: failed to find any PEM data in certificate input");
        assert_eq!(told(&certificate, "a"), "tls: failed to find any PEM data in key input");
        assert!(told(&key, &key).ends_with("PEM inputs may have been switched"));
        assert!(told(&certificate, &certificate).starts_with("tls: found a certificate rather than a key"));
        let odd = "-----BEGIN A-----\nYWJj\n-----END A-----\n";
        assert!(told(odd, &key).ends_with("of the following types: [A]"));
        let unread = "-----BEGIN PRIVATE KEY-----\nYWJj\n-----END PRIVATE KEY-----\n";
        assert_eq!(told(&certificate, unread), "tls: failed to parse private key");
        let malformed = "-----BEGIN CERTIFICATE-----\nYWJj\n-----END CERTIFICATE-----\n";
        assert_eq!(told(malformed, &key), "x509: malformed certificate");
    }
}
