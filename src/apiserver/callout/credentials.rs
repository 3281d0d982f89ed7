//! By what a backend of a kubeconfig knows this server, and by which name it is known.

use std::fmt;

use rustls::client::WantsClientCert;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ConfigBuilder};

/// Credentials that nobody can be shown.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("client certificate: {0}")]
    Certificate(#[source] pem::Error),
    #[error("client key: {0}")]
    Key(#[source] pem::Error),
    #[error("{0}")]
    Pair(#[from] rustls::Error),
}

/// Empty where there is none of it.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Credentials {
    /// With its chain, PEM.
    pub(crate) certificate: String,
    /// PEM.
    pub(crate) key: String,
    /// The header of this name.
    pub(crate) authorization: String,
    /// In the backend's certificate, where it is not that of its address.
    pub(crate) server_name: String,
}

impl Credentials {
    /// How to connect with them.
    ///
    /// # Errors
    /// What of them cannot be read.
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
