//! Configures TLS for the API server: a leaf certificate of `admit up`'s authority, which also signs client certificates of users.

use std::sync::Arc;

use admit_apiserver::{Tls, client_verifier};
use rustls::ServerConfig;
use rustls::version::TLS13;

use crate::admission::tls::{Authority, Identity, chain_and_key};
use crate::cli::process::Fault;

/// Requests client certificates of the authority. Certificates of others reach authentication, which rejects them.
pub(super) fn of_api_server(leaf: &Identity, authority: &Authority) -> Result<Tls, Fault> {
    let (chain, key) = chain_and_key(leaf).map_err(Fault::internal)?;
    let clients = client_verifier(authority.certificate_pem().as_bytes()).map_err(Fault::internal)?;
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_protocol_versions(&[&TLS13]).map_err(Fault::internal)?;
    Tls::asking(builder, clients, chain, key).map_err(Fault::internal)
}
