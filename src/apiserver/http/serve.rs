//! Serving over TLS: HTTP/1.1 connections, the client certificate's name as the request's identity, a graceful end.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::CertificateDer;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use crate::certificate;
use crate::identity::Identity;

/// A client has this long for its handshake, and for the head of each request.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections that are still busy after this are cut.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves a server's router, with whatever layers were put around it, over TLS: accepts until `shutdown` is ready, then
/// lets requests end.
///
/// # Errors
/// When the listener breaks.
pub async fn serve(
    router: axum::Router,
    listener: TcpListener,
    tls: rustls::ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> std::io::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let (stop, stopping) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    loop {
        tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(router.clone(), acceptor.clone(), stream, stopping.clone()));
                }
                // Out of descriptors, or a client that left at once: others are served all the same.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(listener);
    let _ = stop.send(true);
    let drained = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::info!("connections were cut at shutdown");
    }
    Ok(())
}

async fn connection(
    router: axum::Router,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    mut stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true);
    let stream = match tokio::time::timeout(PATIENCE, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
        Err(_) => return,
    };
    let identity = peer(&stream);
    let service = router.map_request(move |mut request: http::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(identity.clone());
        request.map(axum::body::Body::new)
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
    tokio::pin!(connection);
    let mut draining = false;
    loop {
        tokio::select! {
            ended = &mut connection => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
                return;
            }
            _ = stopping.changed(), if !draining => {
                draining = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// The verifier of the TLS configuration vouches for the certificate; here it is only read.
fn peer(stream: &TlsStream<TcpStream>) -> Identity {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
    certificate.and_then(|certificate| certificate::identity(certificate)).unwrap_or_else(Identity::anonymous)
}
