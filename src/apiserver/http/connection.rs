//! One connection: its TLS handshake, the client certificate's name as the identity of its requests, HTTP/1.1 or HTTP/2.
//!
//! kubectl and client-go prefer HTTP/2, where many watches share a connection. The bounds of both protocols are below: what
//! a client may have open, take back, or say in one head, and how long it may say nothing. A client that goes beyond is
//! told so (`ENHANCE_YOUR_CALM`, 431) and cut.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::CertificateDer;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tower::ServiceExt as _;

use super::hangup::Hangup;
use crate::certificate;
use crate::identity::Identity;

pub(super) const HTTP2: &[u8] = b"h2";
/// A client has this long for its handshake, and for the head of each request.
const PATIENCE: Duration = Duration::from_secs(10);
/// A connection without requests is ended after this, as kube-apiserver does: it takes the place of another.
const IDLE: Duration = Duration::from_secs(90);
/// HTTP/2: requests at one time on one connection, as kube-apiserver has it.
const MAX_STREAMS: u32 = 250;
/// Requests that a client took back before anybody looked at them (CVE-2023-44487).
const MAX_TAKEN_BACK: usize = 20;
/// Mistakes in single requests that a connection outlives.
const MAX_MISTAKES: usize = 100;
/// Bytes of the fields of one head, continued (CVE-2023-45288) or not. Go's servers allow 1 MiB, of which nobody makes use.
const MAX_HEAD: u32 = 64 * 1024;
/// Bytes of an HTTP/1 connection's read buffer: a head fits, bodies pass through.
const MAX_BUFFER: usize = 64 * 1024;
/// Bytes of an answer that wait for one request's client.
const MAX_UNSENT: usize = 256 * 1024;
/// A client of HTTP/2 that has said nothing for so long is asked whether it is there.
const SILENCE: Duration = Duration::from_secs(30);

pub(super) struct Connection {
    router: axum::Router,
    acceptor: TlsAcceptor,
    stopping: watch::Receiver<bool>,
}

impl Connection {
    /// `stopping` tells when requests are to end.
    pub(super) fn new(router: axum::Router, acceptor: TlsAcceptor, stopping: watch::Receiver<bool>) -> Self {
        Self { router, acceptor, stopping }
    }

    pub(super) async fn run(self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let stream = match timeout(PATIENCE, self.acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                tracing::debug!(%error, "a TLS handshake failed");
                return;
            }
            Err(_) => return,
        };
        let (identity, requests, hangup) = (peer(&stream), Requests::default(), Hangup::default());
        let (router, counted, of_connection) = (self.router, requests.clone(), hangup.clone());
        let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(identity.clone());
            request.extensions_mut().insert(of_connection.clone());
            let (router, under_way) = (router.clone(), counted.begin());
            async move {
                let response = router.oneshot(request.map(Body::new)).await?;
                Ok::<_, Infallible>(until_sent(response, under_way))
            }
        });
        let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        let stream = TokioIo::new(stream);
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
            until_end(connection, http2::Connection::graceful_shutdown, self.stopping, (&requests, &hangup))
                .await;
        } else {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(PATIENCE)
                .max_buf_size(MAX_BUFFER)
                .serve_connection(stream, service);
            until_end(connection, http1::Connection::graceful_shutdown, self.stopping, (&requests, &hangup))
                .await;
        }
    }
}

/// Drives a connection to its end, which it is told to come to once `stopping` says so or it lies idle, and cuts it where
/// its client does not take what it asked for.
async fn until_end<C>(
    connection: C,
    end: impl Fn(Pin<&mut C>),
    mut stopping: watch::Receiver<bool>,
    (requests, hangup): (&Requests, &Hangup),
) where
    C: Future<Output = Result<(), hyper::Error>>,
{
    tokio::pin!(connection);
    let (idle, untaken) = (requests.idle(), hangup.due());
    tokio::pin!(idle, untaken);
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
            () = &mut untaken => {
                tracing::info!("a connection was cut: its client does not take what it asked for");
                return;
            }
            () = &mut idle => {
                end(connection.as_mut());
                // A client that does not answer to that has nothing to lose.
                let _ = timeout(PATIENCE, connection).await;
                return;
            }
        }
    }
}

/// The verifier of the TLS configuration vouches for the certificate; here it is only read.
fn peer(stream: &TlsStream<TcpStream>) -> Identity {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[CertificateDer<'_>]>::first);
    certificate.and_then(|certificate| certificate::identity(certificate)).unwrap_or_else(Identity::anonymous)
}

/// The response, whose request is under way until the last of its body is sent: a watch as long as it is watched.
fn until_sent(response: Response, under_way: UnderWay) -> Response {
    response.map(|body| {
        Body::new(body.map_err(move |error| {
            let _held = &under_way;
            error
        }))
    })
}

/// The requests of one connection. Clones count the same ones.
#[derive(Clone)]
struct Requests(Arc<Mutex<Count>>);

struct Count {
    under_way: usize,
    last_end: Instant,
}

struct UnderWay(Requests);

impl Default for Requests {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Count { under_way: 0, last_end: Instant::now() })))
    }
}

impl Requests {
    fn begin(&self) -> UnderWay {
        self.change(|count| count.under_way += 1);
        UnderWay(self.clone())
    }

    /// Ready once there was no request for as long as a connection may lie idle.
    async fn idle(&self) {
        loop {
            let mut left = IDLE;
            self.change(|count| {
                if count.under_way == 0 {
                    left = (count.last_end + IDLE).saturating_duration_since(Instant::now());
                }
            });
            if left.is_zero() {
                return;
            }
            sleep(left).await;
        }
    }

    fn change(&self, change: impl FnOnce(&mut Count)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.change(|count| {
            count.under_way = count.under_way.saturating_sub(1);
            count.last_end = Instant::now();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_idle_once_nothing_was_asked_for_so_long() {
        let (requests, start) = (Requests::default(), Instant::now());
        let watching = requests.begin();
        let watch = async {
            sleep(IDLE * 5).await;
            drop(watching);
        };
        let ((), ()) = tokio::join!(requests.idle(), watch);
        let idle = start.elapsed();
        assert!(idle >= IDLE * 6 && idle <= IDLE * 7, "{idle:?}");
    }

    #[tokio::test]
    async fn a_request_is_under_way_until_its_answer_is_sent() {
        let requests = Requests::default();
        let response = until_sent(Response::new(Body::from("text")), requests.begin());
        let mut under_way = 0;
        requests.change(|count| under_way = count.under_way);
        assert_eq!(under_way, 1);
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "text");
        requests.change(|count| under_way = count.under_way);
        assert_eq!(under_way, 0);
    }
}
