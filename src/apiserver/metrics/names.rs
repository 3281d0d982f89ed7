//! Bounds how many names that clients choose become labels.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// How many names are counted by themselves.
const MAX_NAMES: usize = 1_000;
/// The name that all others share.
const OTHER: &str = "(other)";

/// The names that have series of their own.
#[derive(Debug, Default)]
pub(super) struct Names(Mutex<HashSet<String>>);

impl Names {
    /// Returns `name`, or the shared one if there are too many others.
    pub(super) fn known(&self, name: &str) -> String {
        // A panic while the lock is held leaves no partial change.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(name) {
            return name.to_owned();
        }
        if known.len() >= MAX_NAMES {
            return OTHER.to_owned();
        }
        known.insert(name.to_owned());
        name.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_share_one() {
        let names = Names::default();
        for number in 0..MAX_NAMES {
            assert_eq!(names.known(&number.to_string()), number.to_string());
        }
        assert_eq!(names.known("one more"), OTHER);
        assert_eq!(names.known("0"), "0");
    }
}
