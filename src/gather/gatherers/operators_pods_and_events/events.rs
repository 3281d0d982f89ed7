//! Gathers the events of a namespace since the last gathering, each reduced to its important fields.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use admit_apimachinery::pointer;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::super::super::failure::Failure;
use super::super::super::gatherer::Context;
use super::super::super::lister::{self, Resource};
use super::super::tell;

const EVENTS: Resource = Resource { group: "", version: "v1", kind: "Event", plural: "events" };
/// The most events of a namespace, the newest ones: an event takes up to a kilobyte.
const MAX_EVENTS: usize = 5_000;

pub(super) async fn keep(context: &Context, namespace: &str) -> Result<(), Failure> {
    let since = context.now.checked_sub(context.interval).unwrap_or(Timestamp::MIN);
    let mut listing = lister::list_in(context, namespace, EVENTS);
    let mut newest = Newest::default();
    while let Some(event) = listing.next().await? {
        if let Some(at) = last(&event).filter(|at| *at >= since) {
            newest.add(at, &compact(&event, at));
        }
    }
    tell(context, &listing);
    if newest.dropped > 0 {
        context.recorder.warn(format!("{namespace}: of its events the newest {MAX_EVENTS} were kept"));
    }
    let items = newest.into_items();
    if items.is_empty() {
        return Ok(());
    }
    context.json(format!("events/{namespace}"), json!({"items": items})).await
}

/// Returns when the event happened last. Recurring events have that in their series.
fn last(event: &Value) -> Option<Timestamp> {
    let times = ["/lastTimestamp", "/series/lastObservedTime", "/eventTime", "/metadata/creationTimestamp"];
    times.iter().find_map(|pointer| event.pointer(pointer)?.as_str()?.parse().ok())
}

fn compact(event: &Value, at: Timestamp) -> Value {
    let text = |pointer: &str| pointer::text(event, pointer);
    json!({
        "namespace": text("/metadata/namespace"),
        "lastTimestamp": at,
        "reason": text("/reason"),
        "message": text("/message"),
        "type": text("/type"),
    })
}

/// A bounded set of the newest events, with quick access to the oldest.
#[derive(Default)]
struct Newest {
    events: BinaryHeap<Reverse<(Timestamp, u64, String)>>,
    added: u64,
    dropped: u64,
}

impl Newest {
    fn add(&mut self, at: Timestamp, event: &Value) {
        self.added += 1;
        self.events.push(Reverse((at, self.added, event.to_string())));
        if self.events.len() > MAX_EVENTS {
            self.events.pop();
            self.dropped += 1;
        }
    }

    /// Returns the events, the oldest first.
    fn into_items(self) -> Vec<Value> {
        let mut events: Vec<_> = self.events.into_iter().map(|Reverse(event)| event).collect();
        events.sort_unstable();
        events.into_iter().filter_map(|(_, _, text)| serde_json::from_str(&text).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_a_last_time_has_that_of_its_series() {
        let at = |event: &Value| last(event).map(|at| at.to_string());
        let event = json!({
            "lastTimestamp": null, "series": {"lastObservedTime": "2026-11-22T10:00:00.5Z"},
            "eventTime": "2026-11-22T09:00:00Z",
        });
        assert_eq!(at(&event).as_deref(), Some("2026-11-22T10:00:00.5Z"));
        assert_eq!(
            at(&json!({"eventTime": "2026-11-22T09:00:00Z"})).as_deref(),
            Some("2026-11-22T09:00:00Z")
        );
        assert_eq!(at(&json!({})), None);
    }

    #[test]
    fn the_newest_are_kept_in_their_order() {
        let mut newest = Newest::default();
        let count = i64::try_from(MAX_EVENTS).unwrap() + 2;
        for n in (0..count).rev() {
            newest.add(Timestamp::from_second(n).unwrap(), &json!(n));
        }
        assert_eq!(newest.dropped, 2);
        let items = newest.into_items();
        assert_eq!(
            (items.len(), &items[0], items.last().unwrap()),
            (MAX_EVENTS, &json!(2), &json!(count - 1))
        );
    }
}
