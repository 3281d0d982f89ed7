//! Runs the child process that is measured: the embedded server with its housekeeping, over TLS, until SIGTERM.

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use admit_apiserver::Server;
use admit_apiserver::store::{RedbBackend, Store};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::Trouble;
use crate::server::{AUTHORITY, DATA, SERVING, SERVING_KEY};

/// The stack size of threads, as in `admit`.
const STACK: usize = 8 << 20;

/// Serves at `address` with the certificates in `folder`; on disk if the folder has a store file.
pub(crate) fn run(folder: &Path, address: &str) -> Result<ExitCode, Trouble> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build()?;
    let outcome = runtime.block_on(serve(folder, address));
    runtime.shutdown_background();
    outcome.map(|()| ExitCode::SUCCESS)
}

async fn serve(folder: &Path, address: &str) -> Result<(), Trouble> {
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(address).await?;
    let mut builder = Server::builder();
    if folder.join(DATA).exists() {
        builder =
            builder.store(Store::open(Box::new(RedbBackend::open(&folder.join(DATA).join("state.redb"))?))?);
    }
    let server = builder.build().await.map_err(|refusal| format!("{refusal:?}"))?;
    let housekeeping = {
        let server = server.clone();
        tokio::spawn(async move { server.housekeeping().await })
    };
    server.serve(listener, tls(folder)?, async { _ = terminate.recv().await }).await?;
    housekeeping.abort();
    Ok(())
}

fn tls(folder: &Path) -> Result<rustls::ServerConfig, Trouble> {
    let read = |name: &str| fs::read(folder.join(name));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&read(AUTHORITY)?)?)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier.allow_unauthenticated().build()?)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(&read(SERVING)?)?],
            PrivateKeyDer::from_pem_slice(&read(SERVING_KEY)?)?,
        )?;
    Ok(config)
}
