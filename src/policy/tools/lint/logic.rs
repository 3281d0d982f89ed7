//! Finds conditions whose result follows from their form, whatever the values are: `x == x`, `a || !a`, `x != 'a' ||
//! x != 'b'`, `n > 5 && n < 3`.
//!
//! A condition is read as a formula over its comparisons. Every comparison with literals is tried with values around
//! these literals, everything else with both results; a condition that had the same result each time is constant.
//! Errors follow CEL: `&&` and `||` absorb them, and assignments that lead to an error are ignored.

use admit_cel::Source;
use admit_cel::syntax::{Ast, Comprehension, Expr, ExprId, Literal, Options, macros, parse};

use super::values::{Order, Sample, samples};

/// Combinations of values that are tried; conditions with more are left alone.
const MAX_TRIES: usize = 4096;

/// The answer of a condition that has only one.
pub(super) fn constant(text: &str) -> Option<bool> {
    let sets = [macros::STANDARD, macros::OPTIONAL, macros::TWO_VARIABLE, macros::LISTS];
    let macros = sets.into_iter().flatten().collect();
    let options = Options { optional_syntax: true, escaped_identifiers: false, macros };
    let ast = parse(&Source::new(text), &options).ok()?;
    only_answer(&ast, text, ast.root())
}

/// The same of a part of an expression.
fn only_answer(ast: &Ast, text: &str, id: ExprId) -> Option<bool> {
    let mut reader = Reader { ast, text, unknowns: Vec::new() };
    let formula = reader.formula(id);
    let domains: Vec<Vec<Sample>> = reader.unknowns.into_iter().map(Unknown::domain).collect();
    let tries = domains.iter().try_fold(1_usize, |tries, domain| tries.checked_mul(domain.len()))?;
    if tries > MAX_TRIES {
        return None;
    }
    let mut seen = Seen::default();
    try_all(&formula, &domains, &mut Vec::new(), &mut seen);
    match (seen.yes, seen.no) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        (true, true) | (false, false) => None,
    }
}

/// The results that occurred.
#[derive(Debug, Default)]
struct Seen {
    yes: bool,
    no: bool,
}

fn try_all(formula: &Formula, domains: &[Vec<Sample>], chosen: &mut Vec<Sample>, seen: &mut Seen) {
    if seen.yes && seen.no {
        return;
    }
    let Some(domain) = domains.get(chosen.len()) else {
        match formula.answer(chosen) {
            Some(true) => seen.yes = true,
            Some(false) => seen.no = true,
            None => {}
        }
        return;
    };
    for sample in domain {
        chosen.push(sample.clone());
        try_all(formula, domains, chosen, seen);
        chosen.pop();
    }
}

/// A condition over unknowns, which are numbered.
#[derive(Debug)]
enum Formula {
    Known(bool),
    /// The unknown is the answer itself.
    Answer(usize),
    /// A comparison of the unknown with a literal.
    Compared(usize, Comparison, Sample),
    /// The unknown is how two values compare.
    Related(usize, Comparison),
    Not(Box<Self>),
    And(Box<Self>, Box<Self>),
    Or(Box<Self>, Box<Self>),
    Choice(Box<Self>, Box<Self>, Box<Self>),
}

impl Formula {
    /// None for an error.
    fn answer(&self, chosen: &[Sample]) -> Option<bool> {
        match self {
            Self::Known(answer) => Some(*answer),
            Self::Answer(unknown) => chosen.get(*unknown)?.as_answer(),
            Self::Compared(unknown, comparison, literal) => {
                comparison.holds(chosen.get(*unknown)?.against(literal))
            }
            Self::Related(unknown, comparison) => comparison.holds(chosen.get(*unknown)?.as_order()?),
            Self::Not(inner) => inner.answer(chosen).map(|answer| !answer),
            Self::And(left, right) => match (left.answer(chosen), right.answer(chosen)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                (None, _) | (_, None) => None,
            },
            Self::Or(left, right) => match (left.answer(chosen), right.answer(chosen)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                (None, _) | (_, None) => None,
            },
            Self::Choice(condition, yes, no) => {
                if condition.answer(chosen)? {
                    yes.answer(chosen)
                } else {
                    no.answer(chosen)
                }
            }
        }
    }
}

