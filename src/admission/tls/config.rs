//! rustls configurations from PEM text.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};
use thiserror::Error;

use super::clients::{Clients, roots};
use super::{Identity, authority};

/// Why a TLS configuration cannot be made.
#[derive(Debug, Error)]
pub enum TlsConfigError {
    #[error("no certificate or key can be read from the PEM text: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("certificate and key cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
    #[error("the client authority cannot be used: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    #[error("the certificate cannot be read: {0}")]
    Certificate(String),
}

/// What a webhook's port shows, and whom it lets in.
#[derive(Clone, Debug)]
pub struct WebhookTls {
    pub identity: Identity,
    /// Everyone may call without.
    pub clients: Option<Clients>,
    /// Whether TLS 1.2 is spoken as well; of its cipher suites, only those with authenticated encryption.
    pub tls12: bool,
}

impl WebhookTls {
    /// A server configuration: HTTP/1.1 only.
    ///
    /// # Errors
    /// When the PEM text does not hold what it should, or certificate and key are no pair.
    pub fn config(&self) -> Result<ServerConfig, TlsConfigError> {
        let verifier = match &self.clients {
            None => Arc::new(NoClientAuth),
            Some(clients) => clients.verifier()?,
        };
        // ring has no other suites for TLS 1.2 than those with AES-GCM and ChaCha20-Poly1305.
        let versions: &[&SupportedProtocolVersion] = if self.tls12 { &[&TLS13, &TLS12] } else { &[&TLS13] };
        build(&self.identity, verifier, versions)
    }

    /// Days until the certificate expires, with fractions; negative afterwards.
    ///
    /// # Errors
    /// When it is no certificate.
    pub fn days_left(&self, now: time::OffsetDateTime) -> Result<f64, TlsConfigError> {
        let life =
            authority::Life::of(&self.identity.certificate_pem).map_err(TlsConfigError::Certificate)?;
        Ok((life.not_after - now).as_seconds_f64() / 86_400.0)
    }
}

/// A server configuration: TLS 1.3 only, HTTP/1.1 only.
///
/// With `client_ca` a client may present a certificate of that authority (a wrong one ends the handshake); who it is,
/// and whether that suffices, is for the server to decide.
///
/// # Errors
/// When the PEM text does not hold what it should.
pub fn server_config(identity: &Identity, client_ca: Option<&str>) -> Result<ServerConfig, TlsConfigError> {
    let verifier: Arc<dyn ClientCertVerifier> = match client_ca {
        None => Arc::new(NoClientAuth),
        Some(pem) => {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(pem)?), provider);
            builder.allow_unauthenticated().build()?
        }
    };
    build(identity, verifier, &[&TLS13])
}

fn build(
    identity: &Identity,
    verifier: Arc<dyn ClientCertVerifier>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ServerConfig, TlsConfigError> {
    let chain =
        CertificateDer::pem_slice_iter(identity.certificate_pem.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
