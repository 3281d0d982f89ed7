//! Computes the difference of two texts as one replaced range.

use std::ops::Range;

/// A difference of two texts: a range of the old one, and the end of what replaces it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// The replaced bytes of the old text.
    pub old: Range<usize>,
    /// The end of the replacement in the new text.
    pub new_end: usize,
}

impl Change {
    /// Returns the smallest change from one text to another.
    ///
    /// ```
    /// use admit_apimachinery::yaml::Change;
    ///
    /// assert_eq!(Change::between("a: 1\n", "a: 21\n"), Change { old: 3..3, new_end: 4 });
    /// assert_eq!(Change::between("ää", "ää"), Change { old: 4..4, new_end: 4 });
    /// ```
    #[must_use]
    pub fn between(old: &str, new: &str) -> Self {
        let start = common(old.as_bytes(), new.as_bytes(), true);
        let (old_rest, new_rest) = (old.as_bytes().get(start..), new.as_bytes().get(start..));
        let end = common(old_rest.unwrap_or_default(), new_rest.unwrap_or_default(), false);
        let mut old_start = start;
        while !old.is_char_boundary(old_start) || !new.is_char_boundary(old_start) {
            old_start = old_start.saturating_sub(1);
        }
        let (mut old_end, mut new_end) = (old.len().saturating_sub(end), new.len().saturating_sub(end));
        while !old.is_char_boundary(old_end) || !new.is_char_boundary(new_end) {
            (old_end, new_end) = (old_end.saturating_add(1), new_end.saturating_add(1));
        }
        Self { old: old_start..old_end, new_end }
    }

    /// Returns the new offset of a byte after the change.
    pub(super) fn moved(&self, at: usize) -> usize {
        at.saturating_sub(self.old.end).saturating_add(self.new_end)
    }
}

/// Returns the length of the common prefix of two texts, or of their common suffix.
fn common(old: &[u8], new: &[u8], start: bool) -> usize {
    const PIECE: usize = 4096;
    let (mut same, mut piece) = (0_usize, PIECE);
    while piece > 0 {
        match (part(old, same, piece, start), part(new, same, piece, start)) {
            (Some(one), Some(other)) if one == other => same = same.saturating_add(piece),
            _ => piece /= 2,
        }
    }
    same
}

/// Returns `length` bytes after the first `behind` bytes, or before the last ones.
fn part(text: &[u8], behind: usize, length: usize, start: bool) -> Option<&[u8]> {
    if start {
        return text.get(behind..behind.checked_add(length)?);
    }
    let end = text.len().checked_sub(behind)?;
    text.get(end.checked_sub(length)?..end)
}