/// What a comparison asks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    fn from_function(function: &str) -> Option<Self> {
        Some(match function {
            "_==_" => Self::Equal,
            "_!=_" => Self::Unequal,
            "_<_" => Self::Less,
            "_<=_" => Self::LessOrEqual,
            "_>_" => Self::Greater,
            "_>=_" => Self::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The same question with its sides changed.
    fn flipped(self) -> Self {
        match self {
            Self::Equal | Self::Unequal => self,
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
        }
    }

    fn is_of_order(self) -> bool {
        !matches!(self, Self::Equal | Self::Unequal)
    }

    /// Returns None for a comparison of values without an order.
    fn holds(self, order: Order) -> Option<bool> {
        match (self, order) {
            (Self::Equal, order) => Some(order == Order::Equal),
            (Self::Unequal, order) => Some(order != Order::Equal),
            (_, Order::None) => None,
            (Self::Less, order) => Some(order == Order::Less),
            (Self::LessOrEqual, order) => Some(order != Order::Greater),
            (Self::Greater, order) => Some(order == Order::Greater),
            (Self::GreaterOrEqual, order) => Some(order != Order::Less),
        }
    }
}

/// A subexpression that may have different values on different objects, identified by its text.
#[derive(Debug)]
struct Unknown {
    text: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Answer,
    Relation,
    /// A value, with the literals that it is compared with.
    Value(Vec<Sample>),
}

impl Unknown {
    fn domain(self) -> Vec<Sample> {
        match self.kind {
            Kind::Answer => vec![Sample::Answer(true), Sample::Answer(false)],
            Kind::Relation => {
                [Order::Less, Order::Equal, Order::Greater, Order::None].map(Sample::Relation).into()
            }
            Kind::Value(literals) => {
                let counts = self.text.ends_with(".size()") || self.text.starts_with("size(");
                samples(literals, counts)
            }
        }
    }
}

struct Reader<'a> {
    ast: &'a Ast,
    text: &'a str,
    unknowns: Vec<Unknown>,
}

impl<'a> Reader<'a> {
    fn formula(&mut self, id: ExprId) -> Formula {
        match self.ast.expr(id) {
            Expr::Literal(Literal::Bool(answer)) => Formula::Known(*answer),
            Expr::Call { function, args, .. } => match (&**function, &**args) {
                ("!_", [inner]) => Formula::Not(Box::new(self.formula(*inner))),
                ("_&&_", [left, right]) => {
                    Formula::And(Box::new(self.formula(*left)), Box::new(self.formula(*right)))
                }
                ("_||_", [left, right]) => {
                    Formula::Or(Box::new(self.formula(*left)), Box::new(self.formula(*right)))
                }
                ("_?_:_", [condition, yes, no]) => Formula::Choice(
                    Box::new(self.formula(*condition)),
                    Box::new(self.formula(*yes)),
                    Box::new(self.formula(*no)),
                ),
                ("@in", [item, list]) => self.member(id, *item, *list),
                (function, [left, right]) => match Comparison::from_function(function) {
                    Some(comparison) => self.compared(id, comparison, (*left, *right)),
                    None => self.opaque(id),
                },
                _ => self.opaque(id),
            },
            Expr::Comprehension(fold) => match self.fold(fold) {
                Some(answer) => Formula::Known(answer),
                None => self.opaque(id),
            },
            Expr::Literal(_)
            | Expr::Ident(_)
            | Expr::Select { .. }
            | Expr::List { .. }
            | Expr::Map(_)
            | Expr::Struct { .. } => self.opaque(id),
        }
    }

    fn compared(&mut self, id: ExprId, comparison: Comparison, (left, right): (ExprId, ExprId)) -> Formula {
        match (self.literal(left), self.literal(right)) {
            (None, Some(literal)) => self.with_literal(id, left, comparison, literal),
            (Some(literal), None) => self.with_literal(id, right, comparison.flipped(), literal),
            // Literals are evaluated by running the program without any variables.
            (Some(_), Some(_)) => self.opaque(id),
            (None, None) => self.related(comparison, self.written(left), self.written(right)),
        }
    }

    fn with_literal(
        &mut self,
        id: ExprId,
        value: ExprId,
        comparison: Comparison,
        literal: Sample,
    ) -> Formula {
        // Other strings lie between any two strings; those are not tried.
        if matches!(literal, Sample::Answer(_)) || literal.is_text() && comparison.is_of_order() {
            return self.opaque(id);
        }
        let unknown = self.unknown(self.written(value).to_owned(), || Kind::Value(Vec::new()));
        if let Some(Unknown { kind: Kind::Value(literals), .. }) = self.unknowns.get_mut(unknown) {
            literals.push(literal.clone());
        }
        Formula::Compared(unknown, comparison, literal)
    }

