//! Two texts, line by line: what is only in the first is marked `- `, what is only in the second `+ `.

/// Texts with more pairs of lines than this are shown one after the other.
const MAX_PAIRS: usize = 1_000_000;
/// Equal lines that are shown around a difference.
const CONTEXT: usize = 3;

/// The lines of both texts, marked; long runs of equal lines are left out for `  …`.
pub(super) fn lines(old: &str, new: &str) -> Vec<String> {
    let (old, new) = (split(old), split(new));
    let marked = if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        let removed = old.iter().map(|line| ('-', *line));
        removed.chain(new.iter().map(|line| ('+', *line))).collect()
    } else {
        aligned(&old, &new)
    };
    shortened(&marked)
}

/// A text of no lines still says so.
fn split(text: &str) -> Vec<&str> {
    if text.is_empty() { vec!["(nothing)"] } else { text.lines().collect() }
}

/// Along a longest common subsequence.
fn aligned<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(char, &'t str)> {
    let lengths = common(old, new);
    let length = |i: usize, j: usize| lengths.get(i).and_then(|row| row.get(j)).copied().unwrap_or(0);
    let (mut i, mut j) = (0, 0);
    let mut marked = Vec::with_capacity(old.len().max(new.len()));
    loop {
        match (old.get(i), new.get(j)) {
            (Some(left), Some(right)) if left == right => {
                marked.push((' ', *left));
                (i, j) = (i + 1, j + 1);
            }
            (Some(left), right) if right.is_none() || length(i + 1, j) >= length(i, j + 1) => {
                marked.push(('-', *left));
                i += 1;
            }
            (_, Some(right)) => {
                marked.push(('+', *right));
                j += 1;
            }
            (_, None) => return marked,
        }
    }
}

/// `[i][j]`: how many lines `old[i..]` and `new[j..]` have in common, in order.
fn common(old: &[&str], new: &[&str]) -> Vec<Vec<usize>> {
    let mut rows = vec![vec![0; new.len() + 1]];
    for left in old.iter().rev() {
        let mut row = vec![0; new.len() + 1];
        let below = rows.last().cloned().unwrap_or_default();
        for (j, right) in new.iter().enumerate().rev() {
            row[j] = if left == right { below[j + 1] + 1 } else { below[j].max(row[j + 1]) };
        }
        rows.push(row);
    }
    rows.reverse();
    rows
}

fn shortened(marked: &[(char, &str)]) -> Vec<String> {
    let changed: Vec<usize> =
        marked.iter().enumerate().filter(|(_, (mark, _))| *mark != ' ').map(|(index, _)| index).collect();
    let near = |index: usize| changed.iter().any(|at| at.abs_diff(index) <= CONTEXT);
    let mut out: Vec<String> = Vec::new();
    let mut left_out = false;
    for (index, (mark, line)) in marked.iter().enumerate() {
        if near(index) {
            out.push(format!("{mark} {line}"));
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
