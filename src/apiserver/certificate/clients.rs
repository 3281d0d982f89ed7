//! Verifies client certificates: as in Go, they must be signed by one of the authorities, or be among them. Test
//! harnesses use the latter: they trust a client's self-signed certificate directly.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};

use super::first_version::AnyVersion;
use super::is_about_issuer;

/// Says why client authorities cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientCaError {
    #[error("holds no certificate in PEM form")]
    Empty,
    #[error("holds a certificate that cannot be used: {0}")]
    Malformed(String),
}

/// Builds a verifier for client certificates that the certificates in `authorities`, PEM, have signed or include. A client
/// without a certificate is accepted as anonymous.
///
/// # Errors
/// If the text holds no certificate, or an invalid one.
///
/// ```
/// use admit_apiserver::client_verifier;
/// use rustls::pki_types::PrivateKeyDer;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
/// let provider = rustls::crypto::ring::default_provider();
/// let tls = rustls::ServerConfig::builder_with_provider(provider.into())
///     .with_safe_default_protocol_versions()?
///     .with_client_cert_verifier(client_verifier(cert.pem().as_bytes())?)
///     .with_single_cert(vec![cert.der().clone()], PrivateKeyDer::try_from(signing_key.serialize_der())?)?;
/// assert!(client_verifier(b"no certificate").is_err());
/// # Ok(())
/// # }
/// ```
pub fn client_verifier(authorities: &[u8]) -> Result<Arc<dyn ClientCertVerifier>, ClientCaError> {
    let malformed = |error: &dyn std::fmt::Display| ClientCaError::Malformed(error.to_string());
    let known: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(authorities).collect();
    let known = known.map_err(|error| malformed(&error))?;
    if known.is_empty() {
        return Err(ClientCaError::Empty);
    }
    let mut roots = RootCertStore::empty();
    for certificate in &known {
        roots.add(certificate.clone()).map_err(|error| malformed(&error))?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let others = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated()
        .build()
        .map_err(|error| malformed(&error))?;
    let by_authorities = Arc::new(AnyVersion { others, authorities: known.clone(), algorithms });
    Ok(admit_serving::judged(by_authorities, move |verdict, certificate| match verdict() {
        Err(error) if is_about_issuer(&error) && known.contains(certificate) => {
            Ok(ClientCertVerified::assertion())
        }
        verdict => verdict,
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
    use rustls::pki_types::UnixTime;

    use super::*;

    fn verified(authorities: &str, certificate: &rcgen::Certificate) -> admit_serving::Verdict {
        let verifier = client_verifier(authorities.as_bytes()).unwrap();
        verifier.verify_client_cert(certificate.der(), &[], UnixTime::now())
    }

    fn authority() -> (rcgen::Certificate, Issuer<'static, KeyPair>) {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        (params.self_signed(&key).unwrap(), Issuer::new(params, key))
    }

    #[test]
    fn a_certificate_is_known_by_its_authority_or_by_itself() {
        let (ca, issuer) = authority();
        let key = KeyPair::generate().unwrap();
        let signed = CertificateParams::default().signed_by(&key, &issuer).unwrap();
        assert!(verified(&ca.pem(), &signed).is_ok());
        assert!(verified(&signed.pem(), &signed).is_ok(), "nobody has the authority that signed it");
        assert!(verified(&ca.pem(), &ca).is_ok(), "that of an authority is one too");
        let own = CertificateParams::default().self_signed(&key).unwrap();
        assert!(verified(&own.pem(), &own).is_ok());
        let (other, _) = authority();
        assert!(verified(&other.pem(), &signed).is_err());
        assert!(verified(&own.pem(), &signed).is_err());
    }

    #[test]
    fn the_time_of_a_known_certificate_counts() {
        let mut params = CertificateParams::default();
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert!(verified(&certificate.pem(), &certificate).is_err());
        assert_eq!(client_verifier(b"").map(drop), Err(ClientCaError::Empty));
    }

    /// Generated by `openssl x509 -req` without an extensions file, valid for 100 years from the end of 2026.
    const FIRST_VERSION: &str = "\
-----BEGIN CERTIFICATE-----
MIIBLjCB1QIUTe1s4jVcI3qOltF2QowTMWAT8w0wCgYIKoZIzj0EAwIwFDESMBAG
A1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyNzE4Mjc1MloYDzIxMjYxMTAzMTgyNzUy
WjAeMQwwCgYDVQQKDANkZXYxDjAMBgNVBAMMBWZpcnN0MFkwEwYHKoZIzj0CAQYI
KoZIzj0DAQcDQgAEcUsTDVSGXL2THzG446SOgcwAKdS9HZd5CllGrHRXiiTzT8ZF
RnyHEAMPuouIUDZSSLFDepELeSchEYhdEJY5ETAKBggqhkjOPQQDAgNIADBFAiBD
IWL74Xad0cEyKL5iHTqN2ITRMawTP8C0iaF7bU06zQIhAJpv9XSfjj/9iMgGGB2p
ZAwbtvzSmi++IRK2kbkO7XfE
-----END CERTIFICATE-----
";
    const ITS_AUTHORITY: &str = "\
-----BEGIN CERTIFICATE-----
MIIBfzCCASWgAwIBAgIUCLMr0GElENghg5u8C88QGxyMQhAwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyNzE4Mjc1MVoYDzIxMjYxMTAz
MTgyNzUxWjAUMRIwEAYDVQQDDAlhdXRob3JpdHkwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAASM1wApNy5bk6lYzv5yDU3XbEFZRNDrTSreOtiPjACvwaPDMxhdD95H
jNy+/ik4JqMGLdjoE6QYXm00uZQtTiUto1MwUTAdBgNVHQ4EFgQU7sVLXpqWVC7k
5webdUui0emVCwgwHwYDVR0jBBgwFoAU7sVLXpqWVC7k5webdUui0emVCwgwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNIADBFAiB89s5JXdaJaHYoSOuiG2Sr
xVJb1hJk+IIBlZXv9Y/CzwIhAPtXcSv78OyGSSAPDCyGcrf5m+wx5s/dfh7AP6w0
Geyt
-----END CERTIFICATE-----
";

    #[test]
    fn certificates_of_the_first_version_are_known_as_others_are() {
        let certificate = CertificateDer::from_pem_slice(FIRST_VERSION.as_bytes()).unwrap();
        let at = |authority: &str, years: u64| {
            let now = UnixTime::since_unix_epoch(Duration::from_secs(years * 31_556_952));
            client_verifier(authority.as_bytes()).unwrap().verify_client_cert(&certificate, &[], now)
        };
        assert!(at(ITS_AUTHORITY, 60).is_ok());
        assert!(at(ITS_AUTHORITY, 50).is_err(), "before its time");
        assert!(at(ITS_AUTHORITY, 200).is_err(), "after its time");
        let (other, _) = authority();
        assert!(at(&other.pem(), 60).is_err());
    }
}
