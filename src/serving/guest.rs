//! Drives one accepted connection until it ends, is idle for too long, has to make room for another, or the port
//! drains.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::places::Place;

/// How long a connection that makes room may take to tell the other side so.
const FAREWELL: Duration = Duration::from_millis(250);

/// Time limits for the clients of a port.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a handshake, and for the head of a request from its first byte.
    pub head: Duration,
    /// The first head must be complete within this time of the handshake: clients connect in order to ask, and a
    /// connection that says nothing costs its client less than the server.
    pub first_head: Duration,
    /// How long a connection may lie idle between requests.
    pub idle: Duration,
    /// How long open requests may go on after the listener closed.
    pub drain: Duration,
}

/// An accepted connection, with its place and time limits.
#[derive(Debug)]
pub struct Guest {
    pub(crate) place: Place,
    pub(crate) limits: Limits,
    /// Nothing new is begun any more.
    draining: CancellationToken,
}

impl Guest {
    /// An accepted connection of a port that never drains.
    #[must_use]
    pub fn new(place: Place, limits: Limits) -> Self {
        Self { place, limits, draining: CancellationToken::new() }
    }

    /// An accepted connection of a port that begins nothing new once `draining` is cancelled.
    pub(crate) fn of(draining: &CancellationToken, place: Place, limits: Limits) -> Self {
        Self { place, limits, draining: draining.clone() }
    }

    /// The connection's request counts, which the code that reads requests has to update.
    #[must_use]
    pub fn activity(&self) -> &Activity {
        &self.place.activity
    }

    /// Returns when the port begins nothing new any more: answers that have no end of their own are to end.
    pub fn drains(&self) -> impl Future<Output = ()> + Send + use<> {
        self.draining.clone().cancelled_owned()
    }

    /// Returns when there is nothing to wait for in a handshake: another needs the room, or no request would be begun after it.
    pub(crate) async fn is_unwelcome(&self) {
        tokio::select! {
            () = self.place.is_wanted() => {}
            () = self.draining.cancelled() => {}
        }
    }

    /// Drives a connection to its end. When it has to close, `farewell` starts a graceful shutdown of the protocol,
    /// so that the client sends its next request on another connection. A request in flight is still completed.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn see_out<C, E>(self, connection: C, farewell: impl FnOnce(Pin<&mut C>)) -> Result<(), E>
    where
        C: Future<Output = Result<(), E>>,
    {
        let mut connection = pin!(connection);
        let patience = tokio::select! {
            ended = connection.as_mut() => return ended,
            // The drain of the port bounds it.
            () = self.draining.cancelled() => None,
            patience = self.is_to_go() => Some(patience),
        };
        farewell(connection.as_mut());
        let Some(patience) = patience else { return connection.await };
        tokio::select! {
            ended = connection => ended,
            () = self.gone(patience) => Ok(()),
        }
    }

    /// Returns when the connection is to go, with how long its farewell may take: whoever lay idle may be far away, and nobody
    /// waits for the place.
    async fn is_to_go(&self) -> Duration {
        let silent = async {
            sleep(self.limits.first_head).await;
            if self.activity().has_asked() {
                pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.place.is_wanted() => FAREWELL,
            () = silent => FAREWELL,
            () = self.activity().idle_for(self.limits.idle) => self.limits.head,
        }
    }

    /// Returns when a connection has had the time to say farewell, and to answer the request that came just then.
    async fn gone(&self, patience: Duration) {
        loop {
            sleep(patience).await;
            if self.activity().idle(Instant::now()).is_some() {
                return;
            }
        }
    }
}
