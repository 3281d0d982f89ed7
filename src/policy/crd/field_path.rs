//! Parses the `fieldPath` of a rule and the JSON paths of selectable fields (`.a.b`, `.labels['x']`), and resolves
//! them in a schema.

use crate::read::path::Path;
use crate::schema::Schema;

/// Whether `['name']` is allowed in a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subscripts {
    Allowed,
    Forbidden,
}

/// A path that leads somewhere.
#[derive(Clone, Debug)]
pub struct Resolved<'s> {
    /// The path as error messages print it, relative to the schema: `a.b[x]`.
    pub text: String,
    /// The first step.
    pub root: String,
    pub schema: Option<&'s Schema>,
}

/// Why a path is invalid or leads nowhere, in the API server's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldPathError {
    #[error("unexpected end of JSON path")]
    End,
    /// `['name']` is not allowed here.
    #[error("array notation is not allowed")]
    Subscript,
    /// A step begins with something else.
    #[error("expected [ or . but got: {0}")]
    NoStep(String),
    /// A bracket is not closed.
    #[error("expected ] but got {0}")]
    OpenBracket(String),
    /// The content of the brackets is not a quoted string.
    #[error("expected single quoted string but got {0}")]
    Unquoted(String),
    /// A backslash before a character that it cannot escape.
    #[error("invalid string literal: invalid escape char \\{0}")]
    Escape(char),
    /// The schema has no such field.
    #[error("does not refer to a valid field")]
    Nowhere,
}

/// Resolves a path.
///
/// # Errors
/// What is wrong with it.
pub fn resolve<'s>(
    path: &str,
    schema: &'s Schema,
    subscripts: Subscripts,
) -> Result<Resolved<'s>, FieldPathError> {
    let mut tokens = Tokens { rest: path };
    let mut found = Resolved { text: Path::Nil.to_string(), root: String::new(), schema: Some(schema) };
    let mut steps = 0_usize;
    while let Some(token) = tokens.next() {
        let name = match token {
            "." => tokens.next().ok_or(FieldPathError::End)?.to_owned(),
            "[" if subscripts == Subscripts::Forbidden => {
                return Err(FieldPathError::Subscript);
            }
            "[" => {
                let quoted = tokens.next().ok_or(FieldPathError::End)?;
                unquote(quoted)?
            }
            other => return Err(FieldPathError::NoStep(other.to_owned())),
        };
        step(&mut found, &name, steps == 0)?;
        steps = steps.saturating_add(1);
        if token == "[" {
            match tokens.next() {
                None => return Err(FieldPathError::End),
                Some("]") => {}
                Some(other) => return Err(FieldPathError::OpenBracket(other.to_owned())),
            }
        }
    }
    Ok(found)
}

fn step(found: &mut Resolved<'_>, name: &str, first: bool) -> Result<(), FieldPathError> {
    let schema = found.schema.ok_or(FieldPathError::Nowhere)?;
    let named = !schema.properties.is_empty();
    let next = if named {
        Some(schema.properties.get(name).ok_or(FieldPathError::Nowhere)?)
    } else if schema.additional_properties.is_some() {
        schema.additional_schema()
    } else {
        return Err(FieldPathError::Nowhere);
    };
    let before = if first { Path::Nil } else { Path::Root(&found.text) };
    let text = if named { before.child(name) } else { before.key(name) }.to_string();
    if first {
        found.root.clone_from(&text);
    }
    found.text = text;
    found.schema = next;
    Ok(())
}

/// Splits at `.`, `[` and `]`; a quoted string is one token.
struct Tokens<'p> {
    rest: &'p str,
}

impl<'p> Iterator for Tokens<'p> {
    type Item = &'p str;

    fn next(&mut self) -> Option<&'p str> {
        let first = self.rest.chars().next()?;
        let end = match first {
            '\'' => {
                let mut before = first;
                let close = self.rest.char_indices().skip(1).find(|(_, c)| {
                    let closes = *c == '\'' && before != '\\';
                    before = *c;
                    closes
                });
                close.map_or(self.rest.len(), |(at, _)| at.saturating_add(1))
            }
            '.' | '[' | ']' => 1,
            _ => self.rest.find(['.', '[', ']']).unwrap_or(self.rest.len()),
        };
        let (token, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        Some(token)
    }
}

/// Returns the content of a single-quoted string.
fn unquote(token: &str) -> Result<String, FieldPathError> {
    let inner = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    let inner = inner.ok_or_else(|| FieldPathError::Unquoted(token.to_owned()))?;
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        text.push(match chars.next() {
            Some('a') => '\x07',
            Some('b') => '\x08',
            Some('f') => '\x0c',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\x0b',
            Some('\'') => '\'',
            Some('\\') | None => '\\',
            Some(other) => return Err(FieldPathError::Escape(other)),
        });
    }
    Ok(text)
}
