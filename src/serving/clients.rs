//! Which client certificates are accepted beyond what their authorities say: a verifier that leaves signatures and chains
//! to another one, and judges its verdict.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// What the authorities say of a certificate.
pub type Verdict = Result<ClientCertVerified, Error>;

/// A verifier that asks `by_authorities` for everything, and has `judge` decide what becomes of its verdict on a
/// certificate.
pub fn judged(
    by_authorities: Arc<dyn ClientCertVerifier>,
    judge: impl Fn(Verdict, &CertificateDer<'_>) -> Verdict + Send + Sync + 'static,
) -> Arc<dyn ClientCertVerifier> {
    Arc::new(Judged { by_authorities, judge })
}

struct Judged<J> {
    by_authorities: Arc<dyn ClientCertVerifier>,
    judge: J,
}

impl<J> fmt::Debug for Judged<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judged").field("by_authorities", &self.by_authorities).finish_non_exhaustive()
    }
}

impl<J> ClientCertVerifier for Judged<J>
where
    J: Fn(Verdict, &CertificateDer<'_>) -> Verdict + Send + Sync,
{
    fn offer_client_auth(&self) -> bool {
        self.by_authorities.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.by_authorities.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.by_authorities.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Verdict {
        (self.judge)(self.by_authorities.verify_client_cert(end_entity, intermediates, now), end_entity)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authorities.supported_verify_schemes()
    }
}
