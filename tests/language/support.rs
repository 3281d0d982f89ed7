//! Places in texts.

use std::ops::Range;

use admit_language::Place;

/// The place right behind what `mark` ends with, of which the text has one.
pub(crate) fn behind(text: &str, mark: &str) -> Place {
    let at = text.find(mark).unwrap_or_else(|| panic!("`{mark}`")) + mark.len();
    place(text, at)
}

/// The place of a byte.
pub(crate) fn place(text: &str, at: usize) -> Place {
    let before = &text[..at];
    let column = before.rsplit('\n').next().unwrap_or_default().encode_utf16().count();
    let number = |count: usize| u32::try_from(count).expect("a short text");
    Place { line: number(before.matches('\n').count()), character: number(column) }
}

/// What stands in a range, which is on one line.
pub(crate) fn shown(text: &str, range: &Range<Place>) -> String {
    let lines: Vec<Vec<u16>> = text.split('\n').map(|line| line.encode_utf16().collect()).collect();
    assert_eq!(range.start.line, range.end.line, "on one line");
    let line = &lines[range.start.line as usize];
    String::from_utf16(&line[range.start.character as usize..range.end.character as usize])
        .expect("whole characters")
}
