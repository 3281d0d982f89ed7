//! Publishes events on objects, for `kubectl describe`. An event that cannot be written is logged: it must never stop
//! the work that it reports.
//!
//! A repeated event is one Event object with a count. The note of an Event never changes once it is written (the API
//! says so), so another note is another Event: `kubectl describe` shows the current state, and not what it was when
//! the first of its kind was published. Events with ever different notes are aggregated, as Kubernetes' own recorder
//! does.

mod similar;

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::events::Reporter;
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::time::Instant;
use tracing::warn;

use self::similar::{About, Similar, Told};
use crate::telemetry::{Outside, Secrets, with_causes};

/// An event to publish on an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub warning: bool,
    /// A word in PascalCase, for machines.
    pub reason: &'static str,
    /// The action as a word in PascalCase.
    pub action: &'static str,
    pub note: String,
}

/// The longest note in bytes, by the events API.
const MAX_NOTE: usize = 1024;
/// The longest name of an object in bytes.
const MAX_NAME: usize = 253;
/// The namespace of events about cluster-scoped objects.
const DEFAULT_NAMESPACE: &str = "default";

/// Publishes events. Clones share one recorder.
#[derive(Clone)]
pub struct Events(Arc<Recorder>);

struct Recorder {
    client: Client,
    controller: String,
    /// The host name, which in a cluster is the Pod's.
    instance: String,
    similar: Mutex<Similar>,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    #[must_use]
    pub fn new(client: Client, controller: &str) -> Self {
        let Reporter { controller, instance } = Reporter::from(controller);
        let instance = instance.unwrap_or_else(|| controller.clone());
        Self(Arc::new(Recorder { client, controller, instance, similar: Mutex::default() }))
    }

    /// Records `notice` about `object`; a failure is only logged.
    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, notice: Notice) {
        let reason = notice.reason;
        if let Err(error) = self.0.record(object.object_ref(&()), notice).await {
            warn!(error = with_causes(&error), reason, "event not recorded");
        }
    }
}

impl Recorder {
    async fn record(&self, object: ObjectReference, notice: Notice) -> Result<(), kube::Error> {
        let Notice { warning, reason, action, note } = notice;
        let note = Outside::at_most(MAX_NOTE, note, &Secrets::default()).into_string();
        // All versions of an object count as the same.
        let same = ObjectReference { resource_version: None, ..object.clone() };
        let about = About { warning, reason, action, object: same };
        let (series, note) =
            self.similar.lock().unwrap_or_else(PoisonError::into_inner).place(&about, note, Instant::now());
        // Locked during the write: others with the same notice wait and increase the count.
        let mut series = series.lock().await;
        let namespace = about.object.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if let Some(told) = &mut *series
            && count_on(&events, told).await?
        {
            return Ok(());
        }
        let event = self.event(About { object, ..about }, cut(&note, MAX_NOTE));
        let name = event.metadata.name.clone().unwrap_or_default();
        events.create(&PostParams::default(), &event).await?;
        *series = Some(Told { name, count: 1 });
        Ok(())
    }

    fn event(&self, about: About, note: &str) -> Event {
        let About { warning, reason, action, object } = about;
        let now = Timestamp::now();
        // A unique suffix as in Kubernetes' own recorder.
        let suffix = format!(".{:x}", now.as_nanosecond());
        let name = object.name.as_deref().unwrap_or(&self.controller);
        let name = cut(name, MAX_NAME.saturating_sub(suffix.len())).trim_end_matches(['.', '-']);
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}{suffix}")),
                namespace: Some(object.namespace.clone().unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned())),
                ..ObjectMeta::default()
            },
            action: Some(action.to_owned()),
            event_time: Some(MicroTime(now)),
            note: Some(note.to_owned()),
            reason: Some(reason.to_owned()),
            regarding: Some(object),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(if warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        }
    }
}

/// Increases the count of an existing event; returns whether it still exists: the server keeps events for an hour.
async fn count_on(events: &Api<Event>, told: &mut Told) -> Result<bool, kube::Error> {
    told.count = told.count.saturating_add(1);
    let series = json!({"count": told.count, "lastObservedTime": MicroTime(Timestamp::now())});
    let patch = Patch::Merge(json!({"series": series}));
    match events.patch(&told.name, &PatchParams::default(), &patch).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the beginning of `text`, up to a number of bytes.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes.min(text.len()))]
}
