//! Parses the text form of label selectors as Kubernetes does.

use super::{Requirement, SelectorOperator};
use crate::labels;
use crate::status::StatusCause;

/// Why a text is not a label selector, with the messages of Kubernetes' parser.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SelectorError {
    /// Another token was expected.
    #[error("found '{found}', expected: {expected}")]
    Unexpected {
        /// The token that was found; empty at the end of the text.
        found: String,
        /// The expected tokens.
        expected: &'static str,
    },
    /// An operator that needs a list is not followed by one.
    #[error("found '{0}' expected: '('")]
    NoList(String),
    /// A key or a value is invalid.
    #[error("{0}")]
    Invalid(StatusCause),
    /// A requirement is invalid.
    #[error("unable to parse requirement: {0}")]
    Requirement(Box<Self>),
}

/// Parses the requirements, sorted by key.
///
/// # Errors
/// As [`LabelSelector::parse`](super::LabelSelector::parse).
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, SelectorError> {
    Parser { rest: text.trim_start() }.requirements()
}

fn check(requirement: &Requirement) -> Result<(), SelectorError> {
    if let Some(why) = labels::in_one(&labels::key(&requirement.key)) {
        return Err(SelectorError::Invalid(StatusCause::invalid(
            "<nil>",
            &requirement.key.as_str().into(),
            &why,
        )));
    }
    for (index, value) in requirement.values.iter().enumerate() {
        if let Some(why) = labels::in_one(&labels::value(value)) {
            let field = format!("values[{index}][{}]", requirement.key);
            return Err(SelectorError::Invalid(StatusCause::invalid(field, &value.as_str().into(), &why)));
        }
    }
    if matches!(requirement.operator, SelectorOperator::GreaterThan | SelectorOperator::LessThan) {
        let value = requirement.values.first().map(String::as_str).unwrap_or_default();
        if value.parse::<i64>().is_err() {
            let field = "values[0]";
            let why = "for 'Gt', 'Lt' operators, the value must be an integer";
            return Err(SelectorError::Invalid(StatusCause::invalid(field, &value.into(), why)));
        }
    }
    Ok(())
}

/// The symbols; longer ones precede their prefixes.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

/// Splits a text into tokens: a word, a symbol, or an empty one at the end.
struct Parser<'t> {
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> &'t str {
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| self.rest.starts_with(**symbol)) {
            return symbol;
        }
        let end = |c: char| c.is_whitespace() || "=!(),><".contains(c);
        self.rest.find(end).and_then(|end| self.rest.get(..end)).unwrap_or(self.rest)
    }

    fn next(&mut self) -> &'t str {
        let part = self.peek();
        self.rest = self.rest.get(part.len()..).unwrap_or_default().trim_start();
        part
    }

    fn requirements(mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut requirements = Vec::new();
        while !self.peek().is_empty() {
            if self.peek() != "!" && !is_word(self.peek()) {
                return Err(unexpected(self.peek(), "!, identifier, or 'end of string'"));
            }
            let parsed = self.requirement().and_then(|requirement| check(&requirement).map(|()| requirement));
            requirements.push(parsed.map_err(|error| SelectorError::Requirement(Box::new(error)))?);
            match self.next() {
                "" => {}
                "," if self.peek() == "!" || is_word(self.peek()) => {}
                "," => return Err(unexpected(self.peek(), "identifier after ','")),
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
        requirements.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(requirements)
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let absent = self.peek() == "!";
        if absent {
            self.next();
        }
        let key = self.word()?;
        if absent {
            return Ok(Requirement::new(key, SelectorOperator::DoesNotExist, Vec::new()));
        }
        let (operator, list) = match self.peek() {
            "" | "," => return Ok(Requirement::new(key, SelectorOperator::Exists, Vec::new())),
            "=" | "==" => (SelectorOperator::In, false),
            "!=" => (SelectorOperator::NotIn, false),
            ">" => (SelectorOperator::GreaterThan, false),
            "<" => (SelectorOperator::LessThan, false),
            "in" => (SelectorOperator::In, true),
            "notin" => (SelectorOperator::NotIn, true),
            other => return Err(unexpected(other, "in, notin, =, ==, !=, gt, lt")),
        };
        self.next();
        let values = match self.peek() {
            _ if list => self.values()?,
            "" | "," => vec![String::new()],
            _ => vec![self.word()?],
        };
        Ok(Requirement::new(key, operator, values))
    }

    fn word(&mut self) -> Result<String, SelectorError> {
        let part = self.next();
        if is_word(part) { Ok(part.to_owned()) } else { Err(unexpected(part, "identifier")) }
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        match self.next() {
            "(" => {}
            other => return Err(SelectorError::NoList(other.to_owned())),
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                "," if matches!(self.peek(), "," | ")") => values.push(String::new()),
                "," => {}
                ")" => break,
                word if is_word(word) => {
                    values.push(word.to_owned());
                    if !matches!(self.peek(), "," | ")") {
                        return Err(unexpected(self.peek(), "',' or ')'"));
                    }
                }
                other => return Err(unexpected(other, "',', ')' or identifier")),
            }
        }
        if values.is_empty() {
            values.push(String::new());
        }
        // Upstream keeps a sorted set.
        values.sort_unstable();
        values.dedup();
        Ok(values)
    }
}

fn is_word(part: &str) -> bool {
    !part.is_empty() && !SYMBOLS.contains(&part)
}

fn unexpected(found: &str, expected: &'static str) -> SelectorError {
    SelectorError::Unexpected { found: found.to_owned(), expected }
}
