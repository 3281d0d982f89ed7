//! Streams the state of a server to pages as server-sent events: once at the beginning, and then whenever it changes. The number
//! of streams and their duration are limited, and all of them share one cached snapshot.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use futures::Stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::live::Live;

/// Time between two polls for changes other than decisions, while a page listens.
const LOOK: Duration = Duration::from_secs(1);
/// Decisions within this time are sent as one event.
const SETTLES: Duration = Duration::from_millis(100);
/// How long one stream lasts; the page reconnects by itself. Longer responses would be cut off by the listener.
const LONGEST: Duration = Duration::from_secs(45);
/// The delay after which a page reconnects.
const AGAIN: Duration = Duration::from_millis(200);

/// One event stream.
pub(super) struct Listening {
    live: Live,
    decided: watch::Receiver<u64>,
    told: Option<Arc<str>>,
    end: Instant,
    _place: OwnedSemaphorePermit,
}

impl Listening {
    /// Starts a stream. Returns `None` if as many as allowed are open.
    pub(super) fn begin(live: Live) -> Option<Self> {
        let place = Arc::clone(&live.places).try_acquire_owned().ok()?;
        let decided = live.decided();
        Some(Self { live, decided, told: None, end: Instant::now() + LONGEST, _place: place })
    }

    /// Returns the events: `seen` with the JSON document, or `trouble` with the error.
    pub(super) fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        futures::stream::unfold(self, |mut listening| async move {
            let (name, text) = listening.next().await?;
            let event = Event::default().event(name).data(&*text).retry(AGAIN);
            Some((Ok(event), listening))
        })
    }

    /// Waits for the next event that differs from the last one. Returns `None` at the end of the stream.
    async fn next(&mut self) -> Option<(&'static str, Arc<str>)> {
        loop {
            if self.told.is_some() {
                self.changes().await?;
            }
            let (name, text) = match self.live.newest(LOOK / 2).await {
                Ok(seen) => ("seen", seen),
                Err(error) => ("trouble", json!({"error": error.to_string()}).to_string().into()),
            };
            if self.told.as_ref() != Some(&text) {
                self.told = Some(Arc::clone(&text));
                return Some((name, text));
            }
        }
    }

    /// Returns when something may have changed, or `None` at the end of the stream.
    async fn changes(&mut self) -> Option<()> {
        tokio::select! {
            biased;
            () = self.live.stop.cancelled() => None,
            () = sleep_until(self.end) => None,
            changed = self.decided.changed() => {
                changed.ok()?;
                sleep(SETTLES).await;
                self.decided.mark_unchanged();
                Some(())
            }
            () = sleep(LOOK) => Some(()),
        }
    }
}
