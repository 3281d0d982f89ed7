//! Text to [`Ast`]: lexer, grammar, macro expansion, and the printer that gives the text back.
//!
//! Input: a text and [`Options`]. Output: a tree, or every error that cel-go would tell, in its words and places.
//! Bounded: the text, its nesting, the errors told and the repairs attempted have limits.

pub mod ast;
mod builder;
mod grammar;
mod lexer;
mod literal;
pub mod macros;
mod parser;
mod primary;
mod printer;
mod recovery;
mod token;

pub use ast::{Ast, Comprehension, Entry, Expr, ExprId, Literal};
pub use macros::Macro;

use crate::diagnostic::{CompileError, Diagnostic};
use crate::limits::{MAX_RECURSION_DEPTH, MAX_SOURCE_CODE_POINTS};
use crate::source::{Source, Span};

use parser::Parser;

/// What the parser accepts beyond the core of the language.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `a.?b`, `a[?b]`, `[?a]`, `{?a: b}`.
    pub optional_syntax: bool,
    /// Field names in backticks.
    pub escaped_identifiers: bool,
    /// The calls that are replaced.
    pub macros: Vec<&'static Macro>,
}

/// Parses an expression and expands its macros.
///
/// # Errors
///
/// When the text is no expression, or is beyond a limit.
pub fn parse(source: &Source<'_>, options: &Options) -> Result<Ast, CompileError> {
    let size = source.text().chars().count();
    if size > MAX_SOURCE_CODE_POINTS {
        let message =
            format!("expression code point size exceeds limit: size: {size}, limit {MAX_SOURCE_CODE_POINTS}");
        return Err(CompileError::new(source, vec![whole(message)]));
    }
    let mut parser = Parser::new(*source, options);
    let outcome = parser.start();
    let mut found: Vec<Diagnostic> = parser
        .tokens
        .errors
        .drain(..)
        .map(|error| {
            at(
                source,
                Span { start: error.start, end: error.end },
                format!("Syntax error: {}", error.message),
            )
        })
        .collect();
    match outcome {
        Ok(parsed) => {
            found.extend(
                parser
                    .build
                    .mistakes
                    .drain(..)
                    .map(|mistake| at(source, Span { start: mistake.at, end: mistake.at }, mistake.message)),
            );
            if parsed.height > MAX_RECURSION_DEPTH {
                found.push(whole("max recursion depth exceeded".to_owned()));
            }
            if parser.build.oversized {
                found.push(whole(
                    "expression is too large: its macros expand to too many expressions".to_owned(),
                ));
            }
            if found.is_empty() {
                return Ok(parser.build.finish(parsed.id));
            }
        }
        Err(stop) => found.extend(stop.message().map(whole)),
    }
    Err(CompileError::new(source, found))
}

fn at(source: &Source<'_>, span: Span, message: String) -> Diagnostic {
    Diagnostic { message, span, position: Some(source.position(span.start)) }
}

fn whole(message: String) -> Diagnostic {
    Diagnostic { message, span: Span::default(), position: None }
}
