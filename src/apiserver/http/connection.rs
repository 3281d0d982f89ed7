//! Serves one connection: takes the identity of its requests from the client certificate, and speaks HTTP/1.1 or
//! HTTP/2.
//!
//! kubectl and client-go prefer HTTP/2, where many watches share a connection. The limits of both protocols, on
//! concurrent requests, resets and the size of headers, are below. A client that exceeds them gets an error
//! (`ENHANCE_YOUR_CALM`, 431) and is disconnected. Idle timeouts are applied by `admit_serving`.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use admit_serving::{Caller, Guest, Host, Limits, Paced, UnderWay};
use axum::body::Body;
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::server::danger::ClientCertVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tower::ServiceExt as _;

use super::tls::{self, Unverified};
use crate::certificate;
use crate::flowcontrol::hangup::Hangup;
use crate::identity::Identity;

pub(super) const HTTP2: &[u8] = b"h2";
/// The timeouts of a connection; an idle one is closed after 90 s, as by kube-apiserver.
pub(super) const LIMITS: Limits = Limits {
    head: Duration::from_secs(10),
    first_head: Duration::from_secs(10),
    idle: Duration::from_secs(90),
    drain: Duration::from_secs(5),
};
/// The number of concurrent HTTP/2 requests on one connection, as in kube-apiserver.
const MAX_STREAMS: u32 = 250;
/// The number of requests that a client may reset before they are processed (CVE-2023-44487).
const MAX_TAKEN_BACK: usize = 20;
/// The number of stream errors after which a connection is closed.
const MAX_MISTAKES: usize = 100;
/// The size limit of a request's header fields, with continuations (CVE-2023-45288). Go's servers allow 1 MiB, which clients do not use.
const MAX_HEAD: u32 = 64 * 1024;
/// The read buffer of an HTTP/1 connection: the header fits, bodies are streamed.
const MAX_BUFFER: usize = 64 * 1024;
/// The bytes of a response that may wait for the client.
const MAX_UNSENT: usize = 256 * 1024;
/// The silence after which an HTTP/2 client is sent a ping.
const SILENCE: Duration = Duration::from_secs(30);

/// The address that a request's connection comes from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// Serves HTTP on accepted connections.
#[derive(Clone)]
pub(super) struct Face {
    pub(super) router: axum::Router,
    /// Verifies client certificates, if the handshake did not.
    pub(super) clients: Option<Arc<dyn ClientCertVerifier>>,
}

impl Host for Face {
    type Error = hyper::Error;

    async fn talk<S>(self, stream: S, caller: Caller, guest: Guest) -> Result<(), hyper::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let shown = caller.certificate.as_ref();
        let is_unverified = shown.zip(self.clients.as_ref()).is_some_and(|(certificate, clients)| {
            !tls::is_verified(&**clients, certificate, &caller.intermediates)
        });
        let certificate = shown.filter(|_| !is_unverified);
        let identity = certificate
            .and_then(|certificate| certificate::identity(certificate))
            .unwrap_or_else(Identity::anonymous);
        let (activity, hangup) = (guest.activity().clone(), Hangup::default());
        let drains = guest.drains();
        let (router, counted, of_connection) = (self.router, activity.clone(), hangup.clone());
        let service = service_fn(move |mut request: http::Request<hyper::body::Incoming>| {
            request.extensions_mut().insert(identity.clone());
            request.extensions_mut().insert(of_connection.clone());
            if is_unverified {
                request.extensions_mut().insert(Unverified);
            }
            if let Some(address) = caller.address {
                request.extensions_mut().insert(Peer(address));
            }
            let (router, under_way) = (router.clone(), counted.begin());
            async move {
                let response = router.oneshot(request.map(Body::new)).await?;
                Ok::<_, Infallible>(until_sent(response, under_way))
            }
        });
        let talking = async {
            if caller.protocol.as_deref() == Some(HTTP2) {
                let connection = http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .max_concurrent_streams(MAX_STREAMS)
                    .max_pending_accept_reset_streams(MAX_TAKEN_BACK)
                    .max_local_error_reset_streams(MAX_MISTAKES)
                    .max_header_list_size(MAX_HEAD)
                    .max_send_buf_size(MAX_UNSENT)
                    .keep_alive_interval(SILENCE)
                    .keep_alive_timeout(LIMITS.head)
                    .serve_connection(TokioIo::new(stream), service);
                guest.see_out(connection, http2::Connection::graceful_shutdown).await
            } else {
                // Write timeouts are left to the hangup: the chunk of a watch may wait for long if nobody else needs the memory.
                let stream = Paced::new(stream, activity, LIMITS.head, None);
                let connection = http1::Builder::new()
                    .header_read_timeout(None)
                    .max_buf_size(MAX_BUFFER)
                    .serve_connection(TokioIo::new(stream), service);
                guest.see_out(connection, http1::Connection::graceful_shutdown).await
            }
        };
        let leaving = async {
            drains.await;
            hangup.leave();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            ended = talking => ended,
            () = leaving => Ok(()),
            () = hangup.due() => {
                tracing::info!("a connection was cut: its client does not take what it asked for");
                Ok(())
            }
        }
    }
}

/// Wraps the response so that its request counts as open until the last of the body is sent; a watch until it ends.
fn until_sent(response: Response, under_way: UnderWay) -> Response {
    response.map(|body| {
        Body::new(body.map_err(move |error| {
            let _held = &under_way;
            error
        }))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use admit_serving::Places;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::{Instant, sleep, timeout};

    use super::*;

    async fn connected(places: &Arc<Places>) -> DuplexStream {
        let (client, server) = duplex(1024);
        let guest = Guest::new(places.enter().await, LIMITS);
        let host = Face { router: axum::Router::new().route("/", get(|| async { "here" })), clients: None };
        tokio::spawn(host.talk(server, Caller::default(), guest));
        client
    }

    async fn is_answered(client: &mut DuplexStream) -> bool {
        if client.write_all(b"GET / HTTP/1.1\r\nhost: h\r\n\r\n").await.is_err() {
            return false;
        }
        let mut text = Vec::new();
        while !text.ends_with(b"here") {
            if !matches!(client.read_buf(&mut text).await, Ok(1..)) {
                return false;
            }
        }
        true
    }

    /// Checks that the header timeout does not run between requests, where it would close kept connections.
    #[tokio::test(start_paused = true)]
    async fn a_connection_of_http1_lies_idle_for_longer_than_a_head_may_take() {
        let places = Arc::new(Places::new(8));
        let mut client = connected(&places).await;
        assert!(is_answered(&mut client).await);
        sleep(LIMITS.idle - Duration::from_secs(5)).await;
        assert!(is_answered(&mut client).await);
        let began = Instant::now();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0, "closed in words");
        assert!(
            began.elapsed() >= LIMITS.idle && began.elapsed() <= LIMITS.idle * 2,
            "{:?}",
            began.elapsed()
        );
        assert_eq!(places.taken(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_dribbles_has_its_time() {
        let places = Arc::new(Places::new(8));
        let (mut client, began) = (connected(&places).await, Instant::now());
        while timeout(Duration::from_secs(1), client.read(&mut [0])).await.is_err() {
            let _ = client.write_all(b"G").await;
        }
        assert!(began.elapsed() <= LIMITS.first_head + Duration::from_secs(2), "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_request_is_under_way_until_its_answer_is_sent() {
        let guest = Guest::new(Places::new(1).enter().await, LIMITS);
        let response = until_sent(Response::new(Body::from("text")), guest.activity().begin());
        assert!(guest.activity().is_at_work());
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "text");
        assert!(!guest.activity().is_at_work());
    }
}
