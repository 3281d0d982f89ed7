//! Schedules retries: objects that failed, each after a backoff of its own, and objects that their operator may still
//! report. Pure.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::EVERY;
use crate::controllers::kit::wait::GrowingWait;

/// The first wait after a failure; doubled each time.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// The pending retries by name.
#[derive(Debug, Default)]
pub(super) struct Retries(BTreeMap<String, Due>);

/// When to try again, and why.
#[derive(Debug)]
struct Due {
    wait: GrowingWait,
    at: Instant,
    /// The last error; empty if it has not failed.
    error: String,
}

impl Due {
    fn at(at: Instant) -> Self {
        Self { wait: GrowingWait::new(FIRST_WAIT, EVERY), at, error: String::new() }
    }
}

impl Retries {
    /// Whether `name` must not be tried yet.
    pub(super) fn is_waited_for(&self, name: &str, now: Instant) -> bool {
        self.0.get(name).is_some_and(|due| due.at > now)
    }

    /// Schedules `name` for `at`, without a failure.
    pub(super) fn wait(&mut self, name: &str, at: Instant) {
        self.0.insert(name.to_owned(), Due::at(at));
    }

    /// Schedules a retry with a growing wait; returns whether the error differs from the last one.
    pub(super) fn failed(&mut self, name: &str, error: &str, now: Instant) -> bool {
        let due = self.0.entry(name.to_owned()).or_insert_with(|| Due::at(now));
        due.at = now + due.wait.grow();
        let is_new = due.error != error;
        error.clone_into(&mut due.error);
        is_new
    }

    pub(super) fn forget(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Drops all names for which `wanted` is false.
    pub(super) fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        self.0.retain(|name, _| wanted(name));
    }

    /// Returns when the next retry is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().map(|due| due.at).min()
    }

    /// Returns the names that failed, with their last errors.
    pub(super) fn failing(&self) -> impl Iterator<Item = (&str, &str)> {
        let failing = self.0.iter().filter(|(_, due)| !due.error.is_empty());
        failing.map(|(name, due)| (name.as_str(), due.error.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_again_after_ever_longer_waits_of_at_most_a_minute() {
        let (mut retries, mut now) = (Retries::default(), Instant::now());
        assert!(!retries.is_waited_for("dns", now));
        for bound in [1, 2, 4, 8, 16, 32, 60, 60] {
            retries.failed("dns", "refused", now);
            let wait = retries.next().unwrap() - now;
            assert!(
                wait >= Duration::from_millis(bound * 500) && wait <= Duration::from_secs(bound),
                "{wait:?}"
            );
            assert!(retries.is_waited_for("dns", now) && !retries.is_waited_for("dns", now + wait));
            now += wait;
        }
        retries.forget("dns");
        assert_eq!(retries.next(), None);
    }

    #[test]
    fn a_failure_is_new_when_it_is_another_one() {
        let (mut retries, now) = (Retries::default(), Instant::now());
        let told = ["refused", "refused", "gone"].map(|error| retries.failed("dns", error, now));
        assert_eq!(told, [true, false, true]);
        retries.wait("young", now);
        assert_eq!(retries.failing().collect::<Vec<_>>(), [("dns", "gone")]);
        retries.keep(|name| name == "young");
        assert_eq!((retries.failing().count(), retries.next()), (0, Some(now)));
    }
}
