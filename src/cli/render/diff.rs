//! Compares two texts line by line: lines only in the first are marked `- `, those only in the second `+ `.

use admit_apimachinery::diff::{CONTEXT, Side, script};

/// Texts with more pairs of lines than this are not compared, but shown one after the other.
const MAX_PAIRS: usize = 1_000_000;

/// Returns the marked lines of both texts; long runs of equal lines are replaced by `  …`.
pub(in crate::cli) fn lines(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (split(old), split(new));
    let marked = if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        let removed = old.iter().map(|line| (Side::Old, *line));
        removed.chain(new.iter().map(|line| (Side::New, *line))).collect()
    } else {
        script(&old, &new)
    };
    shortened(&marked)
}

/// Splits a text into lines; an empty one is shown as such.
fn split(text: &str) -> Vec<&str> {
    if text.is_empty() { vec!["(nothing)"] } else { text.lines().collect() }
}

fn shortened(marked: &[(Side, &str)]) -> Vec<String> {
    let changed: Vec<usize> = marked
        .iter()
        .enumerate()
        .filter(|(_, (side, _))| *side != Side::Both)
        .map(|(index, _)| index)
        .collect();
    let near = |index: usize| changed.iter().any(|at| at.abs_diff(index) <= CONTEXT);
    let mut out: Vec<String> = Vec::new();
    let mut left_out = false;
    for (index, (side, line)) in marked.iter().enumerate() {
        if near(index) {
            out.push(format!("{} {line}", side.mark()));
        } else if !left_out {
            out.push("  …".to_owned());
        }
        left_out = !near(index);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn differences_are_marked_with_their_surroundings() {
        for (old, new, expected) in [
            ("a", "b", vec!["- a", "+ b"]),
            ("", "b", vec!["- (nothing)", "+ b"]),
            ("a\nb\nc", "a\nc", vec!["  a", "- b", "  c"]),
            ("a\nc", "a\nb\nc", vec!["  a", "+ b", "  c"]),
            ("1\n2\n3\n4\n5\nx", "1\n2\n3\n4\n5\ny", vec!["  …", "  3", "  4", "  5", "- x", "+ y"]),
        ] {
            assert_eq!(lines(old, new), expected, "{old:?} {new:?}");
        }
    }
}
