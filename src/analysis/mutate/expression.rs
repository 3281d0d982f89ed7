//! Generates the mutants of one expression from its syntax tree, before macro expansion.

use std::collections::HashSet;

use admit_cel::Span;
use admit_cel::syntax::{Ast, Expr, ExprId, Literal, Rewrite};

use super::mutant::Operator;

/// A mutated expression.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Changed {
    pub(super) operator: Operator,
    pub(super) span: Span,
    pub(super) was: String,
    pub(super) becomes: String,
    pub(super) whole: String,
}

/// A subexpression and its context.
#[derive(Clone, Copy, Debug)]
struct Site {
    id: ExprId,
    /// It is a condition: its value is a boolean that decides something.
    decides: bool,
    /// Removing it is the same as making it true, since it is an operand of a chain.
    is_clause: bool,
}

/// What the value of an expression is used for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Purpose {
    /// It is a boolean that decides.
    Rule,
    /// Other expressions use it.
    Value,
    /// It mutates objects; the given expression would change nothing.
    Mutation(&'static str),
}

/// Returns every mutant of an expression.
pub(super) fn changes(ast: &Ast, text: &str, purpose: Purpose) -> Vec<Changed> {
    let mut made = Made { ast, text, seen: HashSet::from([ast.to_string()]), changed: Vec::new() };
    match purpose {
        Purpose::Rule => made.whole_rule(),
        Purpose::Value => {}
        Purpose::Mutation(nothing) => made.nothing_instead(nothing),
    }
    let decides = purpose == Purpose::Rule;
    let mut open = vec![Site { id: ast.root(), decides, is_clause: decides }];
    while let Some(site) = open.pop() {
        made.of(site);
        // A stack: the last part pushed is visited first, so the order is that of the text.
        let mut parts = parts(ast, site);
        parts.reverse();
        open.extend(parts);
    }
    made.changed.sort_by_key(|changed| (changed.span.start, changed.operator));
    made.changed
}

/// Returns the subexpressions of a part, as written.
fn parts(ast: &Ast, site: Site) -> Vec<Site> {
    let plain = |id: ExprId| Site { id, decides: false, is_clause: false };
    let deciding = |id: ExprId, is_clause: bool| Site { id, decides: true, is_clause };
    match &*ast.written(site.id) {
        Expr::Literal(_) | Expr::Ident(_) | Expr::Comprehension(_) => Vec::new(),
        Expr::Select { operand, .. } => vec![plain(*operand)],
        Expr::Call { function, target, args } => match (&**function, target, &**args) {
            ("_&&_", None, [left, right]) => vec![deciding(*left, true), deciding(*right, true)],
            ("_||_", None, [left, right]) => vec![deciding(*left, false), deciding(*right, false)],
            // Negating the operand equals removing the negation, and replacing it by a constant equals dropping an operand of `||`.
            ("!_", None, [operand]) => vec![Site { id: *operand, decides: false, is_clause: true }],
            ("_?_:_", None, [condition, then, otherwise]) => {
                let branch = |id| Site { id, decides: site.decides, is_clause: false };
                vec![deciding(*condition, true), branch(*then), branch(*otherwise)]
            }
            (name, Some(target), [.., last]) if is_fold(ast, site.id) => {
                let last = if name.starts_with("map") || name.starts_with("transform") {
                    plain(*last)
                } else {
                    deciding(*last, false)
                };
                vec![plain(*target), last]
            }
            _ => target.iter().chain(args.iter()).map(|id| plain(*id)).collect(),
        },
        Expr::List { elements, .. } => elements.iter().map(|id| plain(*id)).collect(),
        Expr::Map(entries) | Expr::Struct { entries, .. } => {
            entries.iter().flat_map(|entry| [plain(entry.key), plain(entry.value)]).collect()
        }
    }
}

/// Reports whether a macro iterates over a list or map there.
fn is_fold(ast: &Ast, id: ExprId) -> bool {
    matches!(ast.expr(id), Expr::Comprehension(_))
}

/// Returns the replacements of a comparison operator: with the boundary flipped, and the opposite.
fn comparisons(function: &str) -> &'static [&'static str] {
    match function {
        "_==_" => &["_!=_"],
        "_!=_" => &["_==_"],
        "_<_" => &["_<=_", "_>=_"],
        "_<=_" => &["_<_", "_>_"],
        "_>_" => &["_>=_", "_<=_"],
        "_>=_" => &["_>_", "_<_"],
        _ => &[],
    }
}

struct Made<'a> {
    ast: &'a Ast,
    text: &'a str,
    /// Expressions generated so far, to drop duplicates.
    seen: HashSet<String>,
    changed: Vec<Changed>,
}

