//! Verifies callers: clients need a certificate of one authority and, if names are given, one of these as their
//! common name. Other clients are rejected in the handshake, before any of a request is read.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{CertificateError, Error, RootCertStore};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::error::TlsConfigError;

/// The callers that are accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    /// The certificates of the authority, PEM.
    pub ca_pem: String,
    /// Permitted common names; if there are none, all clients with a certificate of the authority are accepted.
    pub subjects: Vec<String>,
}

impl Clients {
    pub(super) fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, TlsConfigError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let by_authority =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots(&self.ca_pem)?), provider).build();
        let by_authority = by_authority.map_err(TlsConfigError::clients)?;
        if self.subjects.is_empty() {
            return Ok(by_authority);
        }
        let subjects = self.subjects.clone();
        Ok(admit_serving::judged(by_authority, move |verdict, certificate| match verdict() {
            Ok(_) if !is_named(certificate, &subjects) => {
                Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
            }
            verdict => verdict,
        }))
    }
}

/// Parses the certificates of `pem` as trust anchors.
pub(super) fn roots(pem: &str) -> Result<RootCertStore, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(TlsConfigError::clients)?;
        roots.add(certificate).map_err(TlsConfigError::clients)?;
    }
    Ok(roots)
}

/// Whether the common name of the certificate is one of `subjects`.
fn is_named(certificate: &CertificateDer<'_>, subjects: &[String]) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return false };
    let mut names = certificate.subject().iter_common_name();
    // With several common names, others might read another one than this check.
    let (Some(name), None) = (names.next(), names.next()) else { return false };
    name.as_str().is_ok_and(|name| subjects.iter().any(|allowed| allowed == name))
}
