//! Runs TLS handshakes on a thread of their own and limits how many connections wait for theirs.
//!
//! A handshake costs a signature and a key agreement, a hundred times what most reviews cost, and whoever can reach
//! the port can ask for one. On the threads that serve requests, thousands of simultaneous handshakes would be queued
//! ahead of every request on connections that are already open. On a thread of their own, the operating system's
//! scheduler shares the processors between handshakes and requests.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Connections that are taken from the system before the thread of handshakes has looked at them. Further ones wait with the
/// system: taken at once, the thousands that a time limit closes together, and that come again together, would stand before
/// every request.
const AHEAD: usize = 32;

/// Runs the TLS handshakes of a port; those in progress are aborted when this is dropped.
#[derive(Debug)]
pub(crate) struct Door {
    /// None once it closes.
    runtime: Option<Runtime>,
    ahead: Arc<Semaphore>,
}

/// Permission to accept another connection; it ends when that connection's handshake has begun.
#[derive(Debug)]
pub(crate) struct Turn {
    _leave: Option<OwnedSemaphorePermit>,
}

/// The TLS handshake of one connection, not yet begun.
pub(crate) struct Entry {
    acceptor: TlsAcceptor,
    handshakes: Handle,
    turn: Turn,
}

/// Ends a task with the value; one that has ended is left alone.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Why a TLS handshake did not lead to a connection.
#[derive(Debug, Error)]
pub enum NoEntry {
    #[error("the handshake failed: {0}")]
    Refused(#[from] io::Error),
    #[error("the handshake took too long")]
    TooSlow,
    #[error("another connection needs the room, or the port drains")]
    NoRoom,
}

impl Door {
    /// # Errors
    /// When the system gives no thread.
    pub(crate) fn open() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .thread_name("handshakes")
            .enable_time()
            .build()
            .map(|runtime| Self { runtime: Some(runtime), ahead: Arc::new(Semaphore::new(AHEAD)) })
    }

    /// Waits until few enough connections wait for their handshake to accept another.
    pub(crate) async fn turn(&self) -> Turn {
        // Nobody closes it.
        Turn { _leave: Arc::clone(&self.ahead).acquire_owned().await.ok() }
    }

    /// Prepares a handshake that presents the certificate of `config`.
    pub(crate) fn entry(&self, turn: Turn, config: Arc<ServerConfig>) -> Entry {
        let handshakes =
            self.runtime.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone());
        Entry { acceptor: TlsAcceptor::from(config), handshakes, turn }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Waiting for the thread is not allowed where others are served.
            runtime.shutdown_background();
        }
    }
}

impl Entry {
    /// Performs the handshake of a connection, which may take as long as `limit`.
    pub(crate) async fn shake(
        self,
        stream: TcpStream,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, NoEntry> {
        let accepting = self.acceptor.accept(stream);
        // The stream stays with the runtime that accepted it, whose events wake the handshake wherever it runs.
        let turn = self.turn;
        let shaken = self.handshakes.spawn(async move {
            drop(turn);
            timeout(limit, accepting).await
        });
        // Whoever gives up waiting gives up the connection, too.
        let _given_up = AbortOnDrop(shaken.abort_handle());
        match shaken.await {
            Ok(Ok(shaken)) => Ok(shaken?),
            Ok(Err(_)) => Err(NoEntry::TooSlow),
            Err(ended) => Err(NoEntry::Refused(io::Error::other(ended))),
        }
    }
}
