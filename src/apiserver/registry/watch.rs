//! Implements WATCH: the changes of a selection from a revision on, with bookmarks.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;

use admit_policy::crd::ConversionError;
use serde_json::{Value, json};

use super::list::parse_version;
use super::selector::Selector;
use super::{Registry, storage_version, stored_text};
use crate::call::{Call, ListOptions};
use crate::conversion::batch;
use crate::object;
use crate::status::Refusal;
use crate::store::{Event, EventKind, Packed, Range, Revision, StoreError, Subscription, estimate};

/// One event of a watch, with the object in the version of the request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WatchEvent {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub kind: &'static str,
    pub object: Value,
}

/// An event of a watch, possibly with its object still as text.
#[derive(Debug)]
pub(crate) enum Told {
    Made(WatchEvent),
    /// The kind of the event, and the object, whose stored text is the JSON that the caller sees.
    Stored(&'static str, Arc<Packed>),
}

/// The number of objects or changes that are taken from the store at a time: what a watch holds while its client does not read.
const PAGE: usize = 500;

/// An open watch. It holds a position in the store, and at most a page of events.
#[derive(Debug)]
pub(crate) struct Watching {
    call: Call,
    selector: Selector,
    /// The beginning of stored texts that are shown unchanged; None if none are.
    beginning: Option<String>,
    /// The subscription to the store; None when the watch has ended.
    subscription: Option<Subscription>,
    /// The rest of the initial state.
    state: Option<State>,
    /// The events to send next.
    due: VecDeque<Due>,
    store_revision: Revision,
    /// Whether a bookmark marks the end of the initial state.
    tells_end: bool,
}

/// The part of the initial state, at one revision, that was not read yet.
#[derive(Debug)]
struct State {
    at: Revision,
    /// The namespace and name of the last object that was read.
    after: Option<(String, String)>,
    /// Whether a bookmark marks its end.
    marked: bool,
}

#[derive(Debug)]
enum Due {
    Object(Arc<Packed>),
    Change(Arc<Event>),
    Made(WatchEvent),
    /// Examined, and not selected.
    Passed,
}

impl Registry {
    /// # Errors
    /// 400 for invalid selectors, 500 for a resourceVersion that is no number (as upstream answers).
    pub(crate) async fn watch(&self, call: &Call, options: &ListOptions) -> Result<Watching, Refusal> {
        let mut watching = self.begin_watch(call, options)?;
        // A conversion error in the first page of the state refuses the request instead of ending the stream.
        if watching.needs_conversion() && matches!(watching.due.front(), Some(Due::Object(_))) {
            watching.converted(self).await?;
        }
        Ok(watching)
    }

    fn begin_watch(&self, call: &Call, options: &ListOptions) -> Result<Watching, Refusal> {
        let selector = Selector::parse(&call.info, &options.label_selector, &options.field_selector)?;
        let asked = parse_version(&options.resource_version)
            .map_err(|error| Refusal::unclassified(error.to_string()))?;
        let wants_state = match options.send_initial_events {
            Some(wanted) => wanted,
            None => asked == 0,
        };
        let newest = self.store.revision();
        let from = if asked == 0 || wants_state { newest } else { asked };
        // A watch without a start revision requests the state.
        let marked = wants_state && options.allow_bookmarks;
        let mut watching = Watching {
            call: call.clone(),
            selector,
            beginning: storage_version::is_read_as_stored(call).then(|| stored_text::beginning(&call.info)),
            subscription: None,
            state: wants_state.then_some(State { at: from, after: None, marked }),
            due: VecDeque::new(),
            store_revision: newest,
            tells_end: marked,
        };
        if wants_state && asked > newest {
            let refusal = Refusal::too_large_version(asked, newest);
            watching.end(WatchEvent { kind: "ERROR", object: refusal.to_value() });
            return Ok(watching);
        }
        match self.store.watch(&call.info.storage_key, from) {
            Ok(subscription) => watching.subscription = Some(subscription),
            Err(error) => watching.end(gone(from, &error)),
        }
        watching.read_on();
        // The same for conversions without a webhook.
        for due in watching.due.iter().filter(|_| call.custom.is_some() && call.converter().is_none()) {
            if let Due::Object(object) = due {
                storage_version::outgoing(call, &object.values())?;
            }
        }
        Ok(watching)
    }
}

impl Watching {
    /// Returns the approximate size of what [`Self::take_next`] would return now; None if there is no event
    /// yet.
    pub(crate) fn due(&mut self) -> Option<usize> {
        if self.due.is_empty() {
            self.read_on();
        }
        self.due.front().map(|due| match due {
            Due::Object(object) => object.weight(),
            Due::Change(event) => event.object.weight(),
            Due::Made(event) => estimate(&event.object),
            Due::Passed => 0,
        })
    }

