//! Represents the text of an expression and positions in it.

/// A half-open range of byte offsets into the source text.
///
/// ```
/// use admit_cel::Span;
///
/// let text = "(a + b) * 2";
/// assert_eq!(Span { start: 1, end: 6 }.of(text), "a + b");
/// // An operand of this multiplication begins within the parentheses.
/// assert_eq!(Span { start: 1, end: 11 }.in_parentheses(text), text);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the part of a text that the span covers; empty where it does not fit the text.
    #[must_use]
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns the part for display: with parentheses around an operand at its end, which belong to no span.
    #[must_use]
    pub fn in_parentheses(self, text: &str) -> &str {
        let (mut start, mut end) = (self.start as usize, self.end as usize);
        let (opening, closing) = unbalanced(self.of(text));
        for _ in 0..opening {
            let before = text.get(..start).unwrap_or_default().trim_end();
            let Some(before) = before.strip_suffix('(') else { break };
            start = before.len();
        }
        for _ in 0..closing {
            let after = text.get(end..).unwrap_or_default();
            let Some(rest) = after.trim_start().strip_prefix(')') else { break };
            end = text.len().saturating_sub(rest.len());
        }
        text.get(start..end).unwrap_or_default()
    }
}

/// Counts the parentheses missing before and after `part`; those in string literals do not count.
fn unbalanced(part: &str) -> (usize, usize) {
    let (mut opening, mut open) = (0_usize, 0_usize);
    let mut quote = None;
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(') => open = open.saturating_add(1),
            (None, ')') if open == 0 => opening = opening.saturating_add(1),
            (None, ')') => open = open.saturating_sub(1),
            (None, _) => {}
        }
    }
    (opening, open)
}

/// A position as error messages show it: both count from 1, columns in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 in an empty text.
    pub column: u32,
}

/// The text of an expression; at most 4 GiB, which the parser's limit of code points ensures.
///
/// ```
/// use admit_cel::Source;
///
/// let source = Source::new("a &&\nb");
/// let at = source.position(5);
/// assert_eq!((at.line, at.column), (2, 1));
/// assert_eq!((source.line(2), source.line(3)), (Some("b"), None));
/// assert_eq!(source.text().len(), 6);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Source<'s> {
    text: &'s str,
}

impl<'s> Source<'s> {
    /// Takes the text of an expression.
    #[must_use]
    pub const fn new(text: &'s str) -> Self {
        Self { text }
    }

    /// Returns the whole text.
    #[must_use]
    pub const fn text(&self) -> &'s str {
        self.text
    }

    /// Returns the position of a byte offset; an offset beyond the end means the end. Takes time linear in the offset.
    #[must_use]
    pub fn position(&self, offset: u32) -> Position {
        let before = self.text.get(..offset as usize).unwrap_or(self.text);
        let (mut line, mut column) = (1_u32, 1_u32);
        for c in before.chars() {
            if c == '\n' {
                line = line.saturating_add(1);
                column = 1;
            } else {
                column = column.saturating_add(1);
            }
        }
        // In cel-go an empty text has no column.
        if self.text.is_empty() {
            column = 0;
        }
        Position { line, column }
    }

    /// Returns a line by its number, without its line feed; None for an empty text.
    #[must_use]
    pub fn line(&self, number: u32) -> Option<&'s str> {
        if self.text.is_empty() {
            return None;
        }
        self.text.split('\n').nth(number.checked_sub(1)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn operands_keep_their_parentheses() {
        for (text, part, shown) in [
            ("a || (b && c)", "a || (b && c", "a || (b && c)"),
            ("(a || b) && c", "a || b) && c", "(a || b) && c"),
            ("x ? ( (a) ) : d", "a", "a"),
            ("f((a + (b)), c)", "a + (b", "a + (b)"),
            ("(a) == ')' + ( 'b' )", "a) == ')' + ( 'b'", "(a) == ')' + ( 'b' )"),
            ("a + b", "a + b", "a + b"),
        ] {
            let start = text.find(part).unwrap();
            let [start, end] = [start, start + part.len()].map(|at| u32::try_from(at).unwrap());
            assert_eq!(Span { start, end }.in_parentheses(text), shown, "{text}");
        }
    }
}
