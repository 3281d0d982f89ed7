//! Errors of the author as data: a message and a span. Drawing them is [`crate::diagnostic`]'s caller's business, but
//! for cel-go's own caret block, which is part of kube-apiserver's answer.

use crate::source::Span;

/// One finding of the parser or the checker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// cel-go's words, without position: `undeclared reference to 'x' (in container '')`.
    pub message: String,
    pub span: Span,
}