impl Made<'_> {
    fn of(&mut self, site: Site) {
        let written = self.ast.written(site.id);
        match &*written {
            Expr::Literal(literal) => self.constant(site.id, literal),
            Expr::Call { function, target, args } => self.call(site, function, target.is_some(), args),
            Expr::Ident(_)
            | Expr::Select { .. }
            | Expr::List { .. }
            | Expr::Map(_)
            | Expr::Struct { .. }
            | Expr::Comprehension(_) => {
                if site.decides {
                    self.push(Operator::Negation, site.id, &Rewrite::Not(site.id));
                }
            }
        }
    }

    fn call(&mut self, site: Site, function: &str, is_member: bool, args: &[ExprId]) {
        let id = site.id;
        match (function, is_member, args) {
            ("_&&_" | "_||_", false, [left, right]) => {
                let other = if function == "_&&_" { "_||_" } else { "_&&_" };
                self.push_at_operator(Operator::Logic, id, &Rewrite::Function(id, other.into()));
                for (dropped, kept) in [(*left, *right), (*right, *left)] {
                    if !self.is_call_of(dropped, function) {
                        self.drop_part(id, dropped, kept);
                    }
                }
            }
            ("!_", false, [operand]) => {
                self.push(Operator::Negation, id, &Rewrite::Part { of: id, by: *operand });
            }
            ("_?_:_", false, [_, then, otherwise]) => {
                for branch in [*then, *otherwise] {
                    self.push(Operator::Clause, id, &Rewrite::Part { of: id, by: branch });
                }
            }
            (_, false, [_, _]) if !comparisons(function).is_empty() => {
                for other in comparisons(function) {
                    self.push_at_operator(Operator::Comparison, id, &Rewrite::Function(id, (*other).into()));
                }
            }
            _ => {
                if site.decides {
                    self.push(Operator::Negation, id, &Rewrite::Not(id));
                }
                let is_has = function == "has" && !is_member;
                if is_has && !site.is_clause {
                    self.push(Operator::Presence, id, &Rewrite::Literal(id, Literal::Bool(true)));
                }
                let other = match function {
                    "all" | "exists_one" | "existsOne" => Some("exists"),
                    "exists" => Some("all"),
                    _ => None,
                };
                if let Some(other) = other.filter(|_| is_fold(self.ast, id)) {
                    self.push(Operator::Quantifier, id, &Rewrite::Function(id, other.into()));
                }
            }
        }
    }

    fn constant(&mut self, id: ExprId, literal: &Literal) {
        let near: [Option<Literal>; 2] = match literal {
            Literal::Int(value) => [value.checked_add(1), value.checked_sub(1)].map(|v| v.map(Literal::Int)),
            Literal::Uint(value) => {
                [value.checked_add(1), value.checked_sub(1)].map(|v| v.map(Literal::Uint))
            }
            Literal::Double(value) => [value + 1.0, value - 1.0].map(|value| Some(Literal::Double(value))),
            Literal::Null | Literal::Bool(_) | Literal::String(_) | Literal::Bytes(_) => [None, None],
        };
        for literal in near.into_iter().flatten() {
            self.push(Operator::Constant, id, &Rewrite::Literal(id, literal));
        }
    }

    /// Replaces the whole rule by one that does nothing.
    fn whole_rule(&mut self) {
        let root = self.ast.root();
        let rewritten = self.ast.rewritten(&Rewrite::Literal(root, Literal::Bool(true)));
        let changed = Changed {
            operator: Operator::Clause,
            span: self.ast.span(root),
            was: self.shown(root),
            becomes: rewritten.part,
            whole: rewritten.whole,
        };
        self.keep(changed);
    }

    fn nothing_instead(&mut self, nothing: &str) {
        let root = self.ast.root();
        self.keep(Changed {
            operator: Operator::Clause,
            span: self.ast.span(root),
            was: self.shown(root),
            becomes: nothing.to_owned(),
            whole: nothing.to_owned(),
        });
    }

    fn drop_part(&mut self, of: ExprId, dropped: ExprId, kept: ExprId) {
        let rewritten = self.ast.rewritten(&Rewrite::Part { of, by: kept });
        // Only if it is nothing but a `has()`.
        let is_has = matches!(&*self.ast.written(dropped), Expr::Call { function, target: None, .. } if &**function == "has");
        let changed = Changed {
            operator: if is_has { Operator::Presence } else { Operator::Clause },
            span: self.ast.span(dropped),
            was: self.shown(dropped),
            becomes: String::new(),
            whole: rewritten.whole,
        };
        self.keep(changed);
    }

    fn push(&mut self, operator: Operator, id: ExprId, rewrite: &Rewrite) {
        let span = self.ast.span(id);
        self.push_at(operator, id, span, rewrite);
    }

    /// Adds a mutant whose span is the operator between two operands.
    fn push_at_operator(&mut self, operator: Operator, id: ExprId, rewrite: &Rewrite) {
        let (start, span) = (self.ast.anchor(id), self.ast.span(id));
        let span = if (span.start..span.end).contains(&start) { Span { start, end: span.end } } else { span };
        self.push_at(operator, id, span, rewrite);
    }

    fn push_at(&mut self, operator: Operator, id: ExprId, span: Span, rewrite: &Rewrite) {
        let rewritten = self.ast.rewritten(rewrite);
        let was = self.shown(id);
        self.keep(Changed { operator, span, was, becomes: rewritten.part, whole: rewritten.whole });
    }

    fn keep(&mut self, changed: Changed) {
        if self.seen.insert(changed.whole.clone()) {
            self.changed.push(changed);
        }
    }

    fn is_call_of(&self, id: ExprId, function: &str) -> bool {
        matches!(&*self.ast.written(id), Expr::Call { function: name, target: None, .. } if **name == *function)
    }

    /// Returns the text of a part on one line.
    fn shown(&self, id: ExprId) -> String {
        let words: Vec<&str> = self.ast.span(id).of(self.text).split_whitespace().collect();
        words.join(" ")
    }
}
