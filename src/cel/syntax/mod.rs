//! Parses text to an [`Ast`]: lexer, grammar, macro expansion, and the printer that formats a tree as text.
//!
//! Input: a text and [`Options`]. Output: a tree, or every error that cel-go would report, with its messages and positions. The length
//! of the text, its nesting, the reported errors and the attempted repairs are limited.

pub(crate) mod ast;
mod builder;
mod grammar;
mod lexer;
mod literal;
pub mod macros;
mod parser;
mod primary;
mod printer;
mod recovery;
mod rewrite;
mod token;

pub use ast::{Ast, Comprehension, Entry, Expr, ExprId, Literal};
pub use macros::Macro;
pub use rewrite::{Rewrite, Rewritten};

use crate::diagnostic::{CompileError, Findings};
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
/// If the text is not a valid expression, or exceeds a limit.
pub fn parse(source: &Source<'_>, options: &Options) -> Result<Ast, CompileError> {
    let mut findings = Findings::new(*source);
    let size = source.text().chars().count();
    if size > MAX_SOURCE_CODE_POINTS {
        findings.add_whole(format!(
            "expression code point size exceeds limit: size: {size}, limit {MAX_SOURCE_CODE_POINTS}"
        ));
        return Err(findings.into_error());
    }
    let mut parser = Parser::new(*source, options);
    let outcome = parser.start();
    for error in &parser.tokens.errors {
        let span = Span { start: error.start, end: error.end };
        findings.add(span, error.start, || format!("Syntax error: {}", error.message));
    }
    match outcome {
        Ok(parsed) => {
            for mistake in parser.build.mistakes.drain(..) {
                findings.add(Span { start: mistake.at, end: mistake.at }, mistake.at, || mistake.message);
            }
            if parsed.height > MAX_RECURSION_DEPTH {
                findings.add_whole("max recursion depth exceeded".to_owned());
            }
            if parser.build.oversized {
                let message = "expression is too large: its macros expand to too many expressions";
                findings.add_whole(message.to_owned());
            }
            if findings.is_empty() {
                return Ok(parser.build.finish(parsed.id));
            }
        }
        Err(stop) => {
            if let Some(message) = stop.message() {
                findings.add_whole(message);
            }
        }
    }
    Err(findings.into_error())
}
