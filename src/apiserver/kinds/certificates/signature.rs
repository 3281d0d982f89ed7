//! Verifies that certificate signing requests are signed by their own key, and parses certificate chains.

use admit_apimachinery::go::pem;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::Oid;
use x509_parser::prelude::FromDer;

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";

/// Returns why `text` is not a certificate request signed by its own key; None if it is.
pub(super) fn request_problem(text: &str) -> Option<String> {
    let Some((block, _)) = pem::first(text).filter(|(block, _)| block.kind == REQUEST) else {
        return Some(format!("PEM block type must be {REQUEST}"));
    };
    match X509CertificationRequest::from_der(&block.bytes) {
        Ok(([], request)) => signature_problem(&request).map(str::to_owned),
        Ok(_) => Some("asn1: syntax error: trailing data".to_owned()),
        Err(_) => Some("x509: malformed certificate request".to_owned()),
    }
}

const RSA: &str = "crypto/rsa: verification error";
const ECDSA: &str = "x509: ECDSA verification failure";
const ED25519: &str = "x509: Ed25519 verification failure";

fn signature_problem(request: &X509CertificationRequest<'_>) -> Option<&'static str> {
    let info = &request.certification_request_info;
    let is_p384 = info
        .subject_pki
        .algorithm
        .parameters
        .as_ref()
        .is_some_and(|curve| curve.as_oid().is_ok_and(|curve| curve.to_id_string() == "1.3.132.0.34"));
    let Some((algorithm, problem)) = algorithm(&request.signature_algorithm.algorithm, is_p384) else {
        return Some("x509: cannot verify signature: algorithm unimplemented");
    };
    let key = UnparsedPublicKey::new(algorithm, &info.subject_pki.subject_public_key.data);
    key.verify(info.raw, &request.signature_value.data).is_err().then_some(problem)
}

/// Returns the algorithm of a signature, and Go's message for a signature that does not verify.
fn algorithm(oid: &Oid<'_>, is_p384: bool) -> Option<(&'static dyn VerificationAlgorithm, &'static str)> {
    Some(match (oid.to_id_string().as_str(), is_p384) {
        ("1.2.840.113549.1.1.11", _) => (&signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY, RSA),
        ("1.2.840.113549.1.1.12", _) => (&signature::RSA_PKCS1_2048_8192_SHA384, RSA),
        ("1.2.840.113549.1.1.13", _) => (&signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY, RSA),
        ("1.2.840.10045.4.3.2", false) => (&signature::ECDSA_P256_SHA256_ASN1, ECDSA),
        ("1.2.840.10045.4.3.2", true) => (&signature::ECDSA_P384_SHA256_ASN1, ECDSA),
        ("1.2.840.10045.4.3.3", false) => (&signature::ECDSA_P256_SHA384_ASN1, ECDSA),
        ("1.2.840.10045.4.3.3", true) => (&signature::ECDSA_P384_SHA384_ASN1, ECDSA),
        ("1.3.101.112", _) => (&signature::ED25519, ED25519),
        _ => return None,
    })
}

/// Returns why `text` is not a chain of certificates; None if it is, or is empty.
pub(super) fn chain_problem(text: &str) -> Option<String> {
    if text.is_empty() {
        return None;
    }
    let (mut rest, mut blocks) = (text, 0_usize);
    while let Some((block, after)) = pem::first(rest) {
        crate::interrupt::checkpoint();
        if block.kind != CERTIFICATE {
            let kind = admit_apimachinery::go::quote(&block.kind);
            return Some(format!("only CERTIFICATE PEM blocks are allowed, found {kind}"));
        }
        if block.has_headers {
            return Some("no PEM block headers are permitted".to_owned());
        }
        let mut bytes = block.bytes.as_slice();
        if bytes.is_empty() {
            return Some("found CERTIFICATE PEM block containing 0 certificates".to_owned());
        }
        while !bytes.is_empty() {
            match x509_parser::parse_x509_certificate(bytes) {
                Ok((others, _)) => bytes = others,
                Err(_) => return Some("x509: malformed certificate".to_owned()),
            }
        }
        (rest, blocks) = (after, blocks.saturating_add(1));
    }
    (blocks == 0).then(|| "must contain at least one CERTIFICATE PEM block".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_signed_by_their_key() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let made = rcgen::CertificateParams::default().serialize_request(&key).expect("a request");
        let text = made.pem().expect("text");
        assert_eq!(request_problem(&text), None);
        let mut broken = made.der().to_vec();
        let last = broken.len() - 1;
        broken[last] ^= 1;
        use base64::Engine;
        let broken = base64::engine::general_purpose::STANDARD.encode(broken);
        let text = format!("-----BEGIN {REQUEST}-----\n{broken}\n-----END {REQUEST}-----\n");
        assert_eq!(request_problem(&text).as_deref(), Some(ECDSA));
        assert_eq!(request_problem("abc").as_deref(), Some("PEM block type must be CERTIFICATE REQUEST"));
    }

    #[test]
    fn chains_are_of_certificates() {
        let made = rcgen::generate_simple_self_signed(vec!["a.b".to_owned()]).expect("a certificate");
        let text = made.cert.pem();
        assert_eq!(chain_problem(&format!("{text}{text}")), None);
        assert_eq!(
            chain_problem(&made.signing_key.serialize_pem()).as_deref(),
            Some("only CERTIFICATE PEM blocks are allowed, found \"PRIVATE KEY\"")
        );
        assert_eq!(chain_problem("abc").as_deref(), Some("must contain at least one CERTIFICATE PEM block"));
    }
}
