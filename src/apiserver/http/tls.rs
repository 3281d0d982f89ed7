//! Configures the TLS of a server, and how client certificates of unknown authorities are handled.
//!
//! kube-apiserver requests a certificate and verifies it during authentication: one of an unknown authority is
//! answered with 401, instead of a failed handshake, which gives a client no reason.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::{ConfigBuilder, Error, ServerConfig, WantsVerifier};

/// The TLS configuration of a server: one that verifies client certificates in the handshake, or one that
/// [leaves this to authentication](Self::asking).
#[derive(Debug)]
pub struct Tls {
    pub(super) config: ServerConfig,
    /// Verifies certificates after the handshake.
    pub(super) clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl From<ServerConfig> for Tls {
    fn from(config: ServerConfig) -> Self {
        Self { config, clients: None }
    }
}

impl Tls {
    /// Requests client certificates, which are optional. Requests of a connection whose certificate `clients` does
    /// not verify are answered with 401, unless they have a known bearer token.
    ///
    /// # Errors
    /// If the key does not belong to the certificate.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use admit_apiserver::{Tls, client_verifier};
    /// use rustls::ServerConfig;
    /// use rustls::pki_types::PrivateKeyDer;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    /// let key = PrivateKeyDer::try_from(signing_key.serialize_der())?;
    /// let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    /// let builder = builder.with_safe_default_protocol_versions()?;
    /// let clients = client_verifier(cert.pem().as_bytes())?;
    /// let tls = Tls::asking(builder, clients, vec![cert.der().clone()], key)?;
    /// # drop(tls);
    /// # Ok(())
    /// # }
    /// ```
    pub fn asking(
        builder: ConfigBuilder<ServerConfig, WantsVerifier>,
        clients: Arc<dyn ClientCertVerifier>,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Result<Self, Error> {
        let anybody = admit_serving::anybody(Arc::clone(&clients));
        let config = builder.with_client_cert_verifier(anybody).with_single_cert(chain, key)?;
        Ok(Self { config, clients: Some(clients) })
    }
}

/// Marks requests of a connection whose certificate was not verified; authentication refuses them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unverified;

/// Returns whether `clients` verifies the certificate of a connection now.
pub(super) fn is_verified(
    clients: &dyn ClientCertVerifier,
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> bool {
    let verified = clients.verify_client_cert(certificate, intermediates, UnixTime::now());
    verified.inspect_err(|error| tracing::debug!(%error, "a client certificate is not known")).is_ok()
}
