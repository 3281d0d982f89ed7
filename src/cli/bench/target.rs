//! Connects to the endpoint under test: parses its URL, and sets up the certificate authorities to trust.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::Uri;
use http::uri::Scheme;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::cli::process::Fault;
use crate::outside;

/// The flags about certificates.
#[derive(Debug)]
pub(super) struct Trust {
    pub(super) authority: Option<PathBuf>,
    /// The client certificate and its key.
    pub(super) client: Option<(PathBuf, PathBuf)>,
    pub(super) server_name: Option<String>,
}

/// An endpoint to connect to.
pub(super) struct Target {
    address: String,
    /// The value of the `Host` header.
    pub(super) authority: String,
    pub(super) path: String,
    name: ServerName<'static>,
    connector: TlsConnector,
}

impl Target {
    /// # Errors
    /// When `url` is not an `https` URL, or a file of `trust` cannot be used.
    pub(super) fn new(url: &str, trust: &Trust) -> Result<Self, Fault> {
        let wrong = |reason: &dyn Display| Fault::usage(format!("cannot post to `{url}`: {reason}"));
        let uri: Uri = url.parse().map_err(|error: http::uri::InvalidUri| wrong(&error))?;
        if uri.scheme() != Some(&Scheme::HTTPS) {
            return Err(wrong(&"webhooks are called over https"));
        }
        let authority = uri.authority().ok_or_else(|| wrong(&"there is no host"))?.clone();
        // The brackets of an IPv6 address belong to the URL, not to the address.
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let name = trust.server_name.as_deref().unwrap_or(host).to_owned();
        Ok(Self {
            address: format!("{}:{}", authority.host(), authority.port_u16().unwrap_or(443)),
            authority: authority.to_string(),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
            name: ServerName::try_from(name).map_err(|error| wrong(&error))?,
            connector: TlsConnector::from(Arc::new(tls(trust)?)),
        })
    }

    /// # Errors
    /// When the connection fails, or the server's certificate is not trusted.
    pub(super) async fn connect(&self) -> io::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        self.connector.connect(self.name.clone(), stream).await
    }
}

fn tls(trust: &Trust) -> Result<ClientConfig, Fault> {
    let mut roots = RootCertStore::empty();
    match &trust.authority {
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| unusable(path, &error))?;
            }
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(Fault::internal)?
        .with_root_certificates(roots);
    let mut config = match &trust.client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let pem = read(key)?;
            let parsed =
                PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| unusable(key, &error))?;
            builder
                .with_client_auth_cert(certificates(certificate)?, parsed)
                .map_err(|error| unusable(certificate, &error))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let found = CertificateDer::pem_slice_iter(read(path)?.as_bytes()).collect::<Result<Vec<_>, _>>();
    match found.map_err(|error| unusable(path, &error))? {
        none if none.is_empty() => Err(unusable(path, &"it holds no certificate as PEM text")),
        found => Ok(found),
    }
}

fn read(path: &Path) -> Result<String, Fault> {
    let bytes = outside::bytes_of_any(path, outside::MAX_PEM).map_err(|error| unusable(path, &error))?;
    String::from_utf8(bytes).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &dyn Display) -> Fault {
    Fault::usage(format!("cannot use `{}`: {error}", path.display()))
}
