//! Formats expressions as text that parses to the same tree, with as few parentheses as possible.
//!
//! Macros are printed as calls, not as their expansions.

use std::fmt::{self, Write as _};

use super::ast::{Ast, Entry, Expr, ExprId, Literal};

/// The precedence of an expression; each level includes the following ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Ternary,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Member,
}

impl fmt::Display for Ast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_of(self.root))
    }
}

impl Ast {
    /// Formats one part.
    pub(super) fn text_of(&self, id: ExprId) -> String {
        let mut printer = Printer { ast: self, out: String::new() };
        printer.expr(id);
        printer.out
    }
}

struct Printer<'a> {
    ast: &'a Ast,
    out: String,
}

impl<'a> Printer<'a> {
    fn expr(&mut self, id: ExprId) {
        if let Some(call) = self.ast.macro_calls.get(&id) {
            self.call(&call.function, call.target, &call.args);
            return;
        }
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.out.push_str(name),
            Expr::Select { operand, field, .. } => {
                self.at_least(*operand, Level::Member);
                self.out.push('.');
                self.field(field);
            }
            Expr::Call { function, target, args } => match operator(function, args.len()) {
                Some(level) if target.is_none() => self.operation(id, function, args, level),
                _ => self.call(function, *target, args),
            },
            Expr::List { elements, optional } => {
                let marked = (0_u32..)
                    .zip(elements)
                    .map(|(index, element)| (*element, optional.binary_search(&index).is_ok()));
                self.separated("[", marked, "]", |this, (element, optional)| {
                    this.out.push_str(if optional { "?" } else { "" });
                    this.expr(element);
                });
            }
            Expr::Map(entries) => self.entries("{", entries, |this, key| this.expr(key)),
            Expr::Struct { name, entries } => {
                self.out.push_str(name);
                self.entries("{", entries, |this, key| {
                    if let Expr::Literal(Literal::String(field)) = this.ast.expr(key) {
                        this.field(field);
                    }
                });
            }
            Expr::Comprehension(fold) => {
                let parts = [fold.range, fold.accu_init, fold.condition, fold.step, fold.result];
                self.separated("@fold(", parts.into_iter(), ")", Self::expr);
            }
        }
    }

    fn at_least(&mut self, id: ExprId, level: Level) {
        if self.level(id) >= level { self.expr(id) } else { self.nested(id) }
    }

    fn nested(&mut self, id: ExprId) {
        self.out.push('(');
        self.expr(id);
        self.out.push(')');
    }

    fn level(&self, id: ExprId) -> Level {
        if self.ast.macro_calls.contains_key(&id) {
            return Level::Member;
        }
        match self.ast.expr(id) {
            Expr::Call { function, target: None, args } => {
                operator(function, args.len()).unwrap_or(Level::Member)
            }
            _ => Level::Member,
        }
    }

    fn operation(&mut self, id: ExprId, function: &str, args: &[ExprId], level: Level) {
        match (function, args) {
            ("_?_:_", [condition, then, otherwise]) => {
                self.at_least(*condition, Level::Or);
                self.out.push_str(" ? ");
                self.at_least(*then, Level::Or);
                self.out.push_str(" : ");
                self.at_least(*otherwise, Level::Ternary);
            }
            ("_[_]" | "_[?_]", [operand, index]) => {
                self.at_least(*operand, Level::Member);
                self.out.push_str(if function == "_[_]" { "[" } else { "[?" });
                self.expr(*index);
                self.out.push(']');
            }
            ("_?._", [operand, field]) => {
                self.at_least(*operand, Level::Member);
                self.out.push_str(".?");
                if let Expr::Literal(Literal::String(field)) = self.ast.expr(*field) {
                    self.field(field);
                }
            }
            ("!_" | "-_", [operand]) => {
                self.out.push_str(function.trim_end_matches('_'));
                // A minus before a signed number would be part of the number.
                if self.starts_with_number(*operand) {
                    self.nested(*operand);
                } else {
                    self.at_least(*operand, Level::Member);
                }
            }
            ("_&&_" | "_||_", _) => self.chain(id, function, level),
            (_, [left, right]) => {
                self.at_least(*left, level);
                self.symbol(function);
                self.at_least(*right, next(level));
            }
            _ => self.call(function, None, args),
        }
    }

    /// Whether an operand that needs no parentheses begins with a number, which would absorb a sign.
    fn starts_with_number(&self, mut id: ExprId) -> bool {
        while self.level(id) == Level::Member {
            let leftmost = match (self.ast.macro_calls.get(&id), self.ast.expr(id)) {
                (Some(call), _) => call.target,
                (None, Expr::Literal(literal)) => {
                    return matches!(literal, Literal::Int(_) | Literal::Double(_));
                }
                (None, Expr::Select { operand, .. }) => Some(*operand),
                (None, Expr::Call { function, target: None, args }) => {
                    args.first().copied().filter(|_| operator(function, args.len()).is_some())
                }
                (None, Expr::Call { target, .. }) => *target,
                _ => None,
            };
            let Some(leftmost) = leftmost else { break };
            id = leftmost;
        }
        false
    }

    /// The parser balances a chain of one logical operator, so it is printed as a chain only if the tree has that balance; else the
    /// halves are in parentheses.
    fn chain(&mut self, id: ExprId, function: &str, level: Level) {
        let mut terms = Vec::new();
        self.terms(id, function, &mut terms);
        if self.is_balanced(id, function, terms.len()) {
            for (index, term) in terms.into_iter().enumerate() {
                if index > 0 {
                    self.symbol(function);
                }
                self.at_least(term, next(level));
            }
        } else if let Some((left, right)) = self.halves(id, function) {
            self.at_least(left, next(level));
            self.symbol(function);
            self.at_least(right, next(level));
        }
    }

    fn halves(&self, id: ExprId, function: &str) -> Option<(ExprId, ExprId)> {
        match self.ast.expr(id) {
            Expr::Call { function: name, target: None, args } if **name == *function => match **args {
                [left, right] => Some((left, right)),
                _ => None,
            },
            _ => None,
        }
    }

    fn terms(&self, id: ExprId, function: &str, out: &mut Vec<ExprId>) {
        match self.halves(id, function) {
            Some((left, right)) => {
                self.terms(left, function, out);
                self.terms(right, function, out);
            }
            None => out.push(id),
        }
    }

    fn is_balanced(&self, id: ExprId, function: &str, terms: usize) -> bool {
        let Some((left, right)) = self.halves(id, function) else { return terms == 1 };
        // Of n operators, the middle one is the root: n / 2 come before it.
        let before = (terms.saturating_sub(1) / 2).saturating_add(1);
        terms > 1
            && self.is_balanced(left, function, before)
            && self.is_balanced(right, function, terms.saturating_sub(before))
    }

    fn symbol(&mut self, function: &str) {
        let symbol = if function == "@in" { "in" } else { function.trim_matches('_') };
        self.out.push(' ');
        self.out.push_str(symbol);
        self.out.push(' ');
    }

    fn call(&mut self, function: &str, target: Option<ExprId>, args: &[ExprId]) {
        if let Some(target) = target {
            self.at_least(target, Level::Member);
            self.out.push('.');
        }
        self.out.push_str(function);
        self.separated("(", args.iter().copied(), ")", Self::expr);
    }

    fn entries(&mut self, open: &str, entries: &'a [Entry], key: impl Fn(&mut Self, ExprId)) {
        self.separated(open, entries.iter(), "}", |this, entry| {
            this.out.push_str(if entry.optional { "?" } else { "" });
            key(this, entry.key);
            this.out.push_str(": ");
            this.expr(entry.value);
        });
    }

    fn separated<T>(
        &mut self,
        open: &str,
        items: impl Iterator<Item = T>,
        close: &str,
        print: impl Fn(&mut Self, T),
    ) {
        self.out.push_str(open);
        for (index, item) in items.enumerate() {
            self.out.push_str(if index > 0 { ", " } else { "" });
            print(self, item);
        }
        self.out.push_str(close);
    }

    fn field(&mut self, name: &str) {
        let plain = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
            && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        let quote = if plain { "" } else { "`" };
        let _ = write!(self.out, "{quote}{name}{quote}");
    }

    fn literal(&mut self, literal: &Literal) {
        // Writing to a string cannot fail.
        let _ = match literal {
            Literal::Null => self.out.write_str("null"),
            Literal::Bool(value) => write!(self.out, "{value}"),
            Literal::Int(value) => write!(self.out, "{value}"),
            Literal::Uint(value) => write!(self.out, "{value}u"),
            Literal::Double(value) => write!(self.out, "{value:?}"),
            Literal::String(text) => {
                self.string(text);
                Ok(())
            }
            Literal::Bytes(bytes) => {
                self.bytes(bytes);
                Ok(())
            }
        };
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.out.extend(['\\', c]),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                c if c.is_control() => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(c));
                }
                c => self.out.push(c),
            }
        }
        self.out.push('"');
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.out.push_str("b\"");
        for byte in bytes {
            match byte {
                b'"' | b'\\' => self.out.extend(['\\', char::from(*byte)]),
                b' '..=b'~' => self.out.push(char::from(*byte)),
                byte => {
                    let _ = write!(self.out, "\\x{byte:02x}");
                }
            }
        }
        self.out.push('"');
    }
}

/// The level of an operator; none for other functions.
fn operator(function: &str, args: usize) -> Option<Level> {
    Some(match (function, args) {
        ("_?_:_", 3) => Level::Ternary,
        ("_||_", 2) => Level::Or,
        ("_&&_", 2) => Level::And,
        ("_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "@in", 2) => Level::Relation,
        ("_+_" | "_-_", 2) => Level::Sum,
        ("_*_" | "_/_" | "_%_", 2) => Level::Product,
        ("!_" | "-_", 1) => Level::Unary,
        ("_[_]" | "_[?_]" | "_?._", 2) => Level::Member,
        _ => return None,
    })
}

const fn next(level: Level) -> Level {
    match level {
        Level::Ternary => Level::Or,
        Level::Or => Level::And,
        Level::And => Level::Relation,
        Level::Relation => Level::Sum,
        Level::Sum => Level::Product,
        Level::Product => Level::Unary,
        Level::Unary | Level::Member => Level::Member,
    }
}
