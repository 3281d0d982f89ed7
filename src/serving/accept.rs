//! Accepts connections until shutdown: limits concurrent handshakes and connections, backs off when the process is
//! out of file descriptors or memory, and drains open connections at the end.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::door::{Door, Entry, NoEntry};
use crate::guest::{Guest, Limits};
use crate::places::{Place, Places};

/// How long to wait when the system has no file descriptor or memory left for another connection.
const EXHAUSTED: Duration = Duration::from_millis(20);

/// Why serving ended before it was asked to.
#[derive(Debug, Error)]
pub enum ServeError {
    #[error("cannot accept connections: {0}")]
    Accept(#[from] io::Error),
    #[error("cannot start the thread of handshakes: {0}")]
    Door(#[source] io::Error),
}

/// A port to serve: its listener, TLS configuration, and limits on connections.
#[derive(Debug)]
pub struct Port {
    pub listener: TcpListener,
    /// The TLS configuration; each handshake uses the newest one. Without one the port speaks plain text.
    pub tls: Option<watch::Receiver<Arc<ServerConfig>>>,
    /// The limit on connections, which several ports may share.
    pub places: Arc<Places>,
    pub limits: Limits,
}

/// What the TLS handshake established about the client.
#[derive(Debug, Default)]
pub struct Caller {
    /// The client's certificate, which was accepted by the verifier of the TLS configuration.
    pub certificate: Option<CertificateDer<'static>>,
    /// The certificates sent with it, which may form a chain to an authority.
    pub intermediates: Vec<CertificateDer<'static>>,
    /// The protocol that both sides agreed on (ALPN).
    pub protocol: Option<Vec<u8>>,
    /// The client's IP address.
    pub address: Option<IpAddr>,
}

/// A stage in the life of a connection, for metrics.
#[derive(Debug)]
pub enum Event<'a> {
    Opened,
    /// The handshake succeeded or failed.
    Shaken(Result<(), &'a NoEntry>),
    Closed,
}

/// Serves the requests of a connection. Each connection is given a clone.
pub trait Host: Clone + Send + Sync + 'static {
    /// Why a connection ended early; it is logged.
    type Error: fmt::Display + Send;

    /// Serves a connection until it ends. Implementations run it by [`Guest::see_out`], which says when to stop.
    fn talk<S>(
        self,
        stream: S,
        caller: Caller,
        guest: Guest,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Called at each stage of each connection.
    fn told(&self, event: Event<'_>) {
        let _ = event;
    }
}

/// Serves a port until `shutdown`, then lets open requests finish within [`Limits::drain`].
///
/// # Errors
/// When a thread cannot be started, or the listener itself fails; errors of one connection end only that connection.
pub async fn serve<H: Host>(
    port: Port,
    host: H,
    shutdown: impl Future<Output = ()> + Send,
) -> Result<(), ServeError> {
    let Port { listener, tls, places, limits } = port;
    let draining = CancellationToken::new();
    let door = tls.is_some().then(Door::open).transpose().map_err(ServeError::Door)?;
    let mut connections = JoinSet::new();
    let mut shutdown = pin!(shutdown);
    loop {
        let (entry, stream, place) = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, door.as_ref().zip(tls.as_ref()), &places) => match accepted? {
                Some(accepted) => accepted,
                None => continue,
            },
        };
        let guest = Guest::of(&draining, place, limits);
        connections.spawn(receive(host.clone(), entry, stream, guest));
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    draining.cancel();
    let all_gone = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.drain, all_gone).await.is_err() {
        let open = connections.len();
        tracing::warn!(open, "requests were still open at the end of the drain and are cut");
    }
    connections.shutdown().await;
    Ok(())
}

/// What a connection needs for its TLS handshake: the thread that runs it, and the configuration.
type In<'a> = (&'a Door, &'a watch::Receiver<Arc<ServerConfig>>);

/// Accepts the next connection, with its TLS handshake if there is one, and its place. None if the connection is gone already, or
/// the system has no resources for it.
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
            places.make_room(&error);
            sleep(EXHAUSTED).await;
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Why a connection ended early.
#[derive(Debug, Error)]
enum Ended<E> {
    #[error("{0}")]
    Socket(io::Error),
    #[error("{0}")]
    NoEntry(NoEntry),
    #[error("{0}")]
    Talk(E),
}

async fn receive<H: Host>(host: H, entry: Option<Entry>, stream: TcpStream, guest: Guest) {
    host.told(Event::Opened);
    let caller = Caller { address: stream.peer_addr().ok().map(|peer| peer.ip()), ..Caller::default() };
    let ended = match (stream.set_nodelay(true), entry) {
        (Err(error), _) => Err(Ended::Socket(error)),
        (Ok(()), None) => talked(&host, stream, caller, guest).await,
        (Ok(()), Some(entry)) => shaken(&host, entry, (stream, caller), guest).await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
    host.told(Event::Closed);
}

async fn shaken<H: Host>(
    host: &H,
    entry: Entry,
    (stream, caller): (TcpStream, Caller),
    guest: Guest,
) -> Result<(), Ended<H::Error>> {
    let shaken = tokio::select! {
        shaken = entry.shake(stream, guest.limits.head) => shaken,
        () = guest.is_unwelcome() => Err(NoEntry::NoRoom),
    };
    host.told(Event::Shaken(shaken.as_ref().map(|_| ())));
    let stream = shaken.map_err(Ended::NoEntry)?;
    guest.activity().stirs();
    let (_, session) = stream.get_ref();
    let mut shown =
        session.peer_certificates().unwrap_or_default().iter().cloned().map(CertificateDer::into_owned);
    let caller = Caller {
        certificate: shown.next(),
        intermediates: shown.collect(),
        protocol: session.alpn_protocol().map(<[u8]>::to_vec),
        ..caller
    };
    talked(host, stream, caller, guest).await
}

async fn talked<H: Host>(
    host: &H,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    caller: Caller,
    guest: Guest,
) -> Result<(), Ended<H::Error>> {
    host.clone().talk(stream, caller, guest).await.map_err(Ended::Talk)
}

/// Whether an error of `accept` concerns one connection and not the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    )
}

/// Whether the error is ENFILE, EMFILE, ENOMEM or ENOBUFS: connections that end free these resources.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}
