//! Defines why a TLS configuration cannot be created, with messages that say what to provide instead.

use thiserror::Error;

use super::authority::CertificateError;

/// Why a TLS configuration cannot be created.
#[derive(Debug, Error)]
pub enum TlsConfigError {
    #[error("holds no certificate as PEM text; give the certificate, and its chain after it")]
    NoCertificate,
    #[error("holds no private key as PEM text; give the key that the certificate was made with")]
    NoKey,
    #[error("are no pair; give the key that the certificate was made with")]
    NoPair,
    #[error("expired on {0}; put a new certificate in its place")]
    Expired(String),
    #[error("certificate and key cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
    #[error("holds no authority of clients that can be used: {0}")]
    Clients(String),
    #[error("the certificate cannot be read: {0}")]
    Certificate(#[from] CertificateError),
}

impl TlsConfigError {
    pub(super) fn clients(error: impl std::fmt::Display) -> Self {
        Self::Clients(error.to_string())
    }
}
