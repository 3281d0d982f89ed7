//! Closes a connection whose client does not read its responses, since bytes that are buffered in the transport are freed
//! only with the connection. Notifies the watches of a connection when its port drains.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

/// The send deadlines of one connection. Clones belong to the same connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hangup(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    expected: Mutex<Expected>,
    changed: Notify,
    leaving: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Expected {
    next: u64,
    until: BTreeMap<u64, Instant>,
}

/// A deadline that is cancelled when this is dropped.
#[derive(Debug)]
pub(crate) struct Expectation {
    of: Hangup,
    id: u64,
}

impl Hangup {
    /// Closes the connection at `until`, unless the returned expectation is dropped before.
    pub(crate) fn expect(&self, until: Instant) -> Expectation {
        let mut expected = self.lock();
        expected.next += 1;
        let id = expected.next;
        expected.until.insert(id, until);
        drop(expected);
        self.0.changed.notify_one();
        Expectation { of: self.clone(), id }
    }

    /// Notifies open watches that the connection ends.
    pub(crate) fn leave(&self) {
        self.0.leaving.send_replace(true);
    }

    /// Completes once [`Self::leave`] was called.
    pub(crate) async fn leaves(&self) {
        // Cannot fail, as `self` holds the sender.
        let _ = self.0.leaving.subscribe().wait_for(|leaving| *leaving).await;
    }

    /// Completes when a deadline has passed.
    pub(crate) async fn due(&self) {
        loop {
            let changed = self.0.changed.notified();
            let earliest = self.lock().until.values().min().copied();
            match earliest {
                Some(until) if until <= Instant::now() => return,
                Some(until) => {
                    tokio::select! {
                        () = sleep_until(until) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Expected> {
        self.0.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.of.lock().until.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use futures::FutureExt as _;
    use tokio::time::{advance, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_its_client_takes_nothing() {
        let hangup = Hangup::default();
        let in_seconds = |seconds| Instant::now() + Duration::from_secs(seconds);
        let (taken, late) = (hangup.expect(in_seconds(1)), hangup.expect(in_seconds(5)));
        drop(taken);
        advance(Duration::from_secs(2)).await;
        assert!(hangup.due().now_or_never().is_none());
        assert!(timeout(Duration::from_secs(4), hangup.due()).await.is_ok());
        drop(late);
        assert!(timeout(Duration::from_secs(60), hangup.due()).await.is_err());
    }
}
