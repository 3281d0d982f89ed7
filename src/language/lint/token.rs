//! Locates in the manifest the token that the CEL compiler complains about: the compiler knows line and column within
//! the expression, and the manifest has that expression somewhere behind its key, perhaps folded or with escapes.

use std::borrow::Cow;
use std::ops::Range;

use admit_apimachinery::yaml::{Layout, Spot, Written};
use admit_policy::manifest::{LoadError, Position};

use crate::text::Text;

/// The name of the input in compilers' messages.
const INPUT: &str = "<input>:";
/// The prefix of quoted lines in compilers' messages.
const QUOTE: &str = " | ";

/// Locates the tokens of a text that error messages are about.
///
/// ```
/// use admit_language::Text;
/// use admit_language::lint::Tokens;
/// use admit_policy::manifest::{LoadError, Position};
///
/// let text = Text::new("- rule: 'self + bad'\n".to_owned());
/// let mistake = LoadError {
///     file: "a.yaml".into(),
///     position: Position { line: 1, column: 3 },
///     field: String::new(),
///     message: "ERROR: <input>:1:8: undeclared reference to 'bad'\n | self + bad\n | .......^".to_owned(),
/// };
/// let tokens = Tokens::of(&text);
/// assert_eq!(tokens.token(&mistake).map(|range| &text.as_str()[range]), Some("bad"));
/// assert_eq!(&text.as_str()[tokens.range(&LoadError { message: "is wrong".to_owned(), ..mistake })], "rule");
/// ```
#[derive(Debug)]
pub struct Tokens<'t> {
    text: &'t Text,
    layout: Cow<'t, Layout>,
}

impl<'t> Tokens<'t> {
    /// Parses the positions of all nodes.
    #[must_use]
    pub fn of(text: &'t Text) -> Self {
        Self { text, layout: Cow::Owned(Layout::read(text.as_str())) }
    }

    /// Takes a text whose positions are already parsed.
    pub(crate) const fn known(text: &'t Text, layout: &'t Layout) -> Self {
        Self { text, layout: Cow::Borrowed(layout) }
    }

    /// Returns the range of the first token that a message complains about, in the expression whose key is at the error's position.
    /// `None` if the message names no token.
    #[must_use]
    pub fn token(&self, mistake: &LoadError) -> Option<Range<usize>> {
        let (line, column, quoted) = complaint(&mistake.message)?;
        let spot = self.spot(mistake.position)?;
        let written = Written::of(self.text.as_str(), spot.value.clone(), spot.style?);
        let read = written.text();
        // Policies are compiled without surrounding white space of their expressions.
        let trimmed = read.len().saturating_sub(read.trim_start().len());
        [0, trimmed].into_iter().find_map(|before| {
            let start = before.saturating_add(line_start(read.get(before..)?, line)?);
            let own = read.get(start..)?.lines().next().unwrap_or_default();
            let at = own.char_indices().map(|(at, _)| at).chain([own.len()]).nth(column.checked_sub(1)?)?;
            let fits = own.trim_end() == quoted.trim_end();
            let from = start.saturating_add(at);
            fits.then(|| written.range(from..from.saturating_add(token(own.get(at..).unwrap_or_default()))))
        })
    }

    /// Returns the range of an error: the token, else the key, else the word at its position.
    #[must_use]
    pub fn range(&self, mistake: &LoadError) -> Range<usize> {
        self.token(mistake).unwrap_or_else(|| self.word(mistake.position))
    }

    /// Moves an error to its token, if it names one.
    pub(crate) fn place(&self, mistake: &mut LoadError) {
        if let Some(range) = self.token(mistake) {
            mistake.position = self.text.position(range.start);
        }
    }

