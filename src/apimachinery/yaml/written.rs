//! Maps offsets in a scalar's value to positions in its source: an expression in a block, folded, or with escapes, differs from
//! its source text, and messages about a part of it have to find that part.

use std::ops::Range;

/// The style of a scalar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// Without quotes.
    Plain,
    /// `'a'`.
    SingleQuoted,
    /// `"a"`, with escapes.
    DoubleQuoted,
    /// `|`, line by line.
    Literal,
    /// `>`, lines joined.
    Folded,
}

/// The value of a scalar, with the source position of each part.
///
/// ```
/// use admit_apimachinery::yaml::{Layout, Written};
///
/// let text = "rule: >-\n  self.ä\n  + b\n";
/// let layout = Layout::read(text);
/// let root = layout.documents().next().unwrap();
/// let spot = layout.spot(layout.find(root, &["rule"]).unwrap()).unwrap();
/// let written = Written::of(text, spot.value.clone(), spot.style.unwrap());
/// assert_eq!(written.text(), "self.ä + b");
/// let at = written.text().find('b').unwrap();
/// assert_eq!(written.place(at), text.find("b\n").unwrap());
/// assert_eq!(written.offset(written.place(at)), at);
/// assert_eq!(&text[written.range(5..9)], "ä\n  +");
/// ```
#[derive(Clone, Debug, Default)]
pub struct Written {
    text: String,
    /// Where runs begin, in the value and in the source; the last entry is the end of both.
    runs: Vec<(usize, usize)>,
}

impl Written {
    /// Reads the scalar in `range` of `text`. A missing closing quote is assumed at the end.
    #[must_use]
    pub fn of(text: &str, range: Range<usize>, style: Style) -> Self {
        let source = text.get(range.clone()).unwrap_or_default();
        let mut reader = Reader { out: Self::default(), at: range.start };
        match style {
            Style::Plain => reader.flow(source.trim_end(), None),
            Style::SingleQuoted => reader.quoted(source, '\''),
            Style::DoubleQuoted => reader.quoted(source, '"'),
            Style::Literal => reader.block(source, around(text, range.start), false),
            Style::Folded => reader.block(source, around(text, range.start), true),
        }
        let end = reader.at.min(range.end);
        reader.out.runs.push((reader.out.text.len(), end));
        reader.out
    }

    /// Returns the value.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the source position of the byte `offset` of the value.
    #[must_use]
    pub fn place(&self, offset: usize) -> usize {
        let behind = self.runs.partition_point(|(read, _)| *read <= offset);
        let run = behind.checked_sub(1).and_then(|index| self.runs.get(index));
        run.map_or(0, |(read, written)| written.saturating_add(offset.saturating_sub(*read)))
    }

    /// Returns the source range of a range of the value.
    #[must_use]
    pub fn range(&self, read: Range<usize>) -> Range<usize> {
        let start = self.place(read.start);
        start..self.place(read.end).max(start)
    }

    /// Returns the offset in the value of the source position `place`, or of the next one.
    #[must_use]
    pub fn offset(&self, place: usize) -> usize {
        let behind = self.runs.partition_point(|(_, written)| *written <= place);
        let Some((read, written)) = behind.checked_sub(1).and_then(|index| self.runs.get(index)) else {
            return 0;
        };
        let end = self.runs.get(behind).map_or(self.text.len(), |(read, _)| *read);
        read.saturating_add(place.saturating_sub(*written)).min(end)
    }

    fn push(&mut self, c: char, place: usize) {
        let expected = self
            .runs
            .last()
            .map(|(read, written)| written.saturating_add(self.text.len().saturating_sub(*read)));
        if expected != Some(place) {
            self.runs.push((self.text.len(), place));
        }
        self.text.push(c);
    }
}

struct Reader {
    out: Written,
    /// The offset of the next source byte.
    at: usize,
}

impl Reader {
    fn quoted(&mut self, source: &str, quote: char) {
        let Some(inner) = source.strip_prefix(quote) else { return };
        self.at = self.at.saturating_add(1);
        self.flow(inner, Some(quote));
    }

    /// Reads quoted or plain text, whose line breaks become spaces.
    fn flow(&mut self, source: &str, quote: Option<char>) {
        let mut chars = source.char_indices().peekable();
        let base = self.at;
        // Spaces that may precede a line break.
        let mut spaces: Vec<(char, usize)> = Vec::new();
        while let Some((index, c)) = chars.next() {
            let place = base.saturating_add(index);
            self.at = place;
            match c {
                ' ' | '\t' => spaces.push((c, place)),
                '\n' | '\r' => {
                    let broken = spaces.first().map_or(place, |(_, place)| *place);
                    spaces.clear();
                    let mut breaks = usize::from(c == '\n');
                    while let Some((_, c)) = chars.next_if(|(_, c)| c.is_ascii_whitespace()) {
                        breaks = breaks.saturating_add(usize::from(c == '\n'));
                    }
                    if breaks <= 1 {
                        self.out.push(' ', broken);
                    } else {
                        (1..breaks).for_each(|_| self.out.push('\n', broken));
                    }
                }
                _ => {
                    spaces.drain(..).for_each(|(c, place)| self.out.push(c, place));
                    if Some(c) == quote {
                        if c == '"' || chars.next_if(|(_, next)| *next == '\'').is_none() {
                            return;
                        }
                        self.out.push('\'', place);
                    } else if c == '\\' && quote == Some('"') {
                        self.escape(&mut chars, place);
                    } else {
                        self.out.push(c, place);
                    }
                }
            }
            self.at = base.saturating_add(source.len());
        }
        spaces.drain(..).for_each(|(c, place)| self.out.push(c, place));
        self.at = base.saturating_add(source.len());
    }

