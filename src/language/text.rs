//! Represents the text of a file in an editor: converts between offsets and lines and columns in the editor's unit, and applies edits.

use std::collections::HashMap;
use std::ops::Range;

use admit_policy::manifest::Position;

/// The unit in which an editor counts columns.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, which every editor supports.
    #[default]
    Utf16,
}

/// A position as in the Language Server Protocol: both parts count from zero.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The column, in units of the [`Encoding`].
    pub character: u32,
}

/// A text with an index of its lines, for fast lookup: a file may have as many findings as lines.
///
/// ```
/// use admit_language::{Encoding, Place, Text};
///
/// let mut text = Text::new("a: 💡b\nc: d\n".to_owned());
/// let place = Place { line: 0, character: 5 };
/// assert_eq!(text.offset(place, Encoding::Utf16), 7);
/// assert_eq!(text.place(7, Encoding::Utf16), place);
/// assert_eq!(text.place(7, Encoding::Utf8).character, 7);
/// text.edit(place..Place { line: 1, character: 0 }, "x ", Encoding::Utf16);
/// assert_eq!((text.as_str(), text.line(1)), ("a: 💡x c: d\n", Some("a: 💡x c: d")));
/// assert_eq!((text.position(7).column, text.offset_of(text.position(7))), (5, 7));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Text {
    text: String,
    /// The byte offset of each line.
    starts: Vec<usize>,
}

impl Text {
    /// Indexes a text.
    #[must_use]
    pub fn new(text: String) -> Self {
        let starts = starts(&text);
        Self { text, starts }
    }

    /// Returns the whole text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns a line by its number, from one, without its line end.
    #[must_use]
    pub fn line(&self, number: usize) -> Option<&str> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        let rest = self.text.get(start..)?;
        (!rest.is_empty()).then(|| rest.lines().next()).flatten()
    }

    /// Returns the offset and text of a line by its index, from zero; empty if there is none.
    fn line_at(&self, index: usize) -> (usize, &str) {
        let Some(start) = self.starts.get(index).copied() else { return (self.text.len(), "") };
        let end = self.starts.get(index.saturating_add(1)).copied().unwrap_or(self.text.len());
        let line = self.text.get(start..end).unwrap_or_default();
        (start, line.trim_end_matches(['\n', '\r']))
    }

    fn index_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    /// Returns the byte offset of a position; beyond the end of a line or of the text, that end.
    #[must_use]
    pub fn offset(&self, place: Place, encoding: Encoding) -> usize {
        let (start, line) = self.line_at(usize::try_from(place.line).unwrap_or(usize::MAX));
        let wanted = usize::try_from(place.character).unwrap_or(usize::MAX);
        let mut seen = 0_usize;
        for (at, c) in line.char_indices() {
            let units = units(c, encoding);
            if seen.saturating_add(units) > wanted {
                return start.saturating_add(at);
            }
            seen = seen.saturating_add(units);
        }
        start.saturating_add(line.len())
    }

    /// Returns the position of a byte offset.
    #[must_use]
    pub fn place(&self, offset: usize, encoding: Encoding) -> Place {
        let index = self.index_of(offset);
        let (start, line) = self.line_at(index);
        let before = line.char_indices().take_while(|(at, _)| start.saturating_add(*at) < offset);
        let character = before.map(|(_, c)| units(c, encoding)).fold(0_usize, usize::saturating_add);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Place { line: number(index), character: number(character) }
    }

    /// Returns the position of a byte offset as manifests count it.
    #[must_use]
    pub fn position(&self, offset: usize) -> Position {
        let index = self.index_of(offset);
        let (start, line) = self.line_at(index);
        let before = line.char_indices().take_while(|(at, _)| start.saturating_add(*at) < offset).count();
        Position { line: index.saturating_add(1), column: before.saturating_add(1) }
    }

    /// Returns the byte offset of a position as manifests count it.
    #[must_use]
    pub fn offset_of(&self, position: Position) -> usize {
        let (start, line) = self.line_at(position.line.saturating_sub(1));
        let at = line.char_indices().nth(position.column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
        start.saturating_add(at)
    }

    /// Returns the byte offset of the end of a line, counted from one.
    pub(crate) fn end_of(&self, line: usize) -> usize {
        let (start, text) = self.line_at(line.saturating_sub(1));
        start.saturating_add(text.len())
    }

    /// Replaces a range by `new`.
    pub fn edit(&mut self, range: Range<Place>, new: &str, encoding: Encoding) {
        let start = self.offset(range.start, encoding);
        let end = self.offset(range.end, encoding).max(start);
        self.text.replace_range(start..end, new);
        // Line starts near the edit are recomputed: a line end may have been split in two, or two may have become one.
        let first = self.index_of(start.saturating_sub(1));
        let last = self.starts.partition_point(|known| *known <= end.saturating_add(1));
        let from = self.starts.get(first).copied().unwrap_or_default();
        let moved = |at: usize| at.saturating_sub(end).saturating_add(start).saturating_add(new.len());
        let until = self.starts.get(last).map_or(self.text.len(), |known| moved(*known));
        let window = self.text.get(from..until).unwrap_or_default();
        let is_end = last >= self.starts.len();
        let around = starts(window).into_iter().map(|at| at.saturating_add(from));
        // The end of this window is the first line start that is kept, if there is one.
        let around: Vec<usize> = around.filter(|at| is_end || *at < until).collect();
        self.starts.iter_mut().skip(last).for_each(|known| *known = moved(*known));
        self.starts.splice(first..last, around).for_each(drop);
    }
}

