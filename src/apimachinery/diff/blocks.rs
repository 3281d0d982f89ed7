//! Compares two texts by their longest common run of lines, then recursively the parts before and after it (Ratcliff
//! and Obershelp, as in Go's `pmezard/go-difflib`, which follows Python's).

use std::collections::HashMap;
use std::ops::Range;

use super::Side;

/// In a text of at least this many lines, frequent lines do not begin a run.
const MANY_LINES: usize = 200;

/// The most pairs of equal lines that are visited, which takes a tenth of a second.
const MOST_PAIRS: usize = 50_000_000;

/// Returns all lines of both texts in order: between two runs, the old ones before the new ones. None if there are too many pairs
/// of equal lines.
pub(super) fn script<'t>(old: &[&'t str], new: &[&'t str]) -> Option<Vec<(Side, &'t str)>> {
    let mut out = Vec::with_capacity(old.len().max(new.len()));
    let (mut i, mut j) = (0_usize, 0_usize);
    let end = Run { old: old.len(), new: new.len(), length: 0 };
    for run in runs(old, new)?.into_iter().chain([end]) {
        let of = |lines: &[&'t str], range: Range<usize>, side: Side| {
            let lines = lines.get(range).unwrap_or_default();
            lines.iter().map(|line| (side, *line)).collect::<Vec<_>>()
        };
        out.extend(of(old, i..run.old, Side::Old));
        out.extend(of(new, j..run.new, Side::New));
        (i, j) = (run.old.saturating_add(run.length), run.new.saturating_add(run.length));
        out.extend(of(old, run.old..i, Side::Both));
    }
    Some(out)
}

/// A run of consecutive lines that both texts have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    old: usize,
    new: usize,
    length: usize,
}

/// A part of each text.
#[derive(Clone, Debug)]
struct Part {
    old: Range<usize>,
    new: Range<usize>,
}

/// Both texts, with lines as numbers: equal lines have equal numbers.
struct Texts {
    old: Vec<usize>,
    new: Vec<usize>,
    /// The positions in the new text of lines that may begin a run, by line number.
    places: Vec<Vec<usize>>,
    /// The length of the run that ends before a line of the new text, and the line of the old text before which it ends.
    ends: Vec<(usize, usize)>,
    /// How many more pairs may be visited.
    left: usize,
}

impl Texts {
    fn new<'t>(old: &[&'t str], new: &[&'t str]) -> Self {
        let mut numbers: HashMap<&'t str, usize> = HashMap::new();
        let mut number = |line: &'t str| -> usize {
            let next = numbers.len();
            *numbers.entry(line).or_insert(next)
        };
        let new: Vec<usize> = new.iter().map(|line| number(line)).collect();
        let old: Vec<usize> = old.iter().map(|line| number(line)).collect();
        let mut places = vec![Vec::new(); numbers.len()];
        for (at, line) in new.iter().enumerate() {
            places.get_mut(*line).into_iter().for_each(|places: &mut Vec<usize>| places.push(at));
        }
        if new.len() >= MANY_LINES {
            let most = (new.len() / 100).saturating_add(1);
            places.iter_mut().filter(|places| places.len() > most).for_each(Vec::clear);
        }
        let ends = vec![(0, usize::MAX); new.len().saturating_add(1)];
        Self { old, new, places, ends, left: MOST_PAIRS }
    }

    /// Returns the longest run of both parts, of several the first, extended in both directions by frequent lines.
    fn longest(&mut self, part: &Part) -> Option<Run> {
        let mut best = Run { old: part.old.start, new: part.new.start, length: 0 };
        // The table is reset for each part.
        self.ends.get_mut(part.new.clone())?.fill((0, usize::MAX));
        for i in part.old.clone() {
            let line = self.old.get(i).copied().unwrap_or_default();
            let places = self.places.get(line).map(Vec::as_slice).unwrap_or_default();
            let from = places.partition_point(|at| *at < part.new.start);
            let to = places.partition_point(|at| *at < part.new.end);
            self.left = self.left.checked_sub(to.saturating_sub(from))?;
            // In descending order, so that the entry for the previous line is not overwritten yet.
            for &j in places.get(from..to).unwrap_or_default().iter().rev() {
                let before = self.ends.get(j).filter(|(_, at)| *at == i).map_or(0, |(length, _)| *length);
                let length = before.saturating_add(1);
                if let Some(end) = self.ends.get_mut(j.saturating_add(1)) {
                    *end = (length, i.saturating_add(1));
                }
                let start = |end: usize| end.saturating_add(1).saturating_sub(length);
                // Of several runs that end in this line of the old text the first counts, which is visited last.
                let earlier = length == best.length && start(i) == best.old && start(j) < best.new;
                if length > best.length || earlier {
                    best = Run { old: start(i), new: start(j), length };
                }
            }
        }
        Some(self.extended(best, part))
    }

    fn extended(&self, mut run: Run, part: &Part) -> Run {
        let same = |i: Option<usize>, j: Option<usize>| {
            i.zip(j).is_some_and(|(i, j)| self.old.get(i).is_some_and(|line| self.new.get(j) == Some(line)))
        };
        while run.old > part.old.start
            && run.new > part.new.start
            && same(run.old.checked_sub(1), run.new.checked_sub(1))
        {
            run.old = run.old.saturating_sub(1);
            run.new = run.new.saturating_sub(1);
            run.length = run.length.saturating_add(1);
        }
        loop {
            let (i, j) = (run.old.saturating_add(run.length), run.new.saturating_add(run.length));
            if i >= part.old.end || j >= part.new.end || !same(Some(i), Some(j)) {
                return run;
            }
            run.length = run.length.saturating_add(1);
        }
    }
}

