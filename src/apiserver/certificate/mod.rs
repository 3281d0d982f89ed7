//! Reads the user from a client certificate (its subject's common name, and its organizations as groups), and verifies
//! client certificates as Go does.

mod clients;
mod first_version;

use rustls::{CertificateError, Error, OtherError};
use x509_parser::prelude::{AttributeTypeAndValue, FromDer as _, X509Certificate};

pub use self::clients::{ClientCaError, client_verifier};
use crate::digest;
use crate::identity::Identity;

const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Returns whether a certificate was refused because of its issuer. Go does not check the issuer of a certificate that
/// is itself trusted.
///
/// The verifier checks time and usage first, so such an error implies that those are valid.
pub(crate) fn is_about_issuer(error: &Error) -> bool {
    let Error::InvalidCertificate(why) = error else { return false };
    match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => true,
        CertificateError::Other(OtherError(why)) => matches!(
            why.downcast_ref(),
            Some(webpki::Error::CaUsedAsEndEntity | webpki::Error::MaximumSignatureChecksExceeded)
        ),
        _ => false,
    }
}

/// Returns the user of a certificate; None if it cannot be parsed or has no common name.
pub(crate) fn identity(der: &[u8]) -> Option<Identity> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let text =
        |name: &AttributeTypeAndValue<'_>| String::from_utf8_lossy(name.attr_value().data).into_owned();
    // Of several, the last counts, as upstream: Go overwrites one field in the order of the subject.
    let common_name = subject.iter_common_name().last().map(text)?;
    let mut identity = Identity::new(common_name, subject.iter_organization().map(text));
    let id = format!("X509SHA256={}", digest::sha256_hex(der));
    identity.extra.insert(CREDENTIAL_ID.to_owned(), vec![id]);
    Some(identity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_common_name_counts() {
        let mut subject = rcgen::DistinguishedName::new();
        subject.push(rcgen::DnType::CommonName, "first");
        subject.push(rcgen::DnType::CustomDnType(vec![2, 5, 4, 3]), "second");
        let mut parameters = rcgen::CertificateParams::default();
        parameters.distinguished_name = subject;
        let key = rcgen::KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap();
        assert_eq!(identity(certificate.der()).unwrap().username, "second");
    }
}
