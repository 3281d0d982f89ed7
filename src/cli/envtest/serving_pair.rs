//! Loads or creates the certificates of the API server, from the files where kube-apiserver has them, and configures TLS
//! with the authority of client certificates.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admit_apiserver::{Tls, client_verifier};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use time::OffsetDateTime;

use super::flags::Given;
use super::keys::{text, wrong};
use crate::admission::tls::{Authority, write_private};
use crate::cli::process::Fault;
use crate::private;

/// The default folder of kube-apiserver's certificates.
const FOLDER: &str = "/var/run/kubernetes";

/// A certificate chain and its key, both PEM.
pub(super) struct ServingPair {
    certificate: String,
    pub(super) key: String,
}

impl ServingPair {
    /// Loads the pair that flags name, or that of the folder, where one for `addresses` is created if it is missing.
    ///
    /// # Errors
    /// When files cannot be read or written, and when the certificate or the key is missing.
    pub(super) fn open(given: &Given, addresses: &[IpAddr]) -> Result<Self, Fault> {
        let named = (given.path("tls-cert-file"), given.path("tls-private-key-file"));
        let (certificate, key) = match named {
            (Some(certificate), Some(key)) => (certificate, key),
            (None, None) => return Self::of_folder(given, addresses),
            _ => {
                let why = "--tls-cert-file and --tls-private-key-file must be specified together";
                return Err(Fault::usage(why));
            }
        };
        let (of_certificate, of_key) = ("tls-cert-file", "tls-private-key-file");
        Ok(Self { certificate: text(of_certificate, &certificate)?, key: text(of_key, &key)? })
    }

    fn of_folder(given: &Given, addresses: &[IpAddr]) -> Result<Self, Fault> {
        let folder = given.path("cert-dir").unwrap_or_else(|| PathBuf::from(FOLDER));
        let (certificate, key) = (folder.join("apiserver.crt"), folder.join("apiserver.key"));
        if !certificate.exists() || !key.exists() {
            make(&folder, (&certificate, &key), addresses)?;
        }
        Ok(Self { certificate: text("cert-dir", &certificate)?, key: text("cert-dir", &key)? })
    }

    /// Creates a TLS configuration that requests client certificates and verifies them with `--client-ca-file`.
    ///
    /// # Errors
    /// For an invalid pair, and a file without certificates.
    pub(super) fn config(&self, given: &Given) -> Result<Tls, Fault> {
        let flag = "client-ca-file";
        let clients = match given.path(flag) {
            None => None,
            Some(path) => {
                let authorities = text(flag, &path)?;
                let clients = client_verifier(authorities.as_bytes());
                Some(clients.map_err(|error| wrong(flag, &path, &error))?)
            }
        };
        let unusable = |error: &dyn std::fmt::Display| {
            Fault::usage(format!("the serving certificate and its key cannot be used: {error}"))
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(self.certificate.as_bytes()).collect();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| unusable(&error))?;
        let chain = chain.map_err(|error| unusable(&error))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| unusable(&error))?;
        let tls = match clients {
            None => builder.with_no_client_auth().with_single_cert(chain, key).map(Tls::from),
            Some(clients) => Tls::asking(builder, clients, chain, key),
        };
        tls.map_err(|error| unusable(&error))
    }
}

/// Creates a pair signed by its own authority, which is part of the chain: whoever trusts the file trusts the server.
fn make(folder: &Path, (certificate, key): (&Path, &Path), addresses: &[IpAddr]) -> Result<(), Fault> {
    private::make_folder(folder).map_err(|error| {
        let folder = folder.display();
        Fault::usage(format!("cannot write `{folder}`: {error}; choose another with --cert-dir"))
    })?;
    let names = ["kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost"];
    let names: Vec<String> =
        names.into_iter().map(ToOwned::to_owned).chain(addresses.iter().map(ToString::to_string)).collect();
    let now = OffsetDateTime::now_utc();
    let place = folder_beside(folder)?;
    let made = Authority::open(&place, now).and_then(|authority| {
        let pair = authority.issue_server(&names, now)?;
        write_private(key, &pair.key_pem)?;
        write_private(certificate, &format!("{}{}", pair.certificate_pem, authority.certificate_pem()))
    });
    // The authority's key is removed, so that it signs nothing else.
    let removed = fs::remove_dir_all(&place);
    made.map_err(Fault::usage)?;
    removed.map_err(Fault::usage)
}

/// Returns a folder name that no other process and no other call of this one uses.
fn folder_beside(folder: &Path) -> Result<PathBuf, Fault> {
    let place = private::beside(&folder.join("apiserver"));
    private::make_folder(&place).map_err(Fault::usage)?;
    Ok(place)
}
