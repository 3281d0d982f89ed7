//! Creates rustls configurations from PEM text.

use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoClientAuth, WebPkiClientVerifier};
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, SupportedProtocolVersion};

use super::Identity;
use super::authority::Life;
use super::clients::{Clients, roots};
use super::error::TlsConfigError;

/// The certificate of a webhook's listener, and the clients that it accepts.
#[derive(Clone, Debug)]
pub struct WebhookTls {
    pub identity: Identity,
    /// None if clients need no certificate.
    pub clients: Option<Clients>,
    /// Whether TLS 1.2 is supported as well; of its cipher suites, only those with authenticated encryption.
    pub tls12: bool,
}

impl WebhookTls {
    /// Creates a server configuration for HTTP/1.1 only.
    ///
    /// # Errors
    /// When the PEM text is invalid, or certificate and key do not match.
    pub fn config(&self) -> Result<ServerConfig, TlsConfigError> {
        let verifier = match &self.clients {
            None => Arc::new(NoClientAuth),
            Some(clients) => clients.verifier()?,
        };
        // For TLS 1.2, ring only has suites with AES-GCM and ChaCha20-Poly1305.
        let versions: &[&SupportedProtocolVersion] = if self.tls12 { &[&TLS13, &TLS12] } else { &[&TLS13] };
        build(&self.identity, verifier, versions)
    }

    /// Does the same, unless the certificate has expired at `now`, so that no client would accept it.
    ///
    /// # Errors
    /// As [`Self::config`], and when it has expired.
    pub fn config_at(&self, now: time::OffsetDateTime) -> Result<ServerConfig, TlsConfigError> {
        let config = self.config()?;
        let life = Life::of(&self.identity.certificate_pem)?;
        if life.not_after <= now {
            Err(TlsConfigError::Expired(life.not_after.date().to_string()))
        } else {
            Ok(config)
        }
    }

    /// Returns why clients would not accept the certificate at `now`; None if they do.
    ///
    /// # Errors
    /// When it is not a certificate.
    pub fn trouble_at(&self, now: time::OffsetDateTime) -> Result<Option<String>, TlsConfigError> {
        let life = Life::of(&self.identity.certificate_pem)?;
        Ok(if life.not_after <= now {
            Some(format!("expired since {}", second(life.not_after)))
        } else if life.not_before > now {
            Some(format!("not valid before {}", second(life.not_before)))
        } else {
            None
        })
    }

    /// Returns the days until the certificate expires, with fractions; negative afterwards.
    ///
    /// # Errors
    /// When it is not a certificate.
    pub fn days_left(&self, now: time::OffsetDateTime) -> Result<f64, TlsConfigError> {
        let life = Life::of(&self.identity.certificate_pem)?;
        Ok((life.not_after - now).as_seconds_f64() / 86_400.0)
    }
}

fn second(time: time::OffsetDateTime) -> String {
    let (hour, minute, second) = time.to_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", time.date())
}

/// Creates a server configuration with TLS 1.3 only and HTTP/1.1 only.
///
/// With `client_ca`, a client may present a certificate of that authority (a wrong one ends the handshake); the server decides
/// about its identity, and whether that suffices.
///
/// # Errors
/// When the PEM text is invalid.
pub fn server_config(identity: &Identity, client_ca: Option<&str>) -> Result<ServerConfig, TlsConfigError> {
    let verifier: Arc<dyn ClientCertVerifier> = match client_ca {
        None => Arc::new(NoClientAuth),
        Some(pem) => {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots(pem)?), provider);
            builder.allow_unauthenticated().build().map_err(TlsConfigError::clients)?
        }
    };
    build(identity, verifier, &[&TLS13])
}

fn build(
    identity: &Identity,
    verifier: Arc<dyn ClientCertVerifier>,
    versions: &[&'static SupportedProtocolVersion],
) -> Result<ServerConfig, TlsConfigError> {
    let (chain, key) = chain_and_key(identity)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => TlsConfigError::NoPair,
            other => TlsConfigError::Rustls(other),
        })?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Parses the certificates and the key.
///
/// # Errors
/// When the PEM text is invalid.
pub fn chain_and_key(
    identity: &Identity,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsConfigError> {
    let chain = CertificateDer::pem_slice_iter(identity.certificate_pem.as_bytes());
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(|_| TlsConfigError::NoCertificate)?;
    if chain.is_empty() {
        return Err(TlsConfigError::NoCertificate);
    }
    let key =
        PrivateKeyDer::from_pem_slice(identity.key_pem.as_bytes()).map_err(|_| TlsConfigError::NoKey)?;
    Ok((chain, key))
}
