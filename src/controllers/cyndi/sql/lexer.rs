//! Splits SQL of users into statements of tokens, by the rules of PostgreSQL. Pure.

use super::SqlError;
use crate::controllers::cyndi::names::{SCHEMA, Table};

/// The longest script or condition: many times what indexes of a table with twelve columns need.
pub(super) const MAX_TEXT: usize = 64 * 1024;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// An unquoted identifier or keyword in lower case.
    Word(String),
    /// A quoted identifier.
    Quoted(String),
    /// A string or a number.
    Literal,
    Open,
    Close,
    Sign(char),
}

#[derive(Debug)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
}

/// Walks over the tokens of a statement.
pub(super) struct Words<'a>(pub(super) &'a [Token]);

impl Words<'_> {
    pub(super) fn take(&mut self, fits: impl Fn(&Token) -> bool) -> bool {
        match self.0.split_first() {
            Some((first, rest)) if fits(first) => {
                self.0 = rest;
                true
            }
            Some(_) | None => false,
        }
    }

    pub(super) fn word(&mut self, wanted: &str) -> bool {
        self.take(|token| *token == Token::Word(wanted.to_owned()))
    }

    pub(super) fn name(&mut self) -> bool {
        self.take(|token| matches!(token, Token::Word(_) | Token::Quoted(_)))
    }

    pub(super) fn called(&mut self, name: &str) -> bool {
        self.take(|token| matches!(token, Token::Word(word) | Token::Quoted(word) if word == name))
    }

    pub(super) fn next_is(&self, token: &Token) -> bool {
        self.0.first() == Some(token)
    }

    /// Accepts `inventory.TABLE` before something that ends a name.
    pub(super) fn table(&mut self, table: &Table, only_parenthesis: bool) -> bool {
        let named = self.called(SCHEMA)
            && self.take(|token| *token == Token::Sign('.'))
            && self.called(&table.to_string());
        let ends = self.next_is(&Token::Open)
            || (!only_parenthesis && self.next_is(&Token::Word("using".to_owned())));
        named && ends
    }
}

/// Splits a script into statements. Comments are rejected.
pub(super) fn split(what: &'static str, script: &str) -> Result<Vec<Statement>, SqlError> {
    if script.len() > MAX_TEXT {
        return Err(SqlError::TooLong { what });
    }
    let unread = |why| SqlError::Unread { what, why };
    let mut statements = Vec::new();
    let (mut tokens, mut from, mut at) = (Vec::new(), 0, 0);
    while let Some(rest) = script.get(at..).filter(|rest| !rest.is_empty()) {
        let (read, token) = next_token(rest).map_err(unread)?;
        if token == Some(Token::Sign(';')) {
            finish(script.get(from..at), std::mem::take(&mut tokens), &mut statements);
            from = at + read;
        } else {
            tokens.extend(token);
        }
        at += read;
    }
    finish(script.get(from..), tokens, &mut statements);
    Ok(statements)
}

fn finish(text: Option<&str>, tokens: Vec<Token>, statements: &mut Vec<Statement>) {
    if !tokens.is_empty() {
        statements.push(Statement { text: text.unwrap_or_default().trim().to_owned(), tokens });
    }
}

/// Returns the length of the token at the start of `rest`, and its kind; None for blanks.
fn next_token(rest: &str) -> Result<(usize, Option<Token>), &'static str> {
    let mut chars = rest.chars();
    let Some(first) = chars.next() else { return Ok((0, None)) };
    let second = chars.next();
    let word = |c: char| c == '_' || c == '$' || c.is_alphanumeric();
    Ok(match first {
        '\0' => return Err("it has a NUL character"),
        c if c.is_whitespace() => (c.len_utf8(), None),
        '-' if second == Some('-') => return Err("it has a comment"),
        '/' if second == Some('*') => return Err("it has a comment"),
        // Dollar quotes, and parameters, which have no values here.
        '$' => return Err("it has a `$` outside of quotes and names"),
        // Prefixed string literals have rules of their own.
        'e' | 'E' | 'u' | 'U' | 'b' | 'B' | 'x' | 'X' | 'n' | 'N'
            if matches!(second, Some('\''))
                || rest.get(1..3) == Some("&'")
                || rest.get(1..3) == Some("&\"") =>
        {
            return Err("it has a text with a prefix, such as E'…'");
        }
        '\'' => {
            let length = closed(rest, '\'').ok_or("a text is not closed")?;
            // The meaning of a backslash depends on a setting of the server.
            if rest.get(..length).is_some_and(|text| text.contains('\\')) {
                return Err("a text has a backslash");
            }
            (length, Some(Token::Literal))
        }
        '"' => {
            let length = closed(rest, '"').ok_or("a quoted name is not closed")?;
            let name = rest.get(1..length - 1).unwrap_or_default().replace("\"\"", "\"");
            (length, Some(Token::Quoted(name)))
        }
        '(' => (1, Some(Token::Open)),
        ')' => (1, Some(Token::Close)),
        c if c.is_ascii_digit() => {
            (rest.find(|c: char| !word(c) && c != '.').unwrap_or(rest.len()), Some(Token::Literal))
        }
        c if word(c) => {
            let length = rest.find(|c: char| !word(c)).unwrap_or(rest.len());
            (length, Some(Token::Word(rest.get(..length).unwrap_or_default().to_ascii_lowercase())))
        }
        other => (other.len_utf8(), Some(Token::Sign(other))),
    })
}

/// Returns the length of a quoted token, in which a doubled quote stands for one.
fn closed(rest: &str, quote: char) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            if chars.peek().is_some_and(|(_, next)| *next == quote) {
                chars.next();
            } else {
                return Some(at + 1);
            }
        }
    }
    None
}
