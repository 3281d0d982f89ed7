//! Errors of the author as data: a message, where it stands, and cel-go's drawing of it, which is part of
//! kube-apiserver's answer. Any other drawing is the caller's business.

use std::fmt;

use crate::source::{Position, Source, Span};

/// One finding of the parser or the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// cel-go's words, without position: `undeclared reference to 'x' (in container '')`.
    pub message: String,
    /// What it is about.
    pub span: Span,
    /// What cel-go names as the place; none for errors about the whole text (a limit).
    pub position: Option<Position>,
}

/// Why a text is no expression: at least one finding, in the order of their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    diagnostics: Vec<Diagnostic>,
    text: String,
}

/// Findings that are shown; the rest is counted (cel-go `common/errors.go`).
const MAX_SHOWN: usize = 100;

/// Bytes of a source line beyond which it is not repeated (cel-go `common/error.go`).
const MAX_SNIPPET: usize = 16_384;

impl CompileError {
    /// Sorts the findings by place, keeping the order of those at one place, and draws them over the source.
    ///
    /// Of more than a hundred, the first hundred that were made are kept; the rest is told as a number.
    #[must_use]
    pub fn new(source: &Source<'_>, mut diagnostics: Vec<Diagnostic>) -> Self {
        let found = diagnostics.len();
        diagnostics.truncate(MAX_SHOWN);
        diagnostics.sort_by_key(|d| d.position.map_or((0, 0), |p| (p.line, p.column)));
        let mut text = String::new();
        for diagnostic in &diagnostics {
            if !text.is_empty() {
                text.push('\n');
            }
            draw(&mut text, source, diagnostic);
        }
        if found > MAX_SHOWN {
            let more = found.saturating_sub(MAX_SHOWN);
            text.push_str(&format!("\n{more} more errors were truncated"));
        }
        Self { diagnostics, text }
    }

    /// The findings, in the order of their places; at most a hundred.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for CompileError {}

/// `ERROR: <input>:1:4: message`, the line, and a caret under the place; characters beyond ASCII are thought wide.
fn draw(out: &mut String, source: &Source<'_>, diagnostic: &Diagnostic) {
    let Some(position) = diagnostic.position else {
        out.push_str("ERROR: <input>:-1:0: ");
        out.push_str(&diagnostic.message);
        return;
    };
    out.push_str(&format!("ERROR: <input>:{}:{}: ", position.line, position.column));
    out.push_str(&diagnostic.message);
    let Some(line) = source.line(position.line).filter(|line| line.len() <= MAX_SNIPPET) else { return };
    out.push_str("\n | ");
    out.extend(line.chars().map(|c| if c == '\t' { ' ' } else { c }));
    out.push_str("\n | ");
    let mut chars = line.chars();
    for _ in 1..position.column {
        match chars.next() {
            Some(c) => out.push(if c.is_ascii() { '.' } else { '．' }),
            None => break,
        }
    }
    out.push(if chars.next().is_none_or(|c| c.is_ascii()) { '^' } else { '＾' });
}
