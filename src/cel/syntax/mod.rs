//! Text to [`Ast`]: lexer, grammar, macro expansion, and the printer that gives the text back.

pub mod ast;

pub use ast::{Ast, Comprehension, Entry, Expr, ExprId, Literal};
