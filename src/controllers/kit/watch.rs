//! Watches that never end and never fail. Errors are logged, once until they change, and retried with growing delays.
//! A watch counts as working again when it delivered a change, or lasted longer than the longest wait: that a list is
//! begun, or even succeeds, says nothing about the watch that follows. (A wait that is reset by each attempt never
//! grows: a kind that is not served would then be asked for, and complained of, every second for ever.)

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

/// Wait after the first trouble: long enough for a server that restarts a connection, too short for anybody to notice.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// Bound of the waits: what becomes available is seen at the latest so much later.
const LONGEST_WAIT: Duration = Duration::from_secs(20);

/// The events of a watch that never ends. One that breaks is listed again after a wait, from which the changes that were missed follow.
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

/// What `watch` brings, its trouble told under the name of `kind` and waited out.
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
    /// When the watch was set up the last time.
    since: Instant,
    /// The trouble that was told and has not passed.
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
