//! Represents errors in an expression as data: a message, its position, and cel-go's rendering of it, which is part of kube-apiserver's
//! answer. Any other rendering is left to the caller.

use std::fmt;

use crate::source::{Position, Source, Span};

/// An error of the parser or the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// cel-go's words, without position: `undeclared reference to 'x' (in container '')`.
    pub message: String,
    /// What it is about.
    pub span: Span,
    /// The position that cel-go reports; None for errors about the whole text (a limit).
    pub position: Option<Position>,
}

/// Why a text is not a valid expression: at least one error, in order of position.
///
/// ```
/// use admit_cel::{Env, Mode, Version};
///
/// let error = Env::kubernetes(Version(1, 36), Mode::New).compile("1 +\n'a'").unwrap_err();
/// let found = &error.diagnostics()[0];
/// assert!(found.message.starts_with("found no matching overload for '_+_'"));
/// assert_eq!(found.position.map(|at| (at.line, at.column)), Some((1, 3)));
/// ```
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
    /// The findings, in the order of their places; at most a hundred.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}

/// Collects errors. The first hundred are kept; others are only counted, at no further cost.
#[derive(Debug)]
pub(crate) struct Findings<'s> {
    source: Source<'s>,
    kept: Vec<Diagnostic>,
    count: usize,
}

impl<'s> Findings<'s> {
    pub(crate) const fn new(source: Source<'s>) -> Self {
        Self { source, kept: Vec::new(), count: 0 }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an error about a part of the text, at the offset that messages report.
    pub(crate) fn add(&mut self, span: Span, anchor: u32, message: impl FnOnce() -> String) {
        if self.counts() {
            let position = Some(self.source.position(anchor));
            self.kept.push(Diagnostic { message: message(), span, position });
        }
    }

    /// Adds an error about the text as a whole.
    pub(crate) fn add_whole(&mut self, message: String) {
        if self.counts() {
            self.kept.push(Diagnostic { message, span: Span::default(), position: None });
        }
    }

    /// Sorts the findings by place, keeping the order of those at one place, and draws them over the source.
    pub(crate) fn into_error(self) -> CompileError {
        let Self { source, kept: mut diagnostics, count } = self;
        diagnostics.sort_by_key(|d| d.position.map_or((0, 0), |p| (p.line, p.column)));
        let mut text = String::new();
        for diagnostic in &diagnostics {
            if !text.is_empty() {
                text.push('\n');
            }
            draw(&mut text, &source, diagnostic);
        }
        if count > MAX_SHOWN {
            let more = count.saturating_sub(MAX_SHOWN);
            text.push_str(&format!("\n{more} more errors were truncated"));
        }
        CompileError { diagnostics, text }
    }

    /// Counts a finding; whether it is kept.
    fn counts(&mut self) -> bool {
        self.count = self.count.saturating_add(1);
        self.count <= MAX_SHOWN
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