    /// Like [`Self::take_next`], with the stored text instead of the object where they are equal.
    pub(crate) fn take_text(&mut self) -> Option<Told> {
        let Some(beginning) = &self.beginning else { return self.take_next().map(Told::Made) };
        let stored = match self.due.front()? {
            Due::Object(object) => {
                Some((self.selector.matches_stored(object).then_some("ADDED"), Arc::clone(object)))
            }
            Due::Change(event) => self.kind_of_stored(event).map(|kind| (kind, Arc::clone(&event.object))),
            Due::Made(_) | Due::Passed => None,
        };
        let is_so = |object: &Packed| object.text().starts_with(beginning.as_bytes());
        match stored.filter(|(_, object)| is_so(object)) {
            Some((kind, object)) => {
                self.due.pop_front();
                kind.map(|kind| Told::Stored(kind, object))
            }
            None => self.take_next().map(Told::Made),
        }
    }

    /// Returns the event's kind, Some(None) if it is not selected; None if the object is not shown as it is stored.
    fn kind_of_stored(&self, event: &Event) -> Option<Option<&'static str>> {
        if self.is_elsewhere(event) {
            return Some(None);
        }
        let selects = !self.selector.is_empty();
        let before = event.previous.as_ref().filter(|_| selects);
        let matched = before.map(|before| self.selector.matches_stored(before));
        let now = event.kind != EventKind::Deleted && self.selector.matches_stored(&event.object);
        let kind = self.kind(event, matched, now);
        (kind != Some("DELETED") || !leaves(event, before.is_some())).then_some(kind)
    }

    /// Takes the next event, with the object as the request sees it; None if it is not selected.
    pub(crate) fn take_next(&mut self) -> Option<WatchEvent> {
        let seen = match self.due.pop_front()? {
            Due::Object(object) => self.added(&object),
            Due::Change(event) => self.seen(&event),
            Due::Made(event) => return Some(event),
            Due::Passed => return None,
        };
        // A conversion error ends the watch.
        seen.unwrap_or_else(|error| {
            self.end(WatchEvent { kind: "ERROR", object: Refusal::from(error).to_value() });
            None
        })
    }

    /// Returns whether the next event needs a conversion by webhook first, which [`Self::convert`] does.
    #[must_use]
    pub(crate) fn needs_conversion(&self) -> bool {
        self.call.converter().is_some() && matches!(self.due.front(), Some(Due::Object(_) | Due::Change(_)))
    }

    /// Converts the next events by webhook, as many as fit into one call. An object that cannot be converted ends the
    /// watch.
    pub(crate) async fn convert(&mut self, registry: &Registry) {
        if let Err(refusal) = self.converted(registry).await {
            self.end(WatchEvent { kind: "ERROR", object: refusal.to_value() });
        }
    }

    /// Converts the next events. They stay queued until all are converted, as the future may be dropped meanwhile.
    async fn converted(&mut self, registry: &Registry) -> Result<(), Refusal> {
        let selects = !self.selector.is_empty();
        let stored: Vec<[Option<&Arc<Packed>>; 2]> = self
            .due
            .iter()
            .map_while(|due| match due {
                Due::Object(object) => Some([Some(object), None]),
                Due::Change(event) if self.is_elsewhere(event) => Some([None, None]),
                Due::Change(event) => {
                    Some([Some(&event.object), event.previous.as_ref().filter(|_| selects)])
                }
                Due::Made(_) | Due::Passed => None,
            })
            .collect();
        let length = |pair: &[Option<&Arc<Packed>>; 2]| {
            pair.iter().flatten().map(|object| object.text().len()).sum::<usize>()
        };
        let (count, bytes) = batch(stored.iter().map(length));
        // Objects are unpacked only in turn: watches that wait for a webhook hold only what the store holds.
        let _turn = match self.call.converter() {
            Some(webhook) => webhook.turn(bytes).await,
            None => None,
        };
        let objects = stored.iter().take(count).flatten().flatten().map(|object| object.values()).collect();
        let mut views = registry.all_shown(&self.call, objects).await?.into_iter();
        for place in 0..count {
            let Some(due) = self.due.get(place) else { break };
            let mut view = || views.next().map(Arc::unwrap_or_clone);
            let event = match due {
                Due::Object(_) => view().and_then(|view| self.entered(view)),
                Due::Change(event) if self.is_elsewhere(event) => None,
                Due::Change(event) => {
                    let object = view();
                    let before = event.previous.as_ref().filter(|_| selects).and_then(|_| view());
                    object.and_then(|object| self.changed_to(event, object, before))
                }
                Due::Made(_) | Due::Passed => None,
            };
            if let Some(due) = self.due.get_mut(place) {
                *due = event.map_or(Due::Passed, Due::Made);
            }
        }
        Ok(())
    }

    /// Returns whether a bookmark marks the end of the initial state.
    #[must_use]
    pub(crate) fn tells_end(&self) -> bool {
        self.tells_end
    }

