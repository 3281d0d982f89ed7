//! Scans the tokens of JSON: white space, words, numbers and strings.

use bumpalo::Bump;
use bumpalo::collections::String as ArenaString;

use super::Node;
use super::error::ReadErrorKind;

/// A position in a JSON text. INVARIANT: `at` is a character boundary of `text`.
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) const fn offset(&self) -> usize {
        self.at
    }

    /// The first byte after white space.
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.bump();
        }
        self.byte()
    }

    /// Steps over one ASCII character.
    pub(super) fn bump(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    /// Steps over `byte` if it is next after white space.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.bump();
        }
        found
    }

    pub(super) fn unexpected(&self, expected: &'static str) -> ReadErrorKind {
        self.rest().chars().next().map_or(ReadErrorKind::UnexpectedEnd, |found| {
            ReadErrorKind::UnexpectedCharacter { found, expected }
        })
    }

    pub(super) fn word(&mut self, word: &'static str, node: Node<'a>) -> Result<Node<'a>, ReadErrorKind> {
        if !self.rest().starts_with(word) {
            return Err(self.unexpected(word));
        }
        self.at = self.at.saturating_add(word.len());
        Ok(node)
    }

    pub(super) fn number(&mut self) -> Result<Node<'a>, ReadErrorKind> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.bump();
        }
        // JSON has no leading zeros: `01` is a zero followed by other text.
        if self.byte() == Some(b'0') {
            self.bump();
        } else {
            self.digits()?;
        }
        let mut is_integer = true;
        if self.byte() == Some(b'.') {
            is_integer = false;
            self.bump();
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            is_integer = false;
            self.bump();
            if let Some(b'+' | b'-') = self.byte() {
                self.bump();
            }
            self.digits()?;
        }
        let literal = self.text.get(start..self.at).unwrap_or_default();
        if is_integer && let Ok(int) = literal.parse() {
            return Ok(Node::Int(int));
        }
        match literal.parse::<f64>() {
            Ok(double) if double.is_finite() => Ok(Node::Double(double)),
            _ => Err(ReadErrorKind::NumberOutOfRange),
        }
    }

    fn digits(&mut self) -> Result<(), ReadErrorKind> {
        if !self.byte().is_some_and(|b| b.is_ascii_digit()) {
            return Err(self.unexpected("a digit"));
        }
        while self.byte().is_some_and(|b| b.is_ascii_digit()) {
            self.bump();
        }
        Ok(())
    }

    /// Reads a string at its opening quote; borrows the text if it has no escapes.
    pub(super) fn string(&mut self, arena: &'a Bump) -> Result<&'a str, ReadErrorKind> {
        self.bump();
        let run = self.run()?;
        if self.byte() == Some(b'"') {
            self.bump();
            return Ok(run);
        }
        let mut out = ArenaString::from_str_in(run, arena);
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.bump();
                    return Ok(out.into_bump_str());
                }
                Some(b'\\') => {
                    self.bump();
                    out.push(self.escape()?);
                }
                _ => out.push_str(self.run()?),
            }
        }
    }

    /// The characters up to a quote or a backslash.
    fn run(&mut self) -> Result<&'a str, ReadErrorKind> {
        let rest = self.rest();
        let end = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20);
        let Some(end) = end else {
            self.at = self.text.len();
            return Err(ReadErrorKind::UnexpectedEnd);
        };
        self.at = self.at.saturating_add(end);
        if self.byte().is_some_and(|b| b < 0x20) {
            return Err(ReadErrorKind::ControlCharacter);
        }
        Ok(rest.get(..end).unwrap_or_default())
    }

    fn escape(&mut self) -> Result<char, ReadErrorKind> {
        let c = match self.byte() {
            Some(c @ (b'"' | b'\\' | b'/')) => char::from(c),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.bump();
                return self.code_point();
            }
            _ => return Err(ReadErrorKind::InvalidEscape),
        };
        self.bump();
        Ok(c)
    }

    /// `\uXXXX`, or a pair of them; a surrogate without its partner reads as U+FFFD.
    fn code_point(&mut self) -> Result<char, ReadErrorKind> {
        let unit = self.hex4()?;
        if let Some(c) = char::from_u32(unit) {
            return Ok(c);
        }
        let before = self.at;
        if unit < 0xDC00 && self.rest().starts_with("\\u") {
            self.at = self.at.saturating_add(2);
            let low = self.hex4()?;
            if let 0xDC00..=0xDFFF = low {
                let high = unit.wrapping_sub(0xD800) << 10;
                let c = char::from_u32((high | low.wrapping_sub(0xDC00)).wrapping_add(0x10000));
                return Ok(c.unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = before;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex4(&mut self) -> Result<u32, ReadErrorKind> {
        let digits = self.rest().get(..4).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
        let unit =
            digits.and_then(|d| u32::from_str_radix(d, 16).ok()).ok_or(ReadErrorKind::InvalidEscape)?;
        self.at = self.at.saturating_add(4);
        Ok(unit)
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }
}
