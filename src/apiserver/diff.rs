//! What differs between two texts, line by line, as some refusals show it.

use std::collections::HashMap;

/// Lines that are the same around a difference.
const CONTEXT: usize = 3;

/// Longer texts are not compared: the table of common lines would be too large.
pub(crate) const MOST_LINES: usize = 2_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Both,
    Old,
    New,
}

/// The unified form without names of files: hunks, each with its place.
#[must_use]
pub(crate) fn unified(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() > MOST_LINES || new.len() > MOST_LINES {
        return String::new();
    }
    let script = script(&old, &new);
    let changed: Vec<usize> =
        script.iter().enumerate().filter(|(_, (side, _))| *side != Side::Both).map(|(at, _)| at).collect();
    let mut out = String::new();
    let mut rest = changed.as_slice();
    while let Some(first) = rest.first() {
        // Differences with little between them share a hunk.
        let gap = rest.windows(2).position(|pair| pair[1] - pair[0] > 2 * CONTEXT + 1);
        let (own, after) = rest.split_at(gap.map_or(rest.len(), |at| at + 1));
        let last = own.last().unwrap_or(first);
        let range = first.saturating_sub(CONTEXT)..(last + CONTEXT + 1).min(script.len());
        out.push_str(&hunk(&script, range));
        rest = after;
    }
    out
}

fn hunk(script: &[(Side, &str)], range: std::ops::Range<usize>) -> String {
    let count =
        |lines: &[(Side, &str)], without: Side| lines.iter().filter(|(side, _)| *side != without).count();
    let (before, own) = (&script[..range.start], &script[range]);
    let mut out = format!(
        "@@ -{},{} +{},{} @@\n",
        count(before, Side::New) + 1,
        count(own, Side::New),
        count(before, Side::Old) + 1,
        count(own, Side::Old)
    );
    for (side, line) in own {
        let mark = match side {
            Side::Both => ' ',
            Side::Old => '-',
            Side::New => '+',
        };
        out.push(mark);
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// All lines of both texts, by the longest common subsequence.
fn script<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Side, &'t str)> {
    // Lines are told apart once, by numbers: long ones would be compared with each line of the other text.
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    let mut numbered = |lines: &[&'t str]| -> Vec<usize> {
        let number = |line: &&'t str| {
            let next = numbers.len();
            *numbers.entry(line).or_insert(next)
        };
        lines.iter().map(number).collect()
    };
    let (olds, news) = (numbered(old), numbered(new));
    let width = new.len() + 1;
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for (i, line) in olds.iter().enumerate().rev() {
        for (j, other) in news.iter().enumerate().rev() {
            common[i * width + j] = if line == other {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut out = Vec::with_capacity(old.len().max(new.len()));
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] {
            out.push((Side::Both, old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len()
            || (i < old.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            out.push((Side::Old, old[i]));
            i += 1;
        } else {
            out.push((Side::New, new[j]));
            j += 1;
        }
    }
    out
}

#[test]
fn hunks_have_three_lines_around_them() {
    let text = |changed: &str| format!("1\n2\n3\n4\n{changed}\n6\n7\n8\n9\n");
    assert_eq!(unified(&text("5"), &text("five")), "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
    assert_eq!(unified("a\n", "a\nb\n"), "@@ -1,1 +1,2 @@\n a\n+b\n");
    assert_eq!(unified("a\n", "a\n"), "");
}
