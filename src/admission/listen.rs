//! Connections: TLS, HTTP/1.1, and the bounds that keep a slow or silent caller from holding one for ever.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// A handshake, and the head of a request, must arrive within this time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Connections at one time; further ones wait in the kernel's queue.
const MAX_CONNECTIONS: usize = 4_096;
/// How long open requests may go on after shutdown was asked for. API servers wait at most 30 s for a webhook.
const DRAIN: Duration = Duration::from_secs(10);

/// Why serving ended before it was asked to.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error("cannot accept connections: {0}")]
    Accept(#[from] io::Error),
}

/// Serves `router` over TLS until `shutdown`, then lets open requests finish.
///
/// # Errors
/// When the listener itself fails; trouble with one connection ends that connection only.
pub async fn serve(
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    router: Router,
    shutdown: CancellationToken,
) -> Result<(), ServeError> {
    let acceptor = TlsAcceptor::from(tls);
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = permits.clone().acquire_owned().await else { break };
        let stream = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_of_one_connection(&error) => continue,
                Err(error) => return Err(error.into()),
            },
        };
        let (acceptor, router, watcher) = (acceptor.clone(), router.clone(), graceful.watcher());
        connections.spawn(async move {
            if let Err(error) = connection(stream, &acceptor, router, watcher).await {
                tracing::debug!(%error, "connection ended");
            }
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let open = graceful.count();
    if timeout(DRAIN, graceful.shutdown()).await.is_err() {
        tracing::warn!(open, "requests were still open at the end of the drain and are cut");
    }
    connections.shutdown().await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    router: Router,
    watcher: Watcher,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let stream = timeout(HEAD_TIMEOUT, acceptor.accept(stream)).await??;
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    watcher.watch(connection).await?;
    Ok(())
}

/// Errors of `accept` that say nothing about the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}
