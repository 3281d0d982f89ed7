//! Verifies the certificate of a webhook: as in Go, it must be signed by an authority of the `caBundle`, or be in the
//! bundle itself, whoever signed it. Test harnesses may provide only the serving certificate, without its authority,
//! or one that is also a CA certificate (`openssl req -x509` generates such). The webpki verifier alone refuses
//! both.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use webpki::EndEntityCert;

use super::credentials::{Credentials, CredentialsError};
use crate::certificate::is_about_issuer;

/// Says why a `caBundle` cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TrustError {
    #[error("caBundle: {0}")]
    Malformed(#[from] pem::Error),
    #[error("caBundle: {0}")]
    InvalidRoot(#[source] Error),
    #[error("{0}")]
    Verifier(#[from] VerifierBuilderError),
    #[error("{0}")]
    Credentials(#[from] CredentialsError),
    #[error("{0}")]
    Config(#[from] Error),
}

/// Which certificates are trusted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trust<'b> {
    /// Those of a bundle, PEM; with an empty one none.
    Bundle(&'b [u8]),
    /// Any, where the owner of the backend has asked for that.
    Anything,
}

/// Builds the TLS configuration for a backend.
///
/// # Errors
/// If the bundle or the credentials are invalid.
pub(super) fn client_config(
    trust: &Trust<'_>,
    credentials: &Credentials,
) -> Result<ClientConfig, TrustError> {
    let Trust::Bundle(bundle) = trust else { return unverified(credentials) };
    let bundle = CertificateDer::pem_slice_iter(bundle).collect::<Result<Vec<_>, _>>()?;
    let mut roots = RootCertStore::empty();
    for certificate in &bundle {
        roots.add(certificate.clone()).map_err(TrustError::InvalidRoot)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let config = if roots.is_empty() {
        config.with_root_certificates(roots)
    } else {
        let verifier = Bundled::new(roots, bundle, provider)?;
        config.dangerous().with_custom_certificate_verifier(Arc::new(verifier))
    };
    let mut config = credentials.shown(config)?;
    config.alpn_protocols = vec![HTTP.to_vec()];
    Ok(config)
}

const HTTP: &[u8] = b"http/1.1";

fn unverified(credentials: &Credentials) -> Result<ClientConfig, TrustError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Arc::new(Anything(Arc::clone(&provider)));
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let config = config.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = credentials.shown(config)?;
    config.alpn_protocols = vec![HTTP.to_vec()];
    Ok(config)
}

/// Takes any certificate whose key the backend has.
#[derive(Debug)]
struct Anything(Arc<CryptoProvider>);

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[derive(Debug)]
struct Bundled {
    by_authorities: Arc<WebPkiServerVerifier>,
    authorities: Arc<RootCertStore>,
    bundle: Vec<CertificateDer<'static>>,
}

impl Bundled {
    fn new(
        roots: RootCertStore,
        bundle: Vec<CertificateDer<'static>>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, TrustError> {
        let authorities = Arc::new(roots);
        let by_authorities =
            WebPkiServerVerifier::builder_with_provider(Arc::clone(&authorities), provider).build()?;
        Ok(Self { by_authorities, authorities, bundle })
    }

    /// Returns whether the certificate's issuer is in the bundle and is not the certificate's own subject.
    fn may_have_signed(&self, certificate: &CertificateDer<'_>) -> bool {
        let Ok(certificate) = EndEntityCert::try_from(certificate) else { return false };
        let is_issuer = |anchor: &TrustAnchor<'_>| anchor.subject.as_ref() == certificate.issuer();
        certificate.issuer() != certificate.subject() && self.authorities.roots.iter().any(is_issuer)
    }
}

impl ServerCertVerifier for Bundled {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.by_authorities.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // The verifier reports this error only for certificates that are valid at this time.
            Err(error) if is_about_issuer(&error) && self.bundle.contains(end_entity) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            Err(error) if is_of_authority(&error) && !self.may_have_signed(end_entity) => {
                Err(CertificateError::UnknownIssuer.into())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authorities.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.by_authorities.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authorities.supported_verify_schemes()
    }
}

/// Returns whether the certificate was refused for being a CA certificate.
fn is_of_authority(error: &Error) -> bool {
    let Error::InvalidCertificate(CertificateError::Other(OtherError(why))) = error else { return false };
    why.downcast_ref() == Some(&webpki::Error::CaUsedAsEndEntity)
}
