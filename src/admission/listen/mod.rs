//! Serves the listeners of the webhook and of operators with HTTP/1.1, with limits that suit API servers as clients.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use admit_serving::{Caller, Event, Guest, Host, Limits, NoEntry, Paced, Places, ServeError};
use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Request, header};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::telemetry::Metrics;

/// The most open connections; for further ones the longest idle are closed.
const MAX_CONNECTIONS: usize = 8_192;
/// API servers wait at most 30 s for a webhook, and keep their connections between reviews.
const LIMITS: Limits = Limits {
    head: Duration::from_secs(5),
    first_head: Duration::from_secs(10),
    idle: Duration::from_secs(60),
    drain: Duration::from_secs(10),
};
/// The largest read buffer of a connection in bytes: heads fit, bodies are streamed.
const MAX_BUFFER: usize = 64 * 1024;

/// A listener with its router.
#[derive(Debug)]
pub struct Port {
    pub listener: TcpListener,
    /// The TLS configuration; each handshake uses the newest one. None for plain HTTP.
    pub tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    pub router: Router,
    pub metrics: Arc<Metrics>,
}

/// When to stop, and how gracefully.
#[derive(Clone, Debug)]
pub struct Shutdown {
    pub asked: CancellationToken,
    /// How long to continue serving after the request to stop: callers need time to learn that this replica is no longer ready.
    /// Responses close their connections meanwhile.
    pub linger: Duration,
}

/// Serves a listener until `shutdown`, then lets requests in flight finish.
///
/// # Errors
/// When a thread cannot be started, or the listener itself fails; errors of one connection end only that connection.
pub async fn serve(port: Port, shutdown: Shutdown) -> Result<(), ServeError> {
    serve_in(Places::within_descriptors(MAX_CONNECTIONS), port, shutdown).await
}

async fn serve_in(places: Places, port: Port, shutdown: Shutdown) -> Result<(), ServeError> {
    let Port { listener, tls, router, metrics } = port;
    // Connections of operators do not count in the webhook's metrics.
    let counted = tls.is_some().then_some(metrics);
    let host = Webhook { router, counted, closing: shutdown.asked.clone() };
    let end = async {
        shutdown.asked.cancelled().await;
        sleep(shutdown.linger).await;
    };
    let port = admit_serving::Port { listener, tls, places: Arc::new(places), limits: LIMITS };
    admit_serving::serve(port, host, end).await
}

#[derive(Clone)]
struct Webhook {
    router: Router,
    counted: Option<Arc<Metrics>>,
    /// Cancelled when the server is about to stop: responses close their connections then.
    closing: CancellationToken,
}

impl Host for Webhook {
    type Error = hyper::Error;

    async fn talk<S>(self, stream: S, _: Caller, guest: Guest) -> Result<(), hyper::Error>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { router, counted: _, closing } = self;
        let activity = guest.activity().clone();
        let stream = TokioIo::new(Paced::new(stream, activity.clone(), LIMITS.head, Some(LIMITS.head)));
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, closing, under_way) = (router.clone(), closing.clone(), activity.begin());
            async move {
                let answered = router.oneshot(request.map(Body::new)).await;
                drop(under_way);
                answered.map(|mut response| {
                    if closing.is_cancelled() {
                        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                    }
                    response
                })
            }
        });
        let connection = http1::Builder::new()
            // `Paced` and `Guest` limit the time for a head and before it.
            .header_read_timeout(None)
            .max_buf_size(MAX_BUFFER)
            .serve_connection(stream, service);
        guest.see_out(connection, http1::Connection::graceful_shutdown).await
    }

    fn told(&self, event: Event<'_>) {
        let Some(metrics) = &self.counted else { return };
        match event {
            Event::Opened => metrics.connection_opened(),
            Event::Closed => metrics.connection_closed(),
            Event::Shaken(Ok(())) => metrics.handshake("success"),
            Event::Shaken(Err(NoEntry::Refused(_))) => metrics.handshake("failure"),
            Event::Shaken(Err(NoEntry::TooSlow | NoEntry::NoRoom)) => metrics.handshake("timeout"),
        }
    }
}
