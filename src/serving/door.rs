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

/// Connections that are accepted before the handshake thread has started with them. Further ones wait in the system's queue:
/// accepted immediately, thousands that were closed together by a time limit, and reconnect together, would delay every
/// request.
const AHEAD: usize = 32;

/// Runs the TLS handshakes of a port; those in progress are aborted when this is dropped.
#[derive(Debug)]
pub(crate) struct Door {
    /// None while closing.
    runtime: Option<Runtime>,
    ahead: Arc<Semaphore>,
}

/// Permission to accept another connection; released when that connection's handshake has begun.
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

/// Aborts a task when dropped, unless it has ended.
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
    /// When a thread cannot be started.
    pub(crate) fn open() -> io::Result<Self> {
        let mut builder = Builder::new_multi_thread();
        builder
            .worker_threads(1)
            .thread_name("handshakes")
            .enable_time()
            .build()
            .map(|runtime| Self { runtime: Some(runtime), ahead: Arc::new(Semaphore::new(AHEAD)) })
    }

    /// Waits until another connection may be accepted, because few enough wait for their handshake.
    pub(crate) async fn turn(&self) -> Turn {
        // The semaphore is never closed.
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
            // Waiting for the thread is not allowed in an async context.
            runtime.shutdown_background();
        }
    }
}

impl Entry {
    /// Performs the handshake of a connection, within `limit`.
    pub(crate) async fn shake(
        self,
        stream: TcpStream,
        limit: Duration,
    ) -> Result<TlsStream<TcpStream>, NoEntry> {
        let accepting = self.acceptor.accept(stream);
        // The stream stays with the runtime that accepted it, whose events wake the handshake on any thread.
        let turn = self.turn;
        let shaken = self.handshakes.spawn(async move {
            drop(turn);
            timeout(limit, accepting).await
        });
        // If the caller stops waiting, the handshake is aborted.
        let _given_up = AbortOnDrop(shaken.abort_handle());
        match shaken.await {
            Ok(Ok(shaken)) => Ok(shaken?),
            Ok(Err(_)) => Err(NoEntry::TooSlow),
            Err(ended) => Err(NoEntry::Refused(io::Error::other(ended))),
        }
    }
}
