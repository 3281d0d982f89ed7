//! Drives one accepted connection until it ends, is idle for too long, has to make room for another, or the listener
//! drains.

use std::future::{Future, pending};
use std::pin::{Pin, pin};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::places::Place;

/// How long a graceful close may take for a connection that makes room.
const FAREWELL: Duration = Duration::from_millis(250);

/// Time limits for the clients of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For a handshake, and for a request head from its first byte.
    pub head: Duration,
    /// From the handshake to the end of the first request head: clients connect in order to send requests, and an
    /// idle connection costs its client less than the server.
    pub first_head: Duration,
    /// For idle time between requests.
    pub idle: Duration,
    /// For requests in flight after the listener closed.
    pub drain: Duration,
}

/// An accepted connection, with its place and time limits.
#[derive(Debug)]
pub struct Guest {
    pub(crate) place: Place,
    pub(crate) limits: Limits,
    /// Cancelled when no new request is served.
    draining: CancellationToken,
}

impl Guest {
    /// Creates a connection that never drains.
    #[must_use]
    pub fn new(place: Place, limits: Limits) -> Self {
        Self { place, limits, draining: CancellationToken::new() }
    }

    /// Creates a connection that serves no new request once `draining` is cancelled.
    pub(crate) fn of(draining: &CancellationToken, place: Place, limits: Limits) -> Self {
        Self { place, limits, draining: draining.clone() }
    }

    /// The connection's request counts, which the code that reads requests has to update.
    #[must_use]
    pub fn activity(&self) -> &Activity {
        &self.place.activity
    }

    /// Completes when no new request is served: endless responses such as watches must end.
    pub fn drains(&self) -> impl Future<Output = ()> + Send + use<> {
        self.draining.clone().cancelled_owned()
    }

    /// Completes when a handshake is pointless: another connection needs the place, or no request would be served after it.
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
            // Limited by the drain of the listener.
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

    /// Completes when the connection must close; returns how long that may take: the client of an idle connection may be far away, and
    /// nobody waits for the place then.
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

    /// Completes when a connection has had time to close, and to answer a request that arrived meanwhile.
    async fn gone(&self, patience: Duration) {
        loop {
            sleep(patience).await;
            if self.activity().idle(Instant::now()).is_some() {
                return;
            }
        }
    }
}
