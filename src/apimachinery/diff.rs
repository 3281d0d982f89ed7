//! Compares two texts line by line.

mod blocks;

use std::collections::HashMap;
use std::ops::Range;

/// The number of unchanged lines around a difference.
pub const CONTEXT: usize = 3;

/// The most lines of a text that is compared: longer differences would not be read by anybody.
pub const MOST_LINES: usize = 100_000;

/// Which of two texts contain a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Both texts.
    Both,
    /// Only the old text.
    Old,
    /// Only the new text.
    New,
}

impl Side {
    /// Returns the prefix of such a line.
    #[must_use]
    pub const fn mark(self) -> char {
        match self {
            Self::Both => ' ',
            Self::Old => '-',
            Self::New => '+',
        }
    }
}

/// Returns the unified diff without file names: hunks, each with its position, as Go's difflib formats them, which upstream prints.
/// Empty for texts of more than [`MOST_LINES`], and for those with too many equal lines.
///
/// ```
/// # use admit_apimachinery::diff::unified;
/// assert_eq!(unified("a\n", "a\nb\n"), "@@ -1 +1,2 @@\n a\n+b\n");
/// ```
#[must_use]
pub fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() > MOST_LINES || new.len() > MOST_LINES {
        return String::new();
    }
    let Some(script) = blocks::script(&old, &new) else { return String::new() };
    let changed = script.iter().enumerate().filter(|(_, (side, _))| *side != Side::Both).map(|(at, _)| at);
    let mut hunks: Vec<Range<usize>> = Vec::new();
    for at in changed {
        let end = at.saturating_add(CONTEXT).saturating_add(1).min(script.len());
        match hunks.last_mut() {
            // Differences that are close together share a hunk.
            Some(hunk) if at.saturating_sub(hunk.end) <= CONTEXT => hunk.end = end,
            _ => hunks.push(at.saturating_sub(CONTEXT)..end),
        }
    }
    hunks.into_iter().map(|range| hunk(&script, &range)).collect()
}

fn hunk(script: &[(Side, &str)], range: &Range<usize>) -> String {
    let count =
        |lines: &[(Side, &str)], without: Side| lines.iter().filter(|(side, _)| *side != without).count();
    let before = script.get(..range.start).unwrap_or_default();
    let own = script.get(range.clone()).unwrap_or_default();
    let place = |without: Side| match (count(before, without), count(own, without)) {
        (before, 0) => format!("{before},0"),
        (before, 1) => before.saturating_add(1).to_string(),
        (before, lines) => format!("{},{lines}", before.saturating_add(1)),
    };
    let mut out = format!("@@ -{} +{} @@\n", place(Side::New), place(Side::Old));
    for (side, line) in own {
        out.push(side.mark());
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Returns all lines of both texts in order, along a longest common subsequence. Takes memory for each pair of lines.
#[must_use]
pub fn script<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Side, &'t str)> {
    // Lines are compared by numbers: long ones would be compared with each line of the other text.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut numbered = |lines: &[&'t str]| -> Vec<usize> {
        let number = |line: &&'t str| {
            let next = numbers.len();
            *numbers.entry(line).or_insert(next)
        };
        lines.iter().map(number).collect()
    };
    let (olds, news) = (numbered(old), numbered(new));
    let rows = common(&olds, &news);
    let length = |i: usize, j: usize| rows.get(i).and_then(|row| row.get(j)).copied().unwrap_or(0);
    let (mut i, mut j) = (0_usize, 0_usize);
    let mut out = Vec::with_capacity(old.len().max(new.len()));
    loop {
        let (down, right) = (i.saturating_add(1), j.saturating_add(1));
        match (old.get(i), new.get(j)) {
            (Some(line), Some(_)) if olds.get(i) == news.get(j) => {
                out.push((Side::Both, *line));
                (i, j) = (down, right);
            }
            (Some(line), other) if other.is_none() || length(down, j) >= length(i, right) => {
                out.push((Side::Old, *line));
                i = down;
            }
            (_, Some(line)) => {
                out.push((Side::New, *line));
                j = right;
            }
            (_, None) => return out,
        }
    }
}

/// Returns at `[i][j]` the length of the longest common subsequence of `old[i..]` and `new[j..]`.
fn common(old: &[usize], new: &[usize]) -> Vec<Vec<u32>> {
    let mut rows = vec![vec![0_u32; new.len().saturating_add(1)]];
    for line in old.iter().rev() {
        let below = rows.last().map(Vec::as_slice).unwrap_or_default();
        let mut row = vec![0_u32];
        // From the last line of the other text to its first, so the row is built in reverse.
        for (other, pair) in new.iter().rev().zip(below.windows(2).rev()) {
            let beside = row.last().copied().unwrap_or(0);
            let &[here, after] = pair else { continue };
            row.push(if line == other { after.saturating_add(1) } else { here.max(beside) });
        }
        row.reverse();
        rows.push(row);
    }
    rows.reverse();
    rows
}

#[cfg(test)]
mod tests {
    use super::unified;

    #[test]
    fn hunks_have_three_lines_around_them() {
        let text = |changed: &str| format!("1\n2\n3\n4\n{changed}\n6\n7\n8\n9\n");
        assert_eq!(
            unified(&text("5"), &text("five")),
            "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n"
        );
        assert_eq!(unified("a\n", "a\n"), "");
        let spaced = |first: &str, last: &str, between: usize| {
            [
                &[first.to_owned()][..],
                &(0..between).map(|n| n.to_string()).collect::<Vec<_>>(),
                &[last.to_owned()],
            ]
            .concat()
            .join("\n")
        };
        for (between, hunks) in [(6, 1), (7, 2)] {
            let text = unified(&spaced("a", "b", between), &spaced("c", "d", between));
            assert_eq!(text.matches("@@ -").count(), hunks, "{text}");
        }
    }
}
