//! rustls configurations from PEM text.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use thiserror::Error;

use super::Identity;

/// Why a TLS configuration cannot be made.
#[derive(Debug, Error)]
pub enum TlsConfigError {
    #[error("no certificate or key can be read from the PEM text: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    #[error("certificate and key cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
    #[error("the client authority cannot be used: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// A server configuration: TLS 1.3 only, HTTP/1.1 only.
///
/// With `client_ca` a client may present a certificate of that authority (a wrong one ends the handshake); who it is,
/// and whether that suffices, is for the server to decide.
///
/// # Errors
/// When the PEM text does not hold what it should.
pub fn server_config(identity: &Identity, client_ca: Option<&str>) -> Result<ServerConfig, TlsConfigError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&rustls::version::TLS13])?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
                roots.add(certificate?)?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let chain =
        CertificateDer::pem_slice_iter(identity.certificate_pem.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes())?;
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
