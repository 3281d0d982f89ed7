//! WATCH: the changes of a selection, from a revision on, with bookmarks.

use std::sync::Arc;

use admit_policy::crd::ConversionError;
use serde_json::{Value, json};

use super::list::{everything, parse_version};
use super::options::ListOptions;
use super::selector::Selector;
use super::{Call, Registry, views};
use crate::object;
use crate::status::Refusal;
use crate::store::{Event, EventKind, Revision, StoreError, Subscription};

/// One event of a watch, as the caller sees the object.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub kind: &'static str,
    pub object: Value,
}

/// An open watch.
#[derive(Debug)]
pub struct Watching {
    call: Call,
    selector: Selector,
    subscription: Option<Subscription>,
    initial: Vec<WatchEvent>,
    store_revision: Revision,
    /// The next bookmark tells that the state at the beginning is complete.
    ends_initial: bool,
}

impl Registry {
    /// # Errors
    /// 400 for selectors that cannot be read, 500 for a resourceVersion that is no number (as upstream answers).
    pub fn watch(&self, call: &Call, options: &ListOptions) -> Result<Watching, Refusal> {
        let selector = Selector::parse(&call.info, &options.label_selector, &options.field_selector)?;
        let asked = parse_version(&options.resource_version).map_err(Refusal::unclassified)?;
        let wants_state = match options.send_initial_events {
            Some(wanted) => wanted,
            None => asked == 0,
        };
        let mut watching = Watching {
            call: call.clone(),
            selector,
            subscription: None,
            initial: Vec::new(),
            store_revision: self.store.revision(),
            ends_initial: wants_state && options.send_initial_events.is_none(),
        };
        let mut from = if asked == 0 { self.store.revision() } else { asked };
        if wants_state {
            let (revision, objects) = everything(self, call)?;
            from = revision;
            let added = objects.iter().filter_map(|object| watching.added(object).transpose());
            watching.initial = added.collect::<Result<_, _>>()?;
            if options.send_initial_events == Some(true) && options.allow_bookmarks {
                watching.initial.push(watching.bookmark_at(revision, true));
            }
        }
        match self.store.watch(&call.info.storage_key, from) {
            Ok(subscription) => watching.subscription = Some(subscription),
            Err(error) => watching.initial.push(gone(from, &error)),
        }
        Ok(watching)
    }
}

impl Watching {
    /// What stands before the first change.
    pub fn initial(&mut self) -> Vec<WatchEvent> {
        std::mem::take(&mut self.initial)
    }

    /// The next changes; None when the watch is at its end (the last event said why).
    pub async fn next(&mut self) -> Option<Vec<WatchEvent>> {
        loop {
            let subscription = self.subscription.as_mut()?;
            match subscription.drain() {
                Ok(events) => {
                    let seen = self.all_seen(&events);
                    if !seen.is_empty() {
                        return Some(seen);
                    }
                }
                Err(error) => {
                    let from = subscription.seen();
                    self.subscription = None;
                    return Some(vec![gone(from, &error)]);
                }
            }
            self.subscription.as_mut()?.changed().await;
        }
    }

    /// Everything up to the bookmark's resourceVersion was sent.
    pub fn bookmark(&mut self) -> WatchEvent {
        let revision = self.subscription.as_ref().map_or(self.store_revision, Subscription::seen);
        let ends_initial = std::mem::take(&mut self.ends_initial);
        self.bookmark_at(revision, ends_initial)
    }

    fn bookmark_at(&self, revision: Revision, initial_end: bool) -> WatchEvent {
        let info = &self.call.info;
        let mut meta = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            meta["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = json!({"kind": info.kind, "apiVersion": info.api_version(), "metadata": meta});
        WatchEvent { kind: "BOOKMARK", object }
    }

    /// What cannot be shown ends the watch.
    fn all_seen(&mut self, events: &[Arc<Event>]) -> Vec<WatchEvent> {
        let mut all = Vec::with_capacity(events.len());
        for event in events {
            match self.seen(event) {
                Ok(seen) => all.extend(seen),
                Err(error) => {
                    self.subscription = None;
                    all.push(WatchEvent { kind: "ERROR", object: Refusal::from(error).to_value() });
                    break;
                }
            }
        }
        all
    }

    fn added(&self, object: &Arc<Value>) -> Result<Option<WatchEvent>, ConversionError> {
        let view = views::outgoing(&self.call, object)?;
        let is_selected = self.selector.matches(&view);
        Ok(is_selected.then(|| WatchEvent { kind: "ADDED", object: view.into_owned() }))
    }

    /// An object that enters the selection is added, one that leaves it deleted.
    fn seen(&self, event: &Event) -> Result<Option<WatchEvent>, ConversionError> {
        if !self.call.namespace.is_empty() && event.namespace != self.call.namespace {
            return Ok(None);
        }
        let view = views::outgoing(&self.call, &event.object)?;
        let before = event.previous.as_deref().map(|previous| views::outgoing(&self.call, previous));
        let before = before.transpose()?;
        let matches_now = event.kind != EventKind::Deleted && self.selector.matches(&view);
        let matched = before.as_ref().is_some_and(|before| self.selector.matches(before));
        let kind = match (matched, matches_now) {
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
            (false, false) => return Ok(None),
        };
        let mut object = view.into_owned();
        if kind == "DELETED"
            && let Some(before) = before
            && event.kind == EventKind::Modified
        {
            // What left the selection is shown as it was, at the revision of the change.
            object = before.into_owned();
            object::set_meta(&mut object, "resourceVersion", Some(event.revision.to_string().into()));
        }
        Ok(Some(WatchEvent { kind, object }))
    }
}

fn gone(from: Revision, error: &StoreError) -> WatchEvent {
    let refusal = match error {
        StoreError::Compacted { compacted } => {
            Refusal::expired(format!("too old resource version: {from} ({compacted})"))
        }
        other => super::store_failed(other),
    };
    WatchEvent { kind: "ERROR", object: refusal.to_value() }
}
