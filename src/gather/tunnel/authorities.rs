//! Loads the authorities that TLS clients trust: those of the system, and those of a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use crate::outside::{self, MAX_PEM};

#[derive(Debug, thiserror::Error)]
pub enum TransportSetupError {
    #[error("cannot use `{}`: {reason}; give the certificates of the authority, PEM", path.display())]
    Ca { path: PathBuf, reason: String },
    #[error("no CA certificate is known: the system has none and none was given")]
    NoRoots,
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Creates a TLS client configuration that trusts the system's CAs and those of the PEM file `extra_ca`.
///
/// # Errors
/// [`TransportSetupError`] when the file has no certificate, or no CA is known at all.
pub fn client_tls(extra_ca: Option<&Path>) -> Result<Arc<ClientConfig>, TransportSetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(extra_ca)?)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn roots(extra_ca: Option<&Path>) -> Result<RootCertStore, TransportSetupError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if let Some(path) = extra_ca {
        let unreadable = |reason: String| TransportSetupError::Ca { path: path.to_owned(), reason };
        let (text, _) = outside::bytes(path, MAX_PEM).map_err(|error| unreadable(error.to_string()))?;
        let certificates = CertificateDer::pem_slice_iter(&text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| unreadable(error.to_string()))?;
        let (added, _) = roots.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(unreadable("it holds no certificate".to_owned()));
        }
    }
    if roots.is_empty() { Err(TransportSetupError::NoRoots) } else { Ok(roots) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_a_file_of_bounded_size() {
        let refusal = |path: &Path| roots(Some(path)).unwrap_err().to_string();
        assert!(refusal(Path::new("/dev/zero")).contains("a device"), "{}", refusal(Path::new("/dev/zero")));
        let folder = tempfile::tempdir().unwrap();
        let large = folder.path().join("ca.pem");
        std::fs::File::create(&large).unwrap().set_len(MAX_PEM + 1).unwrap();
        assert!(refusal(&large).contains("more than 1048576 bytes"), "{}", refusal(&large));
        std::fs::write(&large, "no certificate").unwrap();
        assert!(refusal(&large).contains("it holds no certificate"), "{}", refusal(&large));
    }
}
