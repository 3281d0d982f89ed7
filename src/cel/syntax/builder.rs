//! Builds the tree during parsing, and collects errors in expressions that are syntactically correct.

use std::collections::HashMap;

use crate::source::Span;

use super::ast::{Ast, Comprehension, Entry, Expr, ExprId, Literal, MacroCall};
use crate::limits::MAX_EXPRESSIONS;

/// A mistake that the grammar does not know, and the offset of its place.
#[derive(Debug)]
pub(crate) struct Mistake {
    pub(crate) message: String,
    pub(crate) at: u32,
}

/// The tree under construction.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    exprs: Vec<Expr>,
    spans: Vec<Span>,
    anchors: Vec<u32>,
    pub(crate) macro_calls: HashMap<ExprId, MacroCall>,
    pub(crate) mistakes: Vec<Mistake>,
    /// Macros that use an argument twice, one within the other, double the tree each time; this one grew too large.
    pub(crate) oversized: bool,
}

impl Builder {
    pub(crate) fn add(&mut self, expr: Expr, span: Span, anchor: u32) -> ExprId {
        let id = ExprId(u32::try_from(self.exprs.len()).unwrap_or(u32::MAX));
        self.exprs.push(expr);
        self.spans.push(span);
        self.anchors.push(anchor);
        id
    }

    pub(crate) fn mistake(&mut self, at: u32, message: impl Into<String>) {
        self.mistakes.push(Mistake { message: message.into(), at });
    }

    /// Stands where an expression could not be read; only trees that are thrown away hold it.
    pub(crate) fn missing(&mut self, at: u32) -> ExprId {
        self.add(Expr::Literal(Literal::Null), Span { start: at, end: at }, at)
    }

    pub(crate) fn expr(&self, id: ExprId) -> Option<&Expr> {
        self.exprs.get(id.0 as usize)
    }

    pub(crate) fn span(&self, id: ExprId) -> Span {
        self.spans.get(id.0 as usize).copied().unwrap_or_default()
    }

    pub(crate) fn anchor(&self, id: ExprId) -> u32 {
        self.anchors.get(id.0 as usize).copied().unwrap_or_default()
    }

    pub(crate) fn finish(self, root: ExprId) -> Ast {
        Ast {
            exprs: self.exprs,
            spans: self.spans,
            anchors: self.anchors,
            macro_calls: self.macro_calls,
            root,
        }
    }

    /// A copy of an expression and everything in it, for macros that use an argument twice.
    pub(crate) fn copy(&mut self, id: ExprId) -> ExprId {
        if self.exprs.len() > MAX_EXPRESSIONS {
            self.oversized = true;
            return id;
        }
        let Some(expr) = self.expr(id).cloned() else { return id };
        let expr = match expr {
            Expr::Literal(_) | Expr::Ident(_) => expr,
            Expr::Select { operand, field, test_only } => {
                Expr::Select { operand: self.copy(operand), field, test_only }
            }
            Expr::Call { function, target, args } => Expr::Call {
                function,
                args: args.iter().map(|arg| self.copy(*arg)).collect(),
                target: target.map(|target| self.copy(target)),
            },
            Expr::List { elements, optional } => Expr::List {
                elements: elements.iter().map(|element| self.copy(*element)).collect(),
                optional,
            },
            Expr::Map(entries) => Expr::Map(self.copy_entries(&entries)),
            Expr::Struct { name, entries } => Expr::Struct { name, entries: self.copy_entries(&entries) },
            Expr::Comprehension(fold) => Expr::Comprehension(self.copy_comprehension(*fold)),
        };
        let (span, anchor) = (self.span(id), self.anchor(id));
        self.add(expr, span, anchor)
    }

    fn copy_entries(&mut self, entries: &[Entry]) -> Box<[Entry]> {
        let copy = |entry: &Entry| Entry {
            key: self.copy(entry.key),
            value: self.copy(entry.value),
            optional: entry.optional,
        };
        entries.iter().map(copy).collect()
    }

    fn copy_comprehension(&mut self, fold: Comprehension) -> Box<Comprehension> {
        Box::new(Comprehension {
            range: self.copy(fold.range),
            accu_init: self.copy(fold.accu_init),
            condition: self.copy(fold.condition),
            step: self.copy(fold.step),
            result: self.copy(fold.result),
            ..fold
        })
    }
}
