//! Verifies client certificates with additional rules: delegates signatures and chains to another verifier, and decides by its
//! verdict.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

/// The verdict of the authorities about a certificate.
pub type Verdict = Result<ClientCertVerified, Error>;

/// Creates a verifier that delegates to `by_authorities`, but lets `judge` decide about certificates; `judge` may request the
/// verdict of the authorities.
pub fn judged(
    by_authorities: Arc<dyn ClientCertVerifier>,
    judge: impl Fn(&dyn Fn() -> Verdict, &CertificateDer<'_>) -> Verdict + Send + Sync + 'static,
) -> Arc<dyn ClientCertVerifier> {
    Arc::new(Judged { by_authorities, judge, optional: false })
}

/// Creates a verifier that accepts any client that has the key of its certificate, and clients without one. INVARIANT: its user
/// verifies the certificate before trusting the name in it.
pub fn anybody(by_authorities: Arc<dyn ClientCertVerifier>) -> Arc<dyn ClientCertVerifier> {
    let judge = |_: &dyn Fn() -> Verdict, _: &CertificateDer<'_>| Ok(ClientCertVerified::assertion());
    Arc::new(Judged { by_authorities, judge, optional: true })
}

struct Judged<J> {
    by_authorities: Arc<dyn ClientCertVerifier>,
    judge: J,
    /// Whether clients need no certificate, whatever the authorities require.
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
