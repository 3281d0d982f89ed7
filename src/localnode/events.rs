//! Writes Events about Jobs and Pods, for `kubectl describe`. Failures are only logged: they must not stop anything else.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::PostParams;
use kube::{Api, Client};
use tracing::warn;

use super::NODE;
use crate::telemetry::with_causes;

/// The longest note of an Event in bytes, by the events API.
const MAX_NOTE: usize = 1024;

/// The text of an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) warning: bool,
    pub(super) reason: String,
    pub(super) text: String,
}

impl Note {
    pub(super) fn normal(reason: &str, text: impl Into<String>) -> Self {
        Self { warning: false, reason: reason.to_owned(), text: text.into() }
    }

    pub(super) fn warning(reason: &str, text: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, text) }
    }
}

/// Writes Events in the name of a component.
#[derive(Clone)]
pub(super) struct Events {
    client: Client,
    component: &'static str,
}

impl Events {
    pub(super) fn new(client: &Client, component: &'static str) -> Self {
        Self { client: client.clone(), component }
    }

    /// Writes an Event. Notes are not aggregated: callers report each change once.
    pub(super) async fn tell(&self, about: &ObjectReference, note: Note) {
        let Note { warning, reason, text } = note;
        let cut = text.floor_char_boundary(MAX_NOTE.min(text.len()));
        let now = Timestamp::now();
        let event = Event {
            metadata: ObjectMeta {
                name: Some(format!(
                    "{}.{:x}",
                    about.name.as_deref().unwrap_or_default(),
                    now.as_nanosecond()
                )),
                ..ObjectMeta::default()
            },
            action: Some(reason.clone()),
            event_time: Some(MicroTime(now)),
            note: Some(text[..cut].to_owned()),
            reason: Some(reason),
            regarding: Some(about.clone()),
            reporting_controller: Some(self.component.to_owned()),
            reporting_instance: Some(NODE.to_owned()),
            type_: Some(if warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        let namespace = about.namespace.as_deref().unwrap_or("default");
        let events: Api<Event> = Api::namespaced(self.client.clone(), namespace);
        if let Err(error) = events.create(&PostParams::default(), &event).await {
            warn!(error = with_causes(&error), reason = event.reason, "event not recorded");
        }
    }
}