    /// Returns the range of the key or word at a position.
    fn word(&self, position: Position) -> Range<usize> {
        if let Some(spot) = self.spot(position) {
            return spot.key.clone();
        }
        let start = self.text.offset_of(position);
        let rest = self.text.as_str().get(start..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        let word = line.find(|c: char| c.is_whitespace() || c == ':').unwrap_or(line.len());
        let least = line.chars().next().map_or(0, char::len_utf8);
        start..start.saturating_add(word.max(least))
    }

    /// Returns the value whose key is at a position.
    fn spot(&self, position: Position) -> Option<&Spot> {
        let offset = self.text.offset_of(position);
        let spot = self.layout.spot(self.layout.at(offset)?)?;
        (!spot.key.is_empty() && spot.key.start == offset).then_some(spot)
    }
}

/// Returns the first line and column of the message, from one, and that line of the expression.
fn complaint(message: &str) -> Option<(usize, usize, &str)> {
    let (_, behind) = message.split_once(INPUT)?;
    let mut parts = behind.splitn(3, ':');
    let (line, column) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let quoted = behind.lines().find_map(|line| line.strip_prefix(QUOTE))?;
    Some((line, column, quoted))
}

/// Returns the offset of a line, counted from one.
fn line_start(text: &str, line: usize) -> Option<usize> {
    let behind = text.match_indices('\n').map(|(at, _)| at.saturating_add(1));
    std::iter::once(0).chain(behind).nth(line.checked_sub(1)?)
}

/// Returns the length of the token at the start of a text: a name, a number, a string literal, or else one character.
fn token(text: &str) -> usize {
    let Some(first) = text.chars().next() else { return 0 };
    if first.is_alphanumeric() || first == '_' {
        return text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    }
    if first == '\'' || first == '"' {
        let mut escaped = false;
        let end = text.char_indices().skip(1).find(|(_, c)| {
            let ends = *c == first && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        return end.map_or(text.len(), |(at, c)| at.saturating_add(c.len_utf8()));
    }
    let two = ["==", "!=", "<=", ">=", "&&", "||"].iter().any(|operator| text.starts_with(operator));
    if two { 2 } else { first.len_utf8() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, (line, column): (usize, usize), message: &str) -> Option<(usize, usize, String)> {
        let text = Text::new(text.to_owned());
        let mistake = LoadError {
            file: "a".into(),
            position: Position { line, column },
            field: String::new(),
            message: message.to_owned(),
        };
        let range = Tokens::of(&text).token(&mistake)?;
        let at = text.position(range.start);
        Some((at.line, at.column, text.as_str().get(range).unwrap_or_default().to_owned()))
    }

    #[test]
    fn tokens_are_found_however_the_expression_is_written() {
        let message =
            "compilation failed: ERROR: <input>:1:8: undeclared reference to 'b'\n | self + b\n | .......^";
        for (text, expected) in [
            ("- rule: self + b\n", Some((1, 16))),
            ("- rule: 'self + b'\n", Some((1, 17))),
            ("- rule: \"self + b\"  # why\n", Some((1, 17))),
            ("- rule: |-\n    self + b\n  message: x\n", Some((2, 12))),
            ("- rule: |\n\n    self + b\n", Some((3, 12))),
            ("- rule: >-\n    self\n    + b\n", Some((3, 7))),
            ("- rule: \"self\\x20+ b\"\n", Some((1, 20))),
            ("- rule:\n    self + b\n", Some((2, 12))),
            ("- rule: '  self + b '\n", Some((1, 19))),
            ("- rule: self + c\n", None),
        ] {
            let expected = expected.map(|(line, column)| (line, column, "b".to_owned()));
            assert_eq!(found(text, (1, 3), message), expected, "{text:?}");
        }
        let second = "ERROR: <input>:2:3: undeclared reference to 'b'\n | + b\n | ..^";
        let there = found("a:\n- rule: |\n    self\n    + b\n", (2, 3), second);
        assert_eq!(there, Some((4, 7, "b".to_owned())));
        let flow = "<input>:1:1: undeclared reference to 'b'\n | b\n | ^";
        assert_eq!(found("- {name: a, expression: b}\n", (1, 13), flow), Some((1, 25, "b".to_owned())));
        for none in
            ["spec: Required value", "<input>:x:1: no\n | a", "<input>:1:0: no\n | a", "<input>:1:1: no"]
        {
            assert_eq!(found("- rule: a\n", (1, 3), none), None, "{none}");
        }
    }
}
