//! Bounds how many names that others choose become labels of metrics.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The label that all names beyond the bound share.
pub const OTHER: &str = "(other)";

/// The names that have series of their own.
#[derive(Debug)]
pub struct Names {
    most: usize,
    known: Mutex<HashSet<String>>,
}

impl Names {
    /// Gives the first `most` names series of their own.
    #[must_use]
    pub fn up_to(most: usize) -> Self {
        Self { most, known: Mutex::default() }
    }

    /// Returns whether `name` has series of its own; others have [`OTHER`] as their label.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        // A panic while the lock is held leaves no partial change.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(name) {
            return true;
        }
        let has_room = known.len() < self.most;
        if has_room {
            known.insert(name.to_owned());
        }
        has_room
    }

    /// Returns the label of `name`: itself, or [`OTHER`].
    ///
    /// ```
    /// let names = admit_serving::Names::up_to(1);
    /// assert_eq!(names.label("a"), "a");
    /// assert_eq!(names.label("b"), "(other)");
    /// ```
    #[must_use]
    pub fn label<'n>(&self, name: &'n str) -> &'n str {
        if self.has(name) { name } else { OTHER }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_beyond_the_bound_share_one() {
        let names = Names::up_to(100);
        for number in 0..100 {
            assert!(names.has(&number.to_string()));
        }
        assert_eq!(names.label("one more"), OTHER);
        assert_eq!(names.label("0"), "0");
    }
}
