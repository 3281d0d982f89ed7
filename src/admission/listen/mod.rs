//! Connections: TLS, HTTP/1.1, and the bounds that keep a slow or silent caller from holding one for ever, and many of them
//! from holding up the others.

mod door;
mod pace;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Request, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use rustls::ServerConfig;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use self::door::{Door, Entry, NoEntry};
use self::pace::{Between, Paced};
use crate::telemetry::Metrics;

/// A handshake, and the head of a request, must arrive within this time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may lie idle between requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a connection's read buffer: heads fit, bodies pass through.
const MAX_BUFFER: usize = 64 * 1024;
/// How long open requests may go on after the listener closed. API servers wait at most 30 s for a webhook.
const DRAIN: Duration = Duration::from_secs(10);
/// A pause when the system has no descriptor or memory left for another connection.
const EXHAUSTED: Duration = Duration::from_millis(20);

/// Why serving ended before it was asked to.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error("cannot accept connections: {0}")]
    Accept(#[from] io::Error),
    #[error("cannot start the thread of handshakes: {0}")]
    Door(#[source] io::Error),
}

/// A port with what is served there.
#[derive(Debug)]
pub struct Port {
    pub listener: TcpListener,
    /// The newest configuration is used for each handshake; none serves plain HTTP.
    pub tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    pub router: Router,
    pub metrics: Arc<Metrics>,
}

/// When to stop, and how gently.
#[derive(Clone, Debug)]
pub struct Shutdown {
    pub asked: CancellationToken,
    /// How long to go on serving once asked: callers need time to learn that this replica is no longer ready. Answers
    /// close their connections meanwhile.
    pub linger: Duration,
}

/// Serves a port until `shutdown`, then lets open requests finish.
///
/// # Errors
/// When the system gives no thread, or the listener itself fails; trouble with one connection ends that connection only.
pub async fn serve(port: Port, shutdown: Shutdown) -> Result<(), ServeError> {
    let Port { listener, tls, router, metrics } = port;
    let graceful = GracefulShutdown::new();
    let permits = Arc::new(Semaphore::new(door::most_connections()));
    let door = tls.is_some().then(Door::open).transpose().map_err(ServeError::Door)?;
    let mut connections = JoinSet::new();
    let linger = async {
        shutdown.asked.cancelled().await;
        sleep(shutdown.linger).await;
    };
    let mut linger = std::pin::pin!(linger);
    loop {
        let accepted = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, stream) = tokio::select! {
            () = &mut linger => break,
            (permit, accepted) = accepted => match accepted {
                Ok((stream, _)) => (permit, stream),
                Err(error) if is_of_one_connection(&error) => continue,
                Err(error) if is_exhaustion(&error) => {
                    tracing::warn!(%error, "the system has no room for another connection");
                    sleep(EXHAUSTED).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            },
        };
        let connection = Connection {
            entry: door.as_ref().zip(tls.as_ref()).map(|(door, tls)| door.entry(Arc::clone(&tls.borrow()))),
            router: router.clone(),
            watcher: graceful.watcher(),
            closing: shutdown.asked.clone(),
            metrics: Arc::clone(&metrics),
        };
        connections.spawn(async move {
            // Those of the port for operators are none of the webhook's.
            let counted = connection.entry.as_ref().map(|_| Arc::clone(&connection.metrics));
            counted.iter().for_each(|metrics| metrics.connection_opened());
            if let Err(error) = connection.run(stream).await {
                tracing::debug!(%error, "connection ended");
            }
            counted.iter().for_each(|metrics| metrics.connection_closed());
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

struct Connection {
    /// None without TLS.
    entry: Option<Entry>,
    router: Router,
    watcher: Watcher,
    closing: CancellationToken,
    metrics: Arc<Metrics>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Connection {
    async fn run(self, stream: TcpStream) -> Result<(), Failure> {
        stream.set_nodelay(true)?;
        let Some(entry) = &self.entry else { return self.serve(stream).await };
        let shaken = entry.shake(stream, HEAD_TIMEOUT).await;
        self.metrics.handshake(match &shaken {
            Ok(_) => "success",
            Err(NoEntry::Refused(_)) => "failure",
            Err(NoEntry::TooSlow) => "timeout",
        });
        self.serve(shaken?).await
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(), Failure> {
        let Self { entry: _, router, watcher, closing, metrics: _ } = self;
        let between = Between::default();
        let stream = TokioIo::new(Paced::new(stream, between.clone(), HEAD_TIMEOUT));
        let service = service_fn(move |request: Request<Incoming>| {
            let (router, closing, between) = (router.clone(), closing.clone(), between.clone());
            between.request_begins();
            async move {
                let answered = router.oneshot(request.map(Body::new)).await;
                between.request_ends();
                answered.map(|mut response| {
                    if closing.is_cancelled() {
                        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                    }
                    response
                })
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE_TIMEOUT)
            .max_buf_size(MAX_BUFFER)
            .serve_connection(stream, service);
        watcher.watch(connection).await?;
        Ok(())
    }
}

/// Errors of `accept` that say nothing about the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// ENFILE, EMFILE, ENOMEM and ENOBUFS: connections that end give back what is missing.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}
