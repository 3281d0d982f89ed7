//! Holds the credentials that this server presents to a backend, and the name that the backend's certificate must have.

use std::fmt;

use rustls::client::WantsClientCert;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder};

/// Says why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("client certificate: {0}")]
    Certificate(#[source] pem::Error),
    #[error("client key: {0}")]
    Key(#[source] pem::Error),
    #[error("{0}")]
    Pair(#[from] rustls::Error),
}

/// Credentials for a backend; unset parts are empty.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The client certificate with its chain, PEM.
    pub(crate) certificate: String,
    /// The private key, PEM.
    pub(crate) key: String,
    /// The `Authorization` header.
    pub(crate) authorization: String,
    /// The name in the backend's certificate, if it is not that of its address.
    pub(crate) server_name: String,
}

impl Credentials {
    /// Adds the client certificate to a TLS configuration.
    ///
    /// # Errors
    /// If the certificate or key is invalid.
    pub(super) fn shown(
        &self,
        config: ConfigBuilder<ClientConfig, WantsClientCert>,
    ) -> Result<ClientConfig, CredentialsError> {
        if self.certificate.is_empty() && self.key.is_empty() {
            return Ok(config.with_no_client_auth());
        }
        let chain =
            CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect::<Result<Vec<_>, _>>();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        Ok(config.with_client_auth_cert(
            chain.map_err(CredentialsError::Certificate)?,
            key.map_err(CredentialsError::Key)?,
        )?)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("server_name", &self.server_name).finish_non_exhaustive()
    }
}