    fn escape(&mut self, chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>, place: usize) {
        let Some((_, c)) = chars.next() else { return };
        let digits = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '\n' => {
                while chars.next_if(|(_, c)| matches!(c, ' ' | '\t')).is_some() {}
                return;
            }
            _ => 0,
        };
        let meant = match c {
            '0' => '\0',
            'a' => '\u{7}',
            'b' => '\u{8}',
            't' | '\t' => '\t',
            'n' => '\n',
            'v' => '\u{b}',
            'f' => '\u{c}',
            'r' => '\r',
            'e' => '\u{1b}',
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            other => other,
        };
        if digits == 0 {
            self.out.push(meant, place);
            return;
        }
        let mut code = 0_u32;
        for _ in 0..digits {
            let Some((_, digit)) = chars.next_if(|(_, c)| c.is_ascii_hexdigit()) else { break };
            code = code.wrapping_shl(4) | digit.to_digit(16).unwrap_or_default();
        }
        self.out.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), place);
    }

    fn block(&mut self, source: &str, around: usize, folds: bool) {
        let Some((header, body)) = source.split_once('\n') else { return };
        let header = header.split('#').next().unwrap_or_default();
        let keeps = header.contains('+');
        let strips = header.contains('-');
        let start = self.at.saturating_add(source.len().saturating_sub(body.len()));
        let lines = lines(body, start);
        let indent_of = |line: &str| line.len().saturating_sub(line.trim_start_matches(' ').len());
        let first = lines.iter().find(|(line, _)| !line.trim_matches(' ').is_empty());
        let Some(indent) = first.map(|(line, _)| indent_of(line)) else { return };
        // An explicit indentation is relative to that of the parent node; the text may then begin with spaces.
        let told = header.chars().find_map(|c| c.to_digit(10));
        let told = told.and_then(|told| usize::try_from(told).ok());
        let indent = told.map_or(indent, |told| around.saturating_add(told));
        // Pending line breaks, the position of the first, and whether the line before was more indented.
        let (mut breaks, mut broken, mut was_deeper, mut is_first) = (0_usize, start, false, true);
        for (line, place) in lines {
            let Some(content) = line.get(indent..).filter(|content| !content.is_empty()) else {
                breaks = breaks.saturating_add(1);
                if is_first {
                    broken = place;
                }
                continue;
            };
            if indent_of(line) < indent {
                break;
            }
            let is_deeper = content.starts_with([' ', '\t']);
            let joins = folds && !is_first && !is_deeper && !was_deeper;
            match (joins, breaks) {
                (true, 1) => self.out.push(' ', broken),
                (true, _) => (1..breaks).for_each(|_| self.out.push('\n', broken)),
                (false, _) => self.breaks(breaks, broken),
            }
            let from = place.saturating_add(indent);
            content.char_indices().for_each(|(index, c)| self.out.push(c, from.saturating_add(index)));
            broken = from.saturating_add(content.len());
            self.at = broken;
            (breaks, was_deeper, is_first) = (1, is_deeper, false);
        }
        match (keeps, strips) {
            (true, _) => self.breaks(breaks, broken),
            (false, false) if !is_first => self.breaks(1, broken),
            (false, _) => {}
        }
    }

    /// Adds line breaks of a block; if nothing else is between two texts, each has its own source position.
    fn breaks(&mut self, count: usize, first: usize) {
        (0..count).for_each(|index| self.out.push('\n', first.saturating_add(index)));
        self.at = first.saturating_add(count);
    }
}

/// Returns the indentation of the parent node of a scalar at `place`: its key, or its list entry.
fn around(text: &str, place: usize) -> usize {
    let before = text.get(..place).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let mut rest = line.trim_start_matches(' ');
    while let Some(entry) = rest.strip_prefix("- ").or_else(|| rest.strip_prefix("? ")) {
        let entry = entry.trim_start_matches(' ');
        if entry.is_empty() {
            break;
        }
        rest = entry;
    }
    line.len().saturating_sub(rest.len())
}

/// Splits the body of a block into lines, each with its position.
fn lines(body: &str, start: usize) -> Vec<(&str, usize)> {
    let mut place = start;
    let mut lines = Vec::new();
    for line in body.split_inclusive('\n') {
        let text = line.strip_suffix('\n').unwrap_or(line);
        lines.push((text.strip_suffix('\r').unwrap_or(text), place));
        place = place.saturating_add(line.len());
    }
    lines
}
