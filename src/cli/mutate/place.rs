//! Finds the position of a part of an expression in a manifest, and the lines that the expression takes.

use admit_policy::manifest::Position;

/// Returns the position of the byte `offset` of `expression`, whose key is at `key`; the key itself if the expression cannot be
/// found in the text, as with escapes.
///
/// However YAML folds, indents or quotes a string, its non-blank characters keep their order: both are walked in parallel.
pub(super) fn token(text: &str, key: Position, expression: &str, offset: usize) -> Position {
    let nth =
        expression.get(..offset).map_or(0, |before| before.chars().filter(|c| !c.is_whitespace()).count());
    written(text, key, expression).and_then(|places| places.get(nth).copied()).unwrap_or(key)
}

/// Returns the last line of an expression whose key is at `key`.
pub(super) fn last_line(text: &str, key: Position, expression: &str) -> usize {
    let last = written(text, key, expression).and_then(|places| places.last().copied());
    last.unwrap_or(key).line
}

/// Returns the position of every non-blank character, if all of them are found.
fn written(text: &str, key: Position, expression: &str) -> Option<Vec<Position>> {
    let mut raw = Raw::behind(text, key)?;
    let mut places = Vec::new();
    for wanted in expression.chars().filter(|c| !c.is_whitespace()) {
        let (found, at) = raw.next()?;
        if found != wanted {
            return None;
        }
        places.push(at);
    }
    Some(places)
}

/// Iterates over the characters of a value as written, without white space.
struct Raw<'t> {
    chars: std::iter::Peekable<std::str::Chars<'t>>,
    at: Position,
    /// The quote that is open: `'` or `"`.
    quote: Option<char>,
}

impl<'t> Raw<'t> {
    fn behind(text: &'t str, key: Position) -> Option<Self> {
        let start = text.split_inclusive('\n').take(key.line.checked_sub(1)?).map(str::len).sum::<usize>();
        let line = text.get(start..)?.lines().next()?;
        let before: usize = line.chars().take(key.column.checked_sub(1)?).map(char::len_utf8).sum();
        let colon = before.checked_add(line.get(before..)?.find(':')?)?.checked_add(1)?;
        let value = line.get(colon..)?;
        if value.trim_start().starts_with(['|', '>']) {
            let next = start.checked_add(line.len())?.checked_add(1)?;
            let at = Position { line: key.line.checked_add(1)?, column: 1 };
            return Some(Self { chars: text.get(next..)?.chars().peekable(), at, quote: None });
        }
        let column = line.get(..colon)?.chars().count().checked_add(1)?;
        let chars = text.get(start.checked_add(colon)?..)?.chars().peekable();
        let mut raw = Self { chars, at: Position { line: key.line, column }, quote: None };
        raw.skip_space();
        if let Some(quote @ ('\'' | '"')) = raw.chars.peek().copied() {
            raw.step();
            raw.quote = Some(quote);
        }
        Some(raw)
    }

    fn skip_space(&mut self) {
        while self.chars.peek().is_some_and(|c| c.is_whitespace()) {
            self.step();
        }
    }

    fn step(&mut self) -> Option<(char, Position)> {
        let (c, at) = (self.chars.next()?, self.at);
        self.at = match c {
            '\n' => Position { line: at.line.saturating_add(1), column: 1 },
            _ => Position { line: at.line, column: at.column.saturating_add(1) },
        };
        Some((c, at))
    }

    fn next(&mut self) -> Option<(char, Position)> {
        self.skip_space();
        let found = self.step()?;
        let escapes = match (self.quote, found.0) {
            (Some('\''), '\'') => self.chars.peek() == Some(&'\''),
            (Some('"'), '\\') => self.chars.peek().is_some_and(|c| matches!(c, '"' | '\\' | '/')),
            _ => false,
        };
        if escapes { self.step().map(|(c, _)| (c, found.1)) } else { Some(found) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, key: (usize, usize), expression: &str, part: &str) -> (usize, usize) {
        let key = Position { line: key.0, column: key.1 };
        let at = token(text, key, expression, expression.find(part).unwrap());
        (at.line, at.column)
    }

    #[test]
    fn parts_are_found_however_the_expression_is_written() {
        let expression = "a == 'x' && b";
        for (text, key, expected) in [
            ("- rule: a == 'x' && b\n", (1, 3), (1, 21)),
            ("- rule: \"a == 'x' && b\"  # why\n", (1, 3), (1, 22)),
            ("- rule: 'a == ''x'' && b'\n", (1, 3), (1, 24)),
            ("- rule: >-\n    a == 'x'\n    && b\n  message: x\n", (1, 3), (3, 8)),
            ("- rule: |-\n    a == 'x' && b\n", (1, 3), (2, 17)),
            ("- rule:\n    a == 'x'\n    && b\n", (1, 3), (3, 8)),
            ("- {name: a, rule: a == 'x' && b}\n", (1, 13), (1, 31)),
            ("- rule: \"a\\x20== 'x' && b\"\n", (1, 3), (1, 3)),
        ] {
            assert_eq!(found(text, key, expression, "b"), expected, "{text:?}");
        }
        assert_eq!(found("a: \"x == \\\"y\\\" || z\"\n", (1, 1), "x == \"y\" || z", "z"), (1, 19));
        assert_eq!(found("a: 'ö' + b\n", (9, 1), "'ö' + b", "b"), (9, 1));
    }

    #[test]
    fn an_expression_ends_with_its_last_line() {
        let text = "- rule: >-\n    a\n    && b\n  message: x\n";
        assert_eq!(last_line(text, Position { line: 1, column: 3 }, "a && b"), 3);
    }
}
