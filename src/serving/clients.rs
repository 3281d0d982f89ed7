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

/// A verifier that asks `by_authorities` for everything, and has `judge` decide about certificates, which may ask for the
/// verdict of the authorities.
pub fn judged(
    by_authorities: Arc<dyn ClientCertVerifier>,
    judge: impl Fn(&dyn Fn() -> Verdict, &CertificateDer<'_>) -> Verdict + Send + Sync + 'static,
) -> Arc<dyn ClientCertVerifier> {
    Arc::new(Judged { by_authorities, judge, optional: false })
}

/// A verifier that lets in whoever has the key of the certificate that is shown, and whoever shows none. INVARIANT: whoever
/// serves with it has the certificate verified before its name counts.
pub fn anybody(by_authorities: Arc<dyn ClientCertVerifier>) -> Arc<dyn ClientCertVerifier> {
    let judge = |_: &dyn Fn() -> Verdict, _: &CertificateDer<'_>| Ok(ClientCertVerified::assertion());
    Arc::new(Judged { by_authorities, judge, optional: true })
}

struct Judged<J> {
    by_authorities: Arc<dyn ClientCertVerifier>,
    judge: J,
    /// Nobody needs a certificate, whatever the authorities ask.
    optional: bool,
}

impl<J> fmt::Debug for Judged<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judged").field("by_authorities", &self.by_authorities).finish_non_exhaustive()
    }
}

impl<J> ClientCertVerifier for Judged<J>
where
    J: Fn(&dyn Fn() -> Verdict, &CertificateDer<'_>) -> Verdict + Send + Sync,
{
    fn offer_client_auth(&self) -> bool {
        self.by_authorities.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        !self.optional && self.by_authorities.client_auth_mandatory()
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
        let verdict = || self.by_authorities.verify_client_cert(end_entity, intermediates, now);
        (self.judge)(&verdict, end_entity)
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