/// Returns the runs in order.
fn runs(old: &[&str], new: &[&str]) -> Option<Vec<Run>> {
    let mut texts = Texts::new(old, new);
    let mut left = vec![Part { old: 0..old.len(), new: 0..new.len() }];
    let mut found = Vec::new();
    while let Some(part) = left.pop() {
        texts.left = texts.left.checked_sub(part.new.len().saturating_add(part.old.len()))?;
        let run = texts.longest(&part)?;
        if run.length == 0 {
            continue;
        }
        let after = (run.old.saturating_add(run.length), run.new.saturating_add(run.length));
        let around = [
            Part { old: part.old.start..run.old, new: part.new.start..run.new },
            Part { old: after.0..part.old.end, new: after.1..part.new.end },
        ];
        left.extend(around.into_iter().filter(|part| !part.old.is_empty() && !part.new.is_empty()));
        found.push(run);
    }
    found.sort_unstable();
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::unified;

    #[test]
    fn of_runs_as_long_the_first_counts() {
        assert_eq!(unified("x\n", "x\na\nx\n"), "@@ -1 +1,3 @@\n x\n+a\n+x\n");
        assert_eq!(unified("a\nx\nb\nx\n", "x\n"), "@@ -1,4 +1 @@\n-a\n x\n-b\n-x\n");
        // A line that ends a part does not belong to it: the run of a, b and c is searched on both sides of itself.
        assert_eq!(unified("b\na\nb\nc\nb\n", "a\nb\nc\n"), "@@ -1,5 +1,3 @@\n-b\n a\n b\n c\n-b\n");
    }

    #[test]
    fn long_texts_are_compared_and_very_like_ones_are_not() {
        let lines = |of: &dyn Fn(usize) -> String, count: usize| (0..count).map(of).collect::<String>();
        let (long, last) = (lines(&|n| format!("{n}\n"), 20_000), "last\n");
        let hunk = "@@ -19998,3 +19998,4 @@\n 19997\n 19998\n 19999\n+last\n";
        assert_eq!(unified(&long, &(long.clone() + last)), hunk);
        // Each of a hundred lines occurs in each text as often as possible.
        let alike = |step: usize| lines(&|n| format!("{}\n", (n * step) % 101), 90_000);
        assert_eq!(unified(&alike(1), &alike(7)), "");
    }

    #[test]
    fn the_longest_run_is_kept_whole() {
        let item = " {\n  a\n }\n";
        let text = |items: &str| format!("[\n{items}]\nx\ny\n");
        assert_eq!(
            unified(&text(item), &text(&item.repeat(2))),
            "@@ -1,4 +1,7 @@\n [\n+ {\n+  a\n+ }\n  {\n   a\n  }\n"
        );
        assert_eq!(unified("a\n", "b\n"), "@@ -1 +1 @@\n-a\n+b\n");
        assert_eq!(unified("", "b\n"), "@@ -0,0 +1 @@\n+b\n");
    }
}
