//! Serving over TLS: HTTP/1.1 and HTTP/2 connections, the client certificate's name as the request's identity, a graceful
//! end.
//!
//! kubectl and client-go prefer HTTP/2, where many watches share a connection. Its bounds are below: what a client may have
//! open, take back, or say in one head. A client that goes beyond is told so (`ENHANCE_YOUR_CALM`) and cut.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
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

const HTTP2: &[u8] = b"h2";
/// A client has this long for its handshake, and for the head of each request.
const PATIENCE: Duration = Duration::from_secs(10);
/// HTTP/2: requests at one time on one connection, as kube-apiserver has it.
const MAX_STREAMS: u32 = 250;
/// Requests that a client took back before anybody looked at them (CVE-2023-44487).
const MAX_TAKEN_BACK: usize = 20;
/// Mistakes in single requests that a connection outlives.
const MAX_MISTAKES: usize = 100;
/// Bytes of the fields of one head, continued (CVE-2023-45288) or not. Go's servers allow 1 MiB, of which nobody makes use.
const MAX_HEAD: u32 = 64 * 1024;
/// Bytes of an answer that wait for one request's client.
const MAX_UNSENT: usize = 256 * 1024;
/// A client of HTTP/2 that has said nothing for so long is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(30);
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
    mut tls: rustls::ServerConfig,
    shutdown: impl Future<Output = ()> + Send,
) -> std::io::Result<()> {
    tls.alpn_protocols = [HTTP2, b"http/1.1"].map(<[u8]>::to_vec).to_vec();
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
    stopping: watch::Receiver<bool>,
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
    let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
    let (stream, service) = (TokioIo::new(stream), TowerToHyperService::new(service));
    if http2 {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_pending_accept_reset_streams(MAX_TAKEN_BACK)
            .max_local_error_reset_streams(MAX_MISTAKES)
            .max_header_list_size(MAX_HEAD)
            .max_send_buf_size(MAX_UNSENT)
            .keep_alive_interval(SILENCE)
            .keep_alive_timeout(PATIENCE)
            .serve_connection(stream, service);
        until_end(connection, http2::Connection::graceful_shutdown, stopping).await;
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .serve_connection(stream, service);
        until_end(connection, http1::Connection::graceful_shutdown, stopping).await;
    }
}

/// Drives a connection to its end, which it is told to come to once `stopping` says so.
async fn until_end<C>(connection: C, end: impl Fn(Pin<&mut C>), mut stopping: watch::Receiver<bool>)
where
    C: Future<Output = Result<(), hyper::Error>>,
{
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
                end(connection.as_mut());
            }
        }
    }
}

/// The verifier of the TLS configuration vouches for the certificate; here it is only read.
fn peer(stream: &TlsStream<TcpStream>) -> Identity {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
    certificate.and_then(|certificate| certificate::identity(certificate)).unwrap_or_else(Identity::anonymous)
}
