//! Connections: TLS, HTTP/1.1, and the bounds that keep a slow or silent caller from holding one for ever, and many of them
//! from holding up the others.

mod door;
mod pace;
mod places;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderValue, Request, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::ServerConfig;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use self::door::{Door, Entry, NoEntry};
use self::pace::Paced;
use self::places::{Place, Places};
use crate::telemetry::Metrics;

/// A handshake, and the head of a request, must arrive within this time.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The first head must be whole within this time of the handshake: who connects does so to ask, and connections that say
/// nothing cost whoever opens them less than whoever holds them.
const FIRST_HEAD: Duration = Duration::from_secs(10);
/// How long a connection may lie idle between requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes of a connection's read buffer: heads fit, bodies pass through.
const MAX_BUFFER: usize = 64 * 1024;
/// How long open requests may go on after the listener closed. API servers wait at most 30 s for a webhook.
const DRAIN: Duration = Duration::from_secs(10);
/// How long a connection that is closed for its idleness may take to tell the other side so.
const FAREWELL: Duration = Duration::from_millis(250);
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
    serve_at_most(door::most_connections(), port, shutdown).await
}

async fn serve_at_most(most: usize, port: Port, shutdown: Shutdown) -> Result<(), ServeError> {
    let Port { listener, tls, router, metrics } = port;
    let places = Places::new(most);
    let draining = CancellationToken::new();
    let door = tls.is_some().then(Door::open).transpose().map_err(ServeError::Door)?;
    let mut connections = JoinSet::new();
    let linger = async {
        shutdown.asked.cancelled().await;
        sleep(shutdown.linger).await;
    };
    let mut linger = std::pin::pin!(linger);
    loop {
        let (entry, stream, place) = tokio::select! {
            () = &mut linger => break,
            accepted = accept(&listener, door.as_ref().zip(tls.as_ref()), &places) => match accepted? {
                Some(accepted) => accepted,
                None => continue,
            },
        };
        let connection = Connection {
            entry,
            router: router.clone(),
            place,
            closing: shutdown.asked.clone(),
            draining: draining.clone(),
            metrics: Arc::clone(&metrics),
        };
        connections.spawn(connection.counted(stream));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    draining.cancel();
    let all_gone = async { while connections.join_next().await.is_some() {} };
    if timeout(DRAIN, all_gone).await.is_err() {
        let open = connections.len();
        tracing::warn!(open, "requests were still open at the end of the drain and are cut");
    }
    connections.shutdown().await;
    Ok(())
}

/// The way in with TLS, and what certificate is shown there.
type In<'a> = (&'a Door, &'a watch::Receiver<Arc<ServerConfig>>);

/// The next connection, its way in where it needs one, and a place for it; none where the one that came has gone, or the
/// system has no room for it.
async fn accept(
    listener: &TcpListener,
    door: Option<In<'_>>,
    places: &Places,
) -> io::Result<Option<(Option<Entry>, TcpStream, Place)>> {
    let turn = match door {
        Some((door, _)) => Some(door.turn().await),
        None => None,
    };
    match listener.accept().await {
        Ok((stream, _)) => {
            let entry = door.zip(turn).map(|((door, tls), turn)| door.entry(turn, Arc::clone(&tls.borrow())));
            Ok(Some((entry, stream, places.enter().await)))
        }
        Err(error) if is_of_one_connection(&error) => Ok(None),
        Err(error) if is_exhaustion(&error) => {
            tracing::warn!(%error, "the system has no room for another connection");
            places.make_room();
            sleep(EXHAUSTED).await;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

struct Connection {
    /// None without TLS.
    entry: Option<Entry>,
    router: Router,
    place: Place,
    /// The server is about to stop: answers say that the connection ends.
    closing: CancellationToken,
    /// Nothing new is begun any more.
    draining: CancellationToken,
    metrics: Arc<Metrics>,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

impl Connection {
    async fn counted(self, stream: TcpStream) {
        // Those of the port for operators are none of the webhook's.
        let counted = self.entry.as_ref().map(|_| Arc::clone(&self.metrics));
        counted.iter().for_each(|metrics| metrics.connection_opened());
        if let Err(error) = self.run(stream).await {
            tracing::debug!(%error, "connection ended");
        }
        counted.iter().for_each(|metrics| metrics.connection_closed());
    }

    async fn run(mut self, stream: TcpStream) -> Result<(), Failure> {
        stream.set_nodelay(true)?;
        let Some(entry) = self.entry.take() else { return self.serve(stream).await };
        let shaken = tokio::select! {
            shaken = entry.shake(stream, HEAD_TIMEOUT) => shaken,
            () = self.place.is_wanted_by_another() => Err(NoEntry::NoRoom),
        };
        self.metrics.handshake(match &shaken {
            Ok(_) => "success",
            Err(NoEntry::Refused(_)) => "failure",
            Err(NoEntry::TooSlow | NoEntry::NoRoom) => "timeout",
        });
        self.place.between.stirs();
        self.serve(shaken?).await
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<(), Failure> {
        let Self { entry: _, router, place, closing, draining, metrics: _ } = self;
        let between = place.between.clone();
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
        let mut connection = std::pin::pin!(connection);
        let patient = tokio::select! {
            ended = connection.as_mut() => return Ok(ended?),
            () = draining.cancelled() => true,
            () = place.is_wanted(FIRST_HEAD) => false,
        };
        // Says so in TLS, so that the other side takes no harm: it sends its next request on another connection.
        connection.as_mut().graceful_shutdown();
        if patient {
            return Ok(connection.await?);
        }
        tokio::select! {
            ended = connection => Ok(ended?),
            () = gone(&place) => Ok(()),
        }
    }
}

/// Returns when a connection has had the time to say farewell, and to answer the request that came just then.
async fn gone(place: &Place) {
    loop {
        sleep(FAREWELL).await;
        if place.between.idle(Instant::now()).is_some() {
            return;
        }
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
