//! Those who listen to what happens in a server: each is told what is seen, and then whenever it changes. There are few of them,
//! none is kept for long, and all of them share the looks.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use futures::Stream;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep, sleep_until};

use super::live::Live;

/// Time between two looks at what no decision tells, while anybody listens.
const LOOK: Duration = Duration::from_secs(1);
/// Decisions within this time are told together.
const SETTLES: Duration = Duration::from_millis(100);
/// How long one may listen; the page begins anew by itself. An answer that goes on for longer is cut by its port.
const LONGEST: Duration = Duration::from_secs(45);
/// Milliseconds after which a page begins anew.
const AGAIN: Duration = Duration::from_millis(200);

/// One who listens.
pub(super) struct Listening {
    live: Live,
    decided: watch::Receiver<u64>,
    told: Option<Arc<str>>,
    end: Instant,
    _place: OwnedSemaphorePermit,
}

impl Listening {
    /// None where as many listen as may.
    pub(super) fn begin(live: Live) -> Option<Self> {
        let place = Arc::clone(&live.places).try_acquire_owned().ok()?;
        let decided = live.decided();
        Some(Self { live, decided, told: None, end: Instant::now() + LONGEST, _place: place })
    }

    /// `seen` with the document, or `trouble` with why there is none.
    pub(super) fn events(self) -> impl Stream<Item = Result<Event, Infallible>> {
        futures::stream::unfold(self, |mut listening| async move {
            let (name, text) = listening.next().await?;
            let event = Event::default().event(name).data(&*text).retry(AGAIN);
            Some((Ok(event), listening))
        })
    }

    /// What is to be told next; none where it is over.
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

    /// Returns when something may have changed; none when it is over.
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
