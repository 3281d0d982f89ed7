//! Completes an unfinished expression, up to the cursor, so that it parses: closes open brackets, conditionals and entries. The text
//! after the cursor is ignored, so it may be anything.

use std::ops::Range;

/// What an unfinished text ends in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// Between names and operators.
    Open {
        /// The text that completes the expression, appended after an operand.
        closing: String,
        /// The position of the innermost open bracket.
        bracket: Option<usize>,
    },
    /// A string literal, whose quote is at that position.
    Text(usize),
    /// A comment, or an unmatched closing bracket.
    Nowhere,
}

struct Level {
    bracket: char,
    at: usize,
    /// The number of `?` without `:` so far.
    conditions: usize,
    /// Whether a map entry lacks its `:` so far.
    key: bool,
}

/// Determines what a text ends in, and how to close it.
pub(crate) fn end(text: &str) -> End {
    let mut levels: Vec<Level> = Vec::new();
    let mut outer = 0_usize;
    let mut chars = text.char_indices().peekable();
    let mut last = ' ';
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' | '"' => {
                let Some(behind) = aside(text, at, last) else { return End::Text(at) };
                while chars.next_if(|(next, _)| *next < behind).is_some() {}
            }
            '/' if is_comment(text, at) => {
                let Some(behind) = aside(text, at, last) else { return End::Nowhere };
                while chars.next_if(|(next, _)| *next < behind).is_some() {}
            }
            '(' | '[' | '{' => levels.push(Level { bracket: c, at, conditions: 0, key: c == '{' }),
            ')' | ']' | '}' if levels.pop().is_none() => return End::Nowhere,
            ')' | ']' | '}' => {}
            // `a.?b`, `a[?b]` and `{?a: b}` are no conditions.
            '?' if matches!(last, '.' | '[' | '{') => {}
            '?' => match levels.last_mut() {
                Some(level) => level.conditions = level.conditions.saturating_add(1),
                None => outer = outer.saturating_add(1),
            },
            ':' => match levels.last_mut() {
                Some(level) if level.conditions > 0 => level.conditions = level.conditions.saturating_sub(1),
                Some(level) => level.key = false,
                None => outer = outer.saturating_sub(1),
            },
            ',' => {
                if let Some(level) = levels.last_mut().filter(|level| level.bracket == '{') {
                    level.key = true;
                }
            }
            _ => {}
        }
        last = c;
    }
    let mut closing = String::new();
    for level in levels.iter().rev() {
        (0..level.conditions).for_each(|_| closing.push_str(" : null"));
        if level.key {
            closing.push_str(": null");
        }
        closing.push(match level.bracket {
            '(' => ')',
            '[' => ']',
            _ => '}',
        });
    }
    (0..outer).for_each(|_| closing.push_str(" : null"));
    End::Open { closing, bracket: levels.last().map(|level| level.at) }
}

/// Returns the byte ranges of string literals and comments, in order; an unterminated one extends to the end.
pub(crate) fn asides(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut behind, mut last) = (Vec::new(), 0, ' ');
    for (at, c) in text.char_indices() {
        if at < behind {
            continue;
        }
        if matches!(c, '\'' | '"') || c == '/' && is_comment(text, at) {
            behind = aside(text, at, last).unwrap_or(text.len());
            found.push(at..behind);
        }
        last = c;
    }
    found
}

fn is_comment(text: &str, at: usize) -> bool {
    text.get(at..).is_some_and(|rest| rest.starts_with("//"))
}

/// Returns the end of the string literal or comment that begins at `at` after `last`, if it is terminated.
fn aside(text: &str, at: usize, last: char) -> Option<usize> {
    let rest = text.get(at..)?;
    let quote = rest.chars().next()?;
    let length = if quote == '/' {
        rest.find('\n')?
    } else {
        let triple = rest.starts_with("'''") || rest.starts_with("\"\"\"");
        text_length(rest, quote, triple, matches!(last, 'r' | 'R'))?
    };
    Some(at.saturating_add(length))
}

/// Returns the length of the string literal at the start of `rest`; `None` if it is not terminated.
fn text_length(rest: &str, quote: char, triple: bool, is_raw: bool) -> Option<usize> {
    let mark: String = std::iter::repeat_n(quote, if triple { 3 } else { 1 }).collect();
    let mut escaped = false;
    for (at, c) in rest.char_indices().filter(|(at, _)| *at >= mark.len()) {
        if escaped {
            escaped = false;
        } else if c == '\\' && !is_raw {
            escaped = true;
        } else if rest.get(at..).is_some_and(|rest| rest.starts_with(&mark)) {
            return Some(at.saturating_add(mark.len()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{End, asides, end};

    fn open(closing: &str, bracket: Option<usize>) -> End {
        End::Open { closing: closing.to_owned(), bracket }
    }

    #[test]
    fn texts_and_comments_are_no_code() {
        assert_eq!(asides("a == 'b' // c\n + r'\\' + \"d"), [5..8, 9..13, 18..21, 24..26]);
        assert_eq!(asides("a // b"), vec![2..6]);
        assert!(asides("a / b").is_empty());
    }

    #[test]
    fn what_was_begun_is_closed() {
        assert_eq!(end("self.a"), open("", None));
        assert_eq!(end("self.all(x, x"), open(")", Some(8)));
        assert_eq!(end("a ? b"), open(" : null", None));
        assert_eq!(end("a ? b : c"), open("", None));
        assert_eq!(end("f(a ? [b"), open("] : null)", Some(6)));
        assert_eq!(end("a.?b[?c"), open("]", Some(4)));
        assert_eq!(end("{'a'"), open(": null}", Some(0)));
        assert_eq!(end("{'a': 1, b"), open(": null}", Some(0)));
        assert_eq!(end("{'a': b"), open("}", Some(0)));
        assert_eq!(end("a == 'b"), End::Text(5));
        assert_eq!(end("a == '\\'"), End::Text(5));
        assert_eq!(end("a == r'\\' && b"), open("", None));
        assert_eq!(end("'''a'b''' + c"), open("", None));
        assert_eq!(end("a // b"), End::Nowhere);
        assert_eq!(end("a)"), End::Nowhere);
    }
}
