//! Decides which notices are aggregated into one Event. Pure: no client and no clock.
//!
//! Notices with the same note share an Event, which counts. Of different notes [`SIMILAR`] get an Event each; further
//! ones share an aggregated one, a new one every [`WINDOW`], since notes do not change. Numbers and words are those
//! of Kubernetes' own recorder.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ObjectReference;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// The number of different notes that get events of their own.
const SIMILAR: usize = 10;
/// After this time without a repetition a notice is new again; an aggregated event is used for this time.
const WINDOW: Duration = Duration::from_mins(10);
/// The most known combinations of objects and reasons: a memory limit, which clusters never reach within a window.
const KNOWN: usize = 4096;
/// The prefix of the note of an aggregated event.
const COMBINED: &str = "(combined from similar events): ";

/// What similar notices have in common: everything but the note.
#[derive(Clone, PartialEq)]
pub(super) struct About {
    pub(super) warning: bool,
    pub(super) reason: &'static str,
    pub(super) action: &'static str,
    pub(super) object: ObjectReference,
}

/// Compares all fields, but hashes only those that differ most.
impl Eq for About {}

impl Hash for About {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.reason, &self.object.kind, &self.object.namespace, &self.object.name, &self.object.uid)
            .hash(state);
    }
}

/// An event as it was last written.
pub(super) struct Told {
    pub(super) name: String,
    pub(super) count: i32,
}

/// An event; None before it is written.
pub(super) type Series = Arc<Mutex<Option<Told>>>;

#[derive(Default)]
pub(super) struct Similar(HashMap<About, Group>);

#[derive(Default)]
struct Group {
    /// Events by note, with the time of the last notice.
    own: HashMap<String, (Instant, Series)>,
    /// The aggregated event for all other notes, with its start time.
    combined: Option<(Instant, Series)>,
}

impl Group {
    /// Forgets events without recent notices.
    fn age(&mut self, now: Instant) {
        self.own.retain(|_, (told, _)| now.saturating_duration_since(*told) < WINDOW);
        self.combined.take_if(|(began, _)| now.saturating_duration_since(*began) >= WINDOW);
    }

    fn last(&self) -> Option<Instant> {
        let own = self.own.values().map(|(told, _)| *told);
        own.chain(self.combined.iter().map(|(began, _)| *began)).max()
    }
}

impl Similar {
    /// Returns the event for `note`, and the note if the event is not written yet.
    pub(super) fn place(&mut self, about: &About, note: String, now: Instant) -> (Series, String) {
        self.0.values_mut().for_each(|group| group.age(now));
        self.0.retain(|_, group| group.last().is_some());
        if self.0.len() >= KNOWN && !self.0.contains_key(about) {
            let oldest = self.0.iter().min_by_key(|(_, group)| group.last()).map(|(about, _)| about.clone());
            oldest.and_then(|oldest| self.0.remove(&oldest));
        }
        let group = self.0.entry(about.clone()).or_default();
        if let Some((told, series)) = group.own.get_mut(&note) {
            *told = now;
            return (Arc::clone(series), note);
        }
        if group.own.len() < SIMILAR {
            let series = Series::default();
            group.own.insert(note.clone(), (now, Arc::clone(&series)));
            return (series, note);
        }
        let (_, series) = group.combined.get_or_insert_with(|| (now, Series::default()));
        (Arc::clone(series), format!("{COMBINED}{note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> About {
        let object = ObjectReference { name: Some(name.to_owned()), ..ObjectReference::default() };
        About { warning: true, reason: "Failed", action: "Try", object }
    }

    #[test]
    fn the_same_note_is_one_event_and_another_note_another() {
        let (mut similar, now) = (Similar::default(), Instant::now());
        let mut place = |name: &str, note: &str| similar.place(&about(name), note.to_owned(), now).0;
        let first = place("a", "no");
        assert!(Arc::ptr_eq(&first, &place("a", "no")));
        assert!(!Arc::ptr_eq(&first, &place("a", "yes")));
        assert!(!Arc::ptr_eq(&first, &place("b", "no")));
        assert!(Arc::ptr_eq(&first, &place("a", "no")), "it goes on after another");
    }

    #[test]
    fn notes_that_always_differ_are_told_together_after_ten() {
        let (mut similar, now) = (Similar::default(), Instant::now());
        let mut place = |number: usize, now: Instant| similar.place(&about("a"), number.to_string(), now);
        for number in 0..SIMILAR {
            assert_eq!(place(number, now).1, number.to_string());
        }
        let (combined, note) = place(10, now);
        assert_eq!(note, "(combined from similar events): 10");
        assert!(Arc::ptr_eq(&combined, &place(11, now).0));
        assert_eq!(place(3, now).1, "3", "one that is known goes on by itself");
        // The note of the aggregated event is ten minutes old, so the next notice starts a new one.
        let later = now + WINDOW - Duration::from_secs(1);
        (0..SIMILAR).for_each(|number| drop(place(number, later)));
        let (next, note) = place(12, now + WINDOW);
        assert!(!Arc::ptr_eq(&combined, &next), "{note}");
        assert_eq!(note, "(combined from similar events): 12");
    }

    #[test]
    fn what_nobody_tells_any_more_is_forgotten_and_no_more_is_known_than_may_be() {
        let (mut similar, now) = (Similar::default(), Instant::now());
        let first = similar.place(&about("a"), "no".to_owned(), now).0;
        let later = similar.place(&about("a"), "no".to_owned(), now + WINDOW).0;
        assert!(!Arc::ptr_eq(&first, &later));
        for number in 0..=KNOWN {
            similar.place(&about(&number.to_string()), "no".to_owned(), now + WINDOW + WINDOW / 2);
        }
        assert_eq!(similar.0.len(), KNOWN);
        assert!(!similar.0.contains_key(&about("a")), "the oldest went");
    }
}
