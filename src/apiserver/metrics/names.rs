//! Bounds how many names that clients choose become labels.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// How many names are counted by themselves.
const MAX_NAMES: usize = 1_000;
/// The label that all others share.
pub(super) const OTHER: &str = "(other)";

/// The names that have series of their own.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashSet<String>>);

impl Names {
    /// Returns whether `name` has series of its own; others have [`OTHER`] as their label.
    pub(super) fn has(&self, name: &str) -> bool {
        // A panic while the lock is held leaves no partial change.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(name) {
            return true;
        }
        let has_room = known.len() < MAX_NAMES;
        if has_room {
            known.insert(name.to_owned());
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_share_one() {
        let names = Names::default();
        for number in 0..MAX_NAMES {
            assert!(names.has(&number.to_string()));
        }
        assert!(!names.has("one more"));
        assert!(names.has("0"));
    }
}