fn units(c: char, encoding: Encoding) -> usize {
    match encoding {
        Encoding::Utf8 => c.len_utf8(),
        Encoding::Utf16 => c.len_utf16(),
    }
}

/// Finds line starts: lines end with a line feed, a carriage return, or both.
fn starts(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let ends = bytes.iter().enumerate().filter_map(|(at, byte)| {
        let next = at.saturating_add(1);
        let ends = *byte == b'\n' || *byte == b'\r' && bytes.get(next) != Some(&b'\n');
        ends.then_some(next)
    });
    std::iter::once(0).chain(ends).collect()
}

/// The texts of files, by name.
///
/// ```
/// let mut texts = admit_language::Texts::default();
/// texts.insert("a.yaml".to_owned(), admit_language::Text::new("a: 1\n".to_owned()));
/// assert_eq!(texts.get("a.yaml").and_then(|text| text.line(1)), Some("a: 1"));
/// ```
#[derive(Debug, Default)]
pub struct Texts(HashMap<String, Text>);

impl Texts {
    /// Adds the text of a file.
    pub fn insert(&mut self, file: String, text: Text) {
        self.0.insert(file, text);
    }

    /// Returns the text of a file.
    #[must_use]
    pub fn get(&self, file: &str) -> Option<&Text> {
        self.0.get(file)
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Place, Text};

    #[test]
    fn lines_are_those_of_the_standard_library() {
        for text in ["", "\n", "a", "a\n", "a\nb", "a\r\n\nö\r\n", "\n\n"] {
            let indexed = Text::new(text.to_owned());
            let lines: Vec<&str> = (1..).map_while(|number| indexed.line(number)).collect();
            assert_eq!(lines, text.lines().collect::<Vec<_>>(), "{text:?}");
            assert_eq!(indexed.line(0), None);
        }
    }

    #[test]
    fn lines_are_the_same_however_the_text_was_made() {
        let parts = ["", "\n", "\r", "\r\n", "a", "ä", "a\nb", "\r\n\n"];
        for old in ["", "\n", "ab\r\ncd\r\n", "a\rb\n\r", "\r\n\r\n"] {
            for start in 0..=old.len() {
                for end in start..=old.len() {
                    for new in parts {
                        let mut text = Text::new(old.to_owned());
                        let place = |at| text.place(at, Encoding::Utf8);
                        let range = place(start)..place(end);
                        let (from, to) = (
                            text.offset(range.start, Encoding::Utf8),
                            text.offset(range.end, Encoding::Utf8),
                        );
                        text.edit(range, new, Encoding::Utf8);
                        let whole = format!("{}{new}{}", &old[..from], &old[to.max(from)..]);
                        assert_eq!(text.as_str(), whole);
                        assert_eq!(
                            text.starts,
                            Text::new(whole).starts,
                            "{new:?} at {from}..{to} of {old:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn places_beyond_a_line_are_its_end_and_within_a_character_its_start() {
        let text = Text::new("ab\r\n💡c\rd".to_owned());
        for (line, character, expected) in
            [(0, 9, 2), (1, 1, 4), (1, 2, 8), (1, 3, 9), (2, 0, 10), (2, 5, 11), (9, 0, 11)]
        {
            assert_eq!(
                text.offset(Place { line, character }, Encoding::Utf16),
                expected,
                "{line}:{character}"
            );
        }
    }
}