    /// Returns whether the watch has ended; the last event said why.
    #[must_use]
    pub(crate) fn is_over(&self) -> bool {
        self.subscription.is_none() && self.due.is_empty()
    }

    /// Waits until there may be something new.
    pub(crate) async fn changed(&mut self) {
        match &mut self.subscription {
            Some(subscription) => subscription.changed().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the watch with this event, and drops pending ones.
    fn end(&mut self, event: WatchEvent) {
        self.subscription = None;
        self.state = None;
        self.due = [Due::Made(event)].into();
    }

    /// Takes the next page of the state, or of the changes.
    fn read_on(&mut self) {
        let Some(subscription) = &mut self.subscription else { return };
        let Some(state) = &mut self.state else {
            match subscription.drain_some(PAGE) {
                Ok(events) => self.due.extend(events.into_iter().map(Due::Change)),
                Err(error) => {
                    let from = subscription.seen();
                    self.end(gone(from, &error));
                }
            }
            return;
        };
        let namespace = Some(self.call.namespace.as_str()).filter(|namespace| !namespace.is_empty());
        let after = state.after.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        let (at, marked) = (state.at, state.marked);
        match subscription.page(Range { namespace, after, at: Some(at) }, PAGE) {
            Ok(page) => {
                let last = page.items.last().filter(|_| page.remaining > 0);
                match last.map(|last| last.object.head()) {
                    Some(last) => {
                        let place = (object::namespace(&last).to_owned(), object::name(&last).to_owned());
                        state.after = Some(place);
                    }
                    None => self.state = None,
                }
                self.due.extend(page.items.into_iter().map(|kept| Due::Object(kept.object)));
                if self.state.is_none() && marked {
                    let complete = self.bookmark_at(at, true);
                    self.due.push_back(Due::Made(complete));
                }
            }
            Err(error) => self.end(gone(at, &error)),
        }
    }

    /// Returns a bookmark; everything up to its resourceVersion must have been sent.
    pub(crate) fn bookmark(&mut self) -> WatchEvent {
        let revision = self.subscription.as_ref().map_or(self.store_revision, Subscription::seen);
        self.bookmark_at(revision, false)
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

    fn added(&self, object: &Packed) -> Result<Option<WatchEvent>, ConversionError> {
        Ok(self.entered(self.view(object)?))
    }

    fn entered(&self, object: Value) -> Option<WatchEvent> {
        self.selector.matches(&object).then_some(WatchEvent { kind: "ADDED", object })
    }

    fn is_elsewhere(&self, event: &Event) -> bool {
        !self.call.namespace.is_empty() && event.namespace != self.call.namespace
    }

    fn view(&self, object: &Packed) -> Result<Value, ConversionError> {
        let values = object.values();
        let otherwise = match storage_version::outgoing(&self.call, &values)? {
            Cow::Owned(view) => Some(view),
            Cow::Borrowed(_) => None,
        };
        Ok(otherwise.unwrap_or_else(|| Arc::unwrap_or_clone(values)))
    }

    /// Converts a change to an event: an object that enters the selection is added, one that leaves it deleted.
    fn seen(&self, event: &Event) -> Result<Option<WatchEvent>, ConversionError> {
        if self.is_elsewhere(event) {
            return Ok(None);
        }
        let object = self.view(&event.object)?;
        // Without a selector the previous object is not needed.
        let selects = !self.selector.is_empty();
        let before = event.previous.as_ref().filter(|_| selects).map(|previous| self.view(previous));
        Ok(self.changed_to(event, object, before.transpose()?))
    }

    /// Returns the event's kind by whether the object was selected before, if that was checked, and is now.
    fn kind(&self, event: &Event, before: Option<bool>, now: bool) -> Option<&'static str> {
        let matched = before.unwrap_or(self.selector.is_empty() && event.previous.is_some());
        match (matched, now) {
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
            (false, false) => None,
        }
    }

    /// Builds the event for `object`, which was `before` if that matters.
    fn changed_to(&self, event: &Event, mut object: Value, before: Option<Value>) -> Option<WatchEvent> {
        let matches_now = event.kind != EventKind::Deleted && self.selector.matches(&object);
        let matched = before.as_ref().map(|before| self.selector.matches(before));
        let kind = self.kind(event, matched, matches_now)?;
        if kind == "DELETED"
            && leaves(event, before.is_some())
            && let Some(before) = before
        {
            // An object that left the selection is shown as it was, at the revision of the change.
            object = before;
            object::set_meta(&mut object, "resourceVersion", Some(event.revision.to_string().into()));
        }
        Some(WatchEvent { kind, object })
    }
}

/// Returns whether an object that is deleted for the watch still exists: it is then shown as it was `before`, if that is known.
fn leaves(event: &Event, before: bool) -> bool {
    before && event.kind == EventKind::Modified
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
