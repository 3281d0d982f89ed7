//! Provides the time of day for everything in this package: ages in tables, times in objects, the lifetime of tokens.
//!
//! By default it is the machine's clock; a server that replays recordings uses another.
//! It measures no durations, and TLS does not use it to check certificates.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};

/// A clock. Clones are the same clock.
///
/// ```
/// use admit_apiserver::Clock;
///
/// let clock = Clock::starting_at("2026-11-21T12:00:00Z".parse().unwrap());
/// assert!(clock.now().to_string().starts_with("2026-11-21T12:0"));
/// let standing = Clock::new(|| jiff::Timestamp::UNIX_EPOCH);
/// assert_eq!(standing.now().as_second(), 0);
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// Creates a clock that returns the result of `now`.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Creates a clock that starts at `start` and runs on from there, whatever happens to the machine's clock.
    #[must_use]
    pub fn starting_at(start: Timestamp) -> Self {
        let begun = Instant::now();
        Self::new(move || {
            let passed = SignedDuration::try_from(begun.elapsed()).unwrap_or(SignedDuration::MAX);
            start.saturating_add(passed).unwrap_or(Timestamp::MAX)
        })
    }

    /// Returns the current time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }

    /// Returns the current time as objects hold it: UTC, whole seconds.
    #[must_use]
    pub(crate) fn stamp(&self) -> String {
        crate::object::seconds(self.now())
    }
}

impl Default for Clock {
    /// Returns the machine's clock.
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
