//! Configures TLS for connections to databases: the `sslmode`s of libpq, implemented with rustls.
//!
//! `require` encrypts without verifying the server, unless a file of authorities is given: then it is `verify-ca`, as
//! in libpq.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::config::SslMode;
use crate::outside;

/// Why TLS cannot be configured.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("db.ssl.mode {0} needs db.ssl.root.cert: a PEM file with the authorities of the database")]
    NoRoots(&'static str),
    #[error("cannot read db.ssl.root.cert `{path}`: {why}")]
    Unreadable { path: String, why: String },
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] Error),
}

/// Creates the configuration for a mode; it is not used if the mode is `disable`.
pub(super) fn config(mode: SslMode, root: Option<&str>) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let mode = if mode == SslMode::Require && root.is_some() { SslMode::VerifyCa } else { mode };
    let verifier: Arc<dyn ServerCertVerifier> = match mode {
        SslMode::Disable => {
            return Ok(kept_small(
                builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth(),
            ));
        }
        SslMode::Require => Arc::new(AnyName { authorities: None, provider }),
        SslMode::VerifyCa => {
            let authorities = Some(verifier(Arc::clone(&provider), mode, root)?);
            Arc::new(AnyName { authorities, provider })
        }
        SslMode::VerifyFull => verifier(provider, mode, root)?,
    };
    Ok(kept_small(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()))
}

/// Disables session resumption, whose cache takes more memory than the rest of a connection: connections stay for hours, and a
/// new one has to log in anyway.
fn kept_small(mut config: ClientConfig) -> ClientConfig {
    config.resumption = Resumption::disabled();
    config
}

fn verifier(
    provider: Arc<CryptoProvider>,
    mode: SslMode,
    root: Option<&str>,
) -> Result<Arc<WebPkiServerVerifier>, TlsError> {
    let path = root.ok_or(TlsError::NoRoots(mode.as_str()))?;
    let unreadable = |why: String| TlsError::Unreadable { path: path.to_owned(), why };
    let text =
        outside::text(Path::new(path), outside::MAX_PEM).map_err(|error| unreadable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(text.as_bytes()) {
        roots.add(certificate.map_err(|error| unreadable(error.to_string()))?)?;
    }
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .map_err(|error| unreadable(error.to_string()))
}

/// Accepts servers with any name: those with a certificate of a known authority for `sslmode=verify-ca`, or any certificate
/// for `sslmode=require`.
#[derive(Debug)]
struct AnyName {
    /// None if the certificate is not verified.
    authorities: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(authorities) = &self.authorities else { return Ok(ServerCertVerified::assertion()) };
        // The chain is verified before the name, so a name error means that the chain is valid.
        match authorities.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
