//! Who may call: clients with a certificate of one authority and, where names are given, with one of these as their
//! common name. Anyone else is refused in the handshake, before a byte of a request is read.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::error::TlsConfigError;

/// The callers that are let in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clients {
    /// Certificates of the authority, PEM.
    pub ca_pem: String,
    /// Common names; none for everyone whom the authority vouches for.
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
        Ok(Arc::new(BySubject { by_authority, subjects: self.subjects.clone() }))
    }
}

/// The certificates of `pem` as roots.
pub(super) fn roots(pem: &str) -> Result<RootCertStore, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(TlsConfigError::clients)?;
        roots.add(certificate).map_err(TlsConfigError::clients)?;
    }
    Ok(roots)
}

#[derive(Debug)]
struct BySubject {
    by_authority: Arc<dyn ClientCertVerifier>,
    subjects: Vec<String>,
}

impl BySubject {
    fn allows(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return false };
        let mut names = certificate.subject().iter_common_name();
        // A second name could be meant for other eyes than the first.
        let (Some(name), None) = (names.next(), names.next()) else { return false };
        name.as_str().is_ok_and(|name| self.subjects.iter().any(|allowed| allowed == name))
    }
}

impl ClientCertVerifier for BySubject {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.by_authority.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verified = self.by_authority.verify_client_cert(end_entity, intermediates, now)?;
        if self.allows(end_entity) {
            Ok(verified)
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authority.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}
