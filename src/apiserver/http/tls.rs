//! How a server is reached over TLS, and what becomes of client certificates that nobody vouches for.
//!
//! kube-apiserver asks for a certificate and leaves it to authentication what it says: one of an authority that nobody
//! knows is answered with 401, and not with the end of the handshake, which tells a client nothing.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::{ConfigBuilder, Error, ServerConfig, WantsVerifier};

/// The TLS of a server: a configuration, which decides about client certificates in the handshake, or one that
/// [leaves them to authentication](Self::asking).
#[derive(Debug)]
pub struct Tls {
    pub(super) config: ServerConfig,
    /// Who decides about certificates after the handshake.
    pub(super) clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl From<ServerConfig> for Tls {
    fn from(config: ServerConfig) -> Self {
        Self { config, clients: None }
    }
}

impl Tls {
    /// Asks clients for certificates, which they need not have. Requests of a connection whose certificate `clients` does
    /// not verify are answered with 401, unless they have a bearer token that is known.
    ///
    /// # Errors
    /// When the key is not that of the certificate.
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

/// What authentication knows of the certificate of a connection, in the extensions of its requests: it is to be refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unverified;

/// Whether `clients` vouches for the certificate of a connection now.
pub(super) fn is_verified(
    clients: &dyn ClientCertVerifier,
    certificate: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
) -> bool {
    let verified = clients.verify_client_cert(certificate, intermediates, UnixTime::now());
    verified.inspect_err(|error| tracing::debug!(%error, "a client certificate is not known")).is_ok()
}
