//! Limits the number and the size of errors and warnings that are reported, and counts the rest; clients can cause any number.

use std::cell::Cell;
use std::ops::Deref;

use crate::field_error::{FieldError, FieldErrorKind};

/// The most findings of a kind (errors, warnings) that are reported about one object. Recorded responses have up to some
/// dozens, and nobody reads more than a screen; Go's strict JSON decoder stops at 100.
pub const MAX_FINDINGS: usize = 1_000;

/// The number of bytes of findings after which none is added. A finding may contain a whole value, so the one that reaches the
/// limit may be as long as the request; recorded responses have a few hundred thousand at most, and etcd stores no object above
/// 1.5 MiB.
pub const MAX_FINDING_BYTES: usize = 1 << 20;

/// The remaining room, shared by several lists of findings.
#[derive(Clone, Debug, Default)]
pub struct Room {
    told: Cell<usize>,
    bytes: Cell<usize>,
}

impl Room {
    /// Whether no further finding is added.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.told.get() >= MAX_FINDINGS || self.bytes.get() >= MAX_FINDING_BYTES
    }

    /// Counts a finding of `bytes` bytes.
    pub fn take(&self, bytes: usize) {
        self.told.set(self.told.get().saturating_add(1));
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// Removes a finding from the count.
    pub fn give_back(&self, bytes: usize) {
        self.told.set(self.told.get().saturating_sub(1));
        self.bytes.set(self.bytes.get().saturating_sub(bytes));
    }
}

/// Returns `and 3 more`, the end of an incomplete list of findings.
#[must_use]
pub fn and_more(count: usize) -> String {
    format!("and {count} more")
}

/// A finding: an error, or the cause of a `Status`.
pub trait Finding: Sized {
    /// Returns the approximate number of bytes when it is shown.
    fn size(&self) -> usize;

    /// Creates a finding that stands for `count` findings that are left out.
    fn and_more(count: usize) -> Self;

    /// Returns how many left-out findings it stands for; None for a real finding.
    fn more(&self) -> Option<usize>;
}

/// A list of findings: those that there is room for, and the number of the others. Dereferences to the former.
#[derive(Clone, Debug)]
pub struct Findings<T> {
    told: Vec<T>,
    room: Room,
    more: usize,
}

/// A list of field errors.
pub type FieldErrors = Findings<FieldError>;

impl<T: Finding> Findings<T> {
    /// Adds an error; if there is no room, it is not even created.
    pub fn add(&mut self, error: impl FnOnce() -> T) {
        if self.room.is_full() {
            self.more = self.more.saturating_add(1);
        } else {
            self.push(error());
        }
    }

    /// Whether another error would only be counted.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.room.is_full()
    }

    /// Counts an error that is left out.
    pub const fn count_one(&mut self) {
        self.more = self.more.saturating_add(1);
    }

    /// Adds an existing error.
    pub fn push(&mut self, error: T) {
        if let Some(more) = error.more() {
            self.more = self.more.saturating_add(more);
        } else if self.room.is_full() {
            self.more = self.more.saturating_add(1);
        } else {
            self.room.take(error.size());
            self.told.push(error);
        }
    }

    /// Whether no error was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.told.is_empty() && self.more == 0
    }

    /// Returns how many errors were added.
    #[must_use]
    pub fn count(&self) -> usize {
        self.told.len().saturating_add(self.more)
    }

    /// Returns the errors; if some were left out, an additional one says how many.
    #[must_use]
    pub fn into_vec(mut self) -> Vec<T> {
        if self.more > 0 {
            self.told.push(T::and_more(self.more));
        }
        self.told
    }
}

impl FieldErrors {
    /// Whether an error prevents the evaluation of rules, or may do so: an error that was left out may be of any kind.
    #[must_use]
    pub fn block_rules(&self) -> bool {
        self.more > 0 || self.told.iter().any(|error| error.kind.blocks_rules())
    }

    /// Sorts the errors by their texts.
    pub fn sort(&mut self) {
        self.told.sort_by_cached_key(ToString::to_string);
    }
}

impl<T> Default for Findings<T> {
    fn default() -> Self {
        Self { told: Vec::new(), room: Room::default(), more: 0 }
    }
}

impl<T> Deref for Findings<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.told
    }
}

impl<T: Finding> From<T> for Findings<T> {
    fn from(finding: T) -> Self {
        [finding].into_iter().collect()
    }
}

impl<T: Finding> From<Vec<T>> for Findings<T> {
    fn from(findings: Vec<T>) -> Self {
        findings.into_iter().collect()
    }
}

impl<T: Finding> Extend<T> for Findings<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, findings: I) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }
}

impl<T: Finding> FromIterator<T> for Findings<T> {
    fn from_iter<I: IntoIterator<Item = T>>(findings: I) -> Self {
        let mut all = Self::default();
        all.extend(findings);
        all
    }
}

impl<T: Finding> IntoIterator for Findings<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.into_vec().into_iter()
    }
}

impl Finding for FieldError {
    fn size(&self) -> usize {
        let Self { kind: _, field, bad_value, detail } = self;
        field.len().saturating_add(bad_value.size()).saturating_add(detail.len())
    }

    fn and_more(count: usize) -> Self {
        let number = i64::try_from(count).unwrap_or(i64::MAX);
        Self::new(FieldErrorKind::More, "", number, and_more(count))
    }

    fn more(&self) -> Option<usize> {
        if self.kind != FieldErrorKind::More {
            return None;
        }
        let count = self.bad_value.as_json().and_then(serde_json::Value::as_u64).unwrap_or(1);
        Some(usize::try_from(count).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_told_is_counted_and_not_made() {
        let mut made = 0;
        let mut errors = FieldErrors::default();
        for at in 0..60_000 {
            errors.add(|| {
                made += 1;
                FieldError::required(format!("a[{at}]"), "")
            });
        }
        assert_eq!((made, errors.count()), (MAX_FINDINGS, 60_000));
        let mut all = FieldErrors::default();
        all.extend(errors);
        all.push(FieldError::required("b", ""));
        let all = all.into_vec();
        assert_eq!(all.len(), MAX_FINDINGS + 1);
        assert_eq!(all.last().map(ToString::to_string).as_deref(), Some("and 59001 more"));
    }

    #[test]
    fn one_long_error_is_told_and_those_after_it_are_not() {
        let long = "x".repeat(3 << 20);
        let mut errors = FieldErrors::default();
        for field in ["a", "b", "c"] {
            errors.add(|| FieldError::invalid(field, long.as_str(), "too long"));
        }
        let errors = errors.into_vec();
        assert_eq!(errors.len(), 2);
        assert_eq!(errors[1].to_string(), "and 2 more");
    }
}
