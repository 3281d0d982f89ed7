//! Events on objects, for `kubectl describe`. An event that cannot be written is logged: telling a story must never
//! stop it.

use crate::telemetry::{Outside, Secrets, with_causes};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::{Client, Resource};
use tracing::warn;

/// What happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    pub warning: bool,
    /// PascalCase, for machines.
    pub reason: &'static str,
    /// PascalCase: what was being done.
    pub action: &'static str,
    pub note: String,
}

/// Longest note that the events API takes, in bytes.
const MAX_NOTE: usize = 1024;

#[derive(Clone)]
pub struct Events {
    recorder: Recorder,
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Events").finish_non_exhaustive()
    }
}

impl Events {
    pub fn new(client: Client, controller: &str) -> Self {
        Self { recorder: Recorder::new(client, Reporter::from(controller)) }
    }

    /// Records `notice` about `object`; a failure is only logged.
    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, notice: Notice) {
        let Notice { warning, reason, action, note } = notice;
        let note = Outside::at_most(MAX_NOTE, note, &Secrets::default()).into_string();
        let cut = note.floor_char_boundary(MAX_NOTE.min(note.len()));
        let event = Event {
            type_: if warning { EventType::Warning } else { EventType::Normal },
            reason: reason.to_owned(),
            action: action.to_owned(),
            note: Some(note[..cut].to_owned()),
            secondary: None,
        };
        if let Err(error) = self.recorder.publish(&event, &object.object_ref(&())).await {
            warn!(error = with_causes(&error), reason, "event not recorded");
        }
    }
}