    fn related(&mut self, comparison: Comparison, left: &str, right: &str) -> Formula {
        if left == right {
            let reflexive = matches!(
                comparison,
                Comparison::Equal | Comparison::LessOrEqual | Comparison::GreaterOrEqual
            );
            return Formula::Known(reflexive);
        }
        let (comparison, text) = if left < right {
            (comparison, format!("{left}\n{right}"))
        } else {
            (comparison.flipped(), format!("{right}\n{left}"))
        };
        Formula::Related(self.unknown(text, || Kind::Relation), comparison)
    }

    /// `item in [literals]`: equal to one of them.
    fn member(&mut self, id: ExprId, item: ExprId, list: ExprId) -> Formula {
        let Expr::List { elements, optional } = self.ast.expr(list) else { return self.opaque(id) };
        let literals: Option<Vec<Sample>> = elements.iter().map(|element| self.literal(*element)).collect();
        let (Some(literals), true, None) = (literals, optional.is_empty(), self.literal(item)) else {
            return self.opaque(id);
        };
        let equal = |literal: Sample| self.with_literal(id, item, Comparison::Equal, literal);
        let any =
            literals.into_iter().map(equal).reduce(|any, one| Formula::Or(Box::new(any), Box::new(one)));
        any.unwrap_or(Formula::Known(false))
    }

    /// `all` of a condition that always holds, `exists` of one that never does: the list makes no difference.
    fn fold(&self, fold: &Comprehension) -> Option<bool> {
        let Expr::Literal(Literal::Bool(start)) = self.ast.expr(fold.accu_init) else { return None };
        let Expr::Call { function, args, .. } = self.ast.expr(fold.step) else { return None };
        let joins = matches!((&**function, start), ("_&&_", true) | ("_||_", false));
        let body = args.last().filter(|_| joins)?;
        only_answer(self.ast, self.text, *body).filter(|answer| answer == start)
    }

    fn opaque(&mut self, id: ExprId) -> Formula {
        Formula::Answer(self.unknown(self.written(id).to_owned(), || Kind::Answer))
    }

    /// Returns the number of an unknown. A text in two roles is two unknowns.
    fn unknown(&mut self, text: String, kind: impl FnOnce() -> Kind) -> usize {
        let kind = kind();
        let same = |unknown: &Unknown| {
            unknown.text == text && std::mem::discriminant(&unknown.kind) == std::mem::discriminant(&kind)
        };
        self.unknowns.iter().position(same).unwrap_or_else(|| {
            self.unknowns.push(Unknown { text, kind });
            self.unknowns.len().saturating_sub(1)
        })
    }

    fn written(&self, id: ExprId) -> &'a str {
        self.ast.span(id).of(self.text)
    }

    fn literal(&self, id: ExprId) -> Option<Sample> {
        match self.ast.expr(id) {
            Expr::Literal(literal) => Sample::of_literal(literal),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::constant;

    #[test]
    fn only_what_follows_from_the_form_is_told() {
        for (text, expected) in [
            ("self.x == self.x", Some(true)),
            ("self.x != self.x", Some(false)),
            ("has(self.a) || !has(self.a)", Some(true)),
            ("a && !a", Some(false)),
            ("self.k != 'a' || self.k != 'b'", Some(true)),
            ("self.k == 'a' && self.k == 'b'", Some(false)),
            ("self.k in ['a', 'b'] || self.k != 'a'", Some(true)),
            ("self.k in ['a', 'b'] && !(self.k in ['a', 'b', 'c'])", Some(false)),
            ("self.k in []", Some(false)),
            ("self.n > 5 && self.n < 3", Some(false)),
            ("5 < self.n || 9 > self.n", Some(true)),
            ("self.n > 1 && self.n < 2", None),
            ("size(self.l) >= 0", Some(true)),
            ("self.l.size() < 0", Some(false)),
            ("self.l.size() > 1 && self.l.size() < 2", Some(false)),
            ("self.l.all(x, x != 'a' || x != 'b')", Some(true)),
            ("self.l.exists(x, x == 'a' && x == 'b')", Some(false)),
            ("self.l.all(x, x == 'a' && x == 'b')", None),
            ("self <= oldSelf || oldSelf < self", Some(true)),
            ("self < oldSelf && oldSelf <= self", Some(false)),
            ("self.a ? true : !self.a", Some(true)),
            ("self.k == 'a' || self.k == 'b'", None),
            ("self.k != 'a' && self.k != 'b'", None),
            ("self == oldSelf", None),
            ("self.x == null || self.x != 'a'", None),
            ("self.x == null || self.x != null", Some(true)),
            ("self.k < 'a' && self.k > 'b'", None),
            ("a.b(", None),
        ] {
            assert_eq!(constant(text), expected, "{text}");
        }
    }
}
