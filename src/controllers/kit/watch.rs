//! Watches kinds without ever ending or failing. Errors are logged, once until they change, and retried with growing delays.
//! A watch counts as working again when it delivered a change, or lasted longer than the longest wait: that a list is
//! started, or even succeeds, says nothing about the watch that follows. (If each attempt reset the wait, it would never
//! grow, and a kind that is not served would be requested, and reported, every second for ever.)

use std::borrow::Cow;
use std::fmt::Debug;
use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};
use tracing::{debug, info, warn};

use super::wait::GrowingWait;
use crate::telemetry::with_causes;

/// The wait after the first error: long enough for a restarting server, too short to be noticed.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait, which is the longest delay until a recovery is noticed.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// Returns the events of a watch that never ends. After an error, the kind is listed again, which reports missed changes.
pub fn events<K>(api: Api<K>, config: watcher::Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Default,
{
    let kind = K::kind(&K::DynamicType::default()).into_owned();
    events_of(api, config, kind)
}

/// Like [`events`], for a kind that is known only at run time; errors are reported under the name `kind`.
pub fn events_of<K>(api: Api<K>, config: watcher::Config, kind: String) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
{
    patient(watcher::watcher(api, config), kind)
}

/// Returns the events of `watch`; errors are reported with the name `kind`, followed by a wait.
fn patient<T: Send + 'static>(
    watch: impl Stream<Item = watcher::Result<Event<T>>> + Send + 'static,
    kind: String,
) -> impl Stream<Item = Event<T>> + Send {
    let patience = Patience::new(kind);
    stream::unfold((watch.boxed(), patience), |(mut watch, mut patience)| async move {
        loop {
            match watch.next().await? {
                Ok(event) => {
                    patience.heard(&event);
                    return Some((event, (watch, patience)));
                }
                Err(error) => patience.trouble(&error).await,
            }
        }
    })
}

/// The error handling of one watch.
#[derive(Debug)]
pub struct Patience {
    kind: Cow<'static, str>,
    wait: GrowingWait,
    /// When the watch was last established.
    since: Instant,
    /// The persisting error that was reported.
    told: Option<String>,
}

impl Patience {
    pub fn new(kind: impl Into<Cow<'static, str>>) -> Self {
        let wait = GrowingWait::new(FIRST_WAIT, LONGEST_WAIT);
        Self { kind: kind.into(), wait, since: Instant::now(), told: None }
    }

    /// Records an event of the watch, which may show that it works again.
    pub fn heard<T>(&mut self, event: &Event<T>) {
        if let Event::Apply(_) | Event::Delete(_) = event {
            self.works();
        }
    }

    /// Logs `error` and waits.
    pub async fn trouble(&mut self, error: &watcher::Error) {
        if self.since.elapsed() > self.wait.longest() {
            self.works();
        }
        let error = with_causes(error);
        if self.told.as_ref() == Some(&error) {
            debug!(kind = %self.kind, error, "still the same trouble with the watch");
        } else {
            warn!(kind = %self.kind, error, "watch interrupted, setting it up again");
            self.told = Some(error);
        }
        sleep(self.wait.grow()).await;
        self.since = Instant::now();
    }

    fn works(&mut self) {
        self.wait.reset();
        if self.told.take().is_some() {
            info!(kind = %self.kind, "the watch works again");
        }
    }
}
