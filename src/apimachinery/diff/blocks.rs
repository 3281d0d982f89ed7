//! Compares two texts by their longest common runs of lines, and what is before and after each in the same way (Ratcliff
//! and Obershelp, as Go's `pmezard/go-difflib` has it from Python).

use std::collections::HashMap;
use std::ops::Range;

use super::Side;

/// In a text of so many lines, those that are frequent do not begin a run.
const MANY_LINES: usize = 200;

/// All lines of both texts in order: between two runs, the old ones before the new ones.
pub(super) fn script<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Side, &'t str)> {
    let mut out = Vec::with_capacity(old.len().max(new.len()));
    let (mut i, mut j) = (0_usize, 0_usize);
    let end = Run { old: old.len(), new: new.len(), length: 0 };
    for run in runs(old, new).into_iter().chain([end]) {
        let of = |lines: &[&'t str], range: Range<usize>, side: Side| {
            let lines = lines.get(range).unwrap_or_default();
            lines.iter().map(|line| (side, *line)).collect::<Vec<_>>()
        };
        out.extend(of(old, i..run.old, Side::Old));
        out.extend(of(new, j..run.new, Side::New));
        (i, j) = (run.old.saturating_add(run.length), run.new.saturating_add(run.length));
        out.extend(of(old, run.old..i, Side::Both));
    }
    out
}

/// Lines that both texts have one after the other.
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

/// The runs that are compared, in order.
fn runs(old: &[&str], new: &[&str]) -> Vec<Run> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in new.iter().enumerate() {
        places.entry(line).or_default().push(at);
    }
    if new.len() >= MANY_LINES {
        let most = (new.len() / 100).saturating_add(1);
        places.retain(|_, places| places.len() <= most);
    }
    let mut left = vec![Part { old: 0..old.len(), new: 0..new.len() }];
    let mut found = Vec::new();
    while let Some(part) = left.pop() {
        let run = longest((old, new), &places, &part);
        if run.length == 0 {
            continue;
        }
        let after = (run.old.saturating_add(run.length), run.new.saturating_add(run.length));
        left.push(Part { old: part.old.start..run.old, new: part.new.start..run.new });
        left.push(Part { old: after.0..part.old.end, new: after.1..part.new.end });
        found.push(run);
    }
    found.sort_unstable();
    found
}

/// The longest run of both parts, of several the first; it goes on in both directions with frequent lines.
fn longest((old, new): (&[&str], &[&str]), places: &HashMap<&str, Vec<usize>>, part: &Part) -> Run {
    let mut best = Run { old: part.old.start, new: part.new.start, length: 0 };
    // By its last line in the new text, the length of the run that ends there.
    let mut lengths: HashMap<usize, usize> = HashMap::new();
    for i in part.old.clone() {
        let mut next = HashMap::new();
        let at = old.get(i).and_then(|line| places.get(line)).map(Vec::as_slice).unwrap_or_default();
        for &j in at.iter().filter(|j| part.new.contains(j)) {
            let before = j.checked_sub(1).and_then(|before| lengths.get(&before)).copied().unwrap_or(0);
            let length = before.saturating_add(1);
            next.insert(j, length);
            if length > best.length {
                let start = |end: usize| end.saturating_add(1).saturating_sub(length);
                best = Run { old: start(i), new: start(j), length };
            }
        }
        lengths = next;
    }
    let same = |i: Option<usize>, j: Option<usize>| {
        i.zip(j).is_some_and(|(i, j)| old.get(i).is_some_and(|line| new.get(j) == Some(line)))
    };
    while best.old > part.old.start
        && best.new > part.new.start
        && same(best.old.checked_sub(1), best.new.checked_sub(1))
    {
        best.old = best.old.saturating_sub(1);
        best.new = best.new.saturating_sub(1);
        best.length = best.length.saturating_add(1);
    }
    loop {
        let (i, j) = (best.old.saturating_add(best.length), best.new.saturating_add(best.length));
        if i >= part.old.end || j >= part.new.end || !same(Some(i), Some(j)) {
            return best;
        }
        best.length = best.length.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::super::unified;

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
