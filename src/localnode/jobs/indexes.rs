//! Parses and formats completion indexes as in the status of a Job: `1,3-5,7`. No I/O.

use std::collections::BTreeSet;
use std::fmt;

/// Indexes as disjoint, non-adjacent ranges, the lowest first: a Job with 100,000 indexes has few ranges, and each sync
/// reads and writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(usize, usize)>);

impl Indexes {
    /// Parses the indexes in a status or a rule, ignoring invalid parts and those not below `completions`.
    pub(super) fn parse(text: &str, completions: usize) -> Self {
        let runs = text.split(',').filter_map(|run| {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
            (first < completions && first <= last).then(|| (first, last.min(completions - 1)))
        });
        Self::of_runs(runs.collect())
    }

    fn of_runs(mut runs: Vec<(usize, usize)>) -> Self {
        runs.sort_unstable();
        let mut joined: Vec<(usize, usize)> = Vec::with_capacity(runs.len());
        for (first, last) in runs {
            match joined.last_mut() {
                Some((_, end)) if first <= *end + 1 => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    /// Returns the indexes together with `more`.
    #[must_use]
    pub(super) fn with(&self, more: impl IntoIterator<Item = usize>) -> Self {
        let more: BTreeSet<usize> = more.into_iter().collect();
        Self::of_runs(self.0.iter().copied().chain(more.into_iter().map(|one| (one, one))).collect())
    }

    /// Returns the union with `other`.
    #[must_use]
    pub(super) fn and(&self, other: &Self) -> Self {
        Self::of_runs(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(super) fn has(&self, index: usize) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < index);
        self.0.get(at).is_some_and(|(first, _)| *first <= index)
    }

    pub(super) fn total(&self) -> usize {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    /// Returns how many indexes are in both.
    pub(super) fn shared(&self, other: &Self) -> usize {
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        let mut shared = 0;
        while let (Some((first, last)), Some((from, to))) = (ours.peek(), theirs.peek()) {
            shared += (last.min(to) + 1).saturating_sub(*first.max(from));
            if last < to {
                ours.next();
            } else {
                theirs.next();
            }
        }
        shared
    }

    /// Returns the first `count` indexes below `completions` that are missing.
    pub(super) fn first_missing(&self, count: usize, completions: usize) -> Vec<usize> {
        let mut missing = Vec::new();
        let mut candidate = 0;
        for (first, last) in self.0.iter().copied().chain([(completions, completions)]) {
            let until = first.min(completions);
            missing.extend((candidate..until).take(count - missing.len()));
            candidate = candidate.max(last + 1);
        }
        missing
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                // Two adjacent indexes are not written as a range.
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_in_as_few_runs_as_there_are() {
        for (given, written) in [
            ("", ""),
            ("1,3-5,7", "1,3-5,7"),
            ("0,1", "0,1"),
            ("0,1,2", "0-2"),
            ("3-5,4-8,9", "3-9"),
            ("5,x,2-1,7-99", "5,7-9"),
            ("12", ""),
        ] {
            assert_eq!(Indexes::parse(given, 10).to_string(), written, "{given}");
        }
    }

    #[test]
    fn sets_of_indexes_behave_as_sets() {
        let of = |text: &str| Indexes::parse(text, 100);
        let some = of("0,2-4,9");
        assert_eq!(
            (some.total(), some.has(3), some.has(5), some.has(9), some.has(10)),
            (5, true, false, true, false)
        );
        assert_eq!(some.with([1, 5, 9]).to_string(), "0-5,9");
        assert_eq!(some.and(&of("3-8")).to_string(), "0,2-9");
        assert_eq!((some.shared(&of("3-9")), some.shared(&of("5-8")), some.shared(&some)), (3, 0, 5));
    }

    #[test]
    fn the_first_that_are_missing_are_found_in_order() {
        let some = Indexes::parse("0,2-4,9", 10);
        assert_eq!(some.first_missing(3, 10), [1, 5, 6]);
        assert_eq!(some.first_missing(99, 10), [1, 5, 6, 7, 8]);
        assert_eq!(some.first_missing(99, 3), [1]);
        assert_eq!(some.first_missing(0, 10), [0usize; 0]);
        assert_eq!(Indexes::default().first_missing(2, 10), [0, 1]);
    }
}
