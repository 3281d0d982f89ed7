//! rustls configurations from PEM text.

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

    /// The same, unless the certificate has expired at `now`: nobody would accept it.
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

    /// Why nobody accepts the certificate at `now`; none where callers do.
    ///
    /// # Errors
    /// When it is no certificate.
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

    /// Days until the certificate expires, with fractions; negative afterwards.
    ///
    /// # Errors
    /// When it is no certificate.
    pub fn days_left(&self, now: time::OffsetDateTime) -> Result<f64, TlsConfigError> {
        let life = Life::of(&self.identity.certificate_pem)?;
        Ok((life.not_after - now).as_seconds_f64() / 86_400.0)
    }
}

fn second(time: time::OffsetDateTime) -> String {
    let (hour, minute, second) = time.to_hms();
    format!("{}T{hour:02}:{minute:02}:{second:02}Z", time.date())
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

/// The certificates and the key of PEM text.
///
/// # Errors
/// When it does not hold what it should.
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
