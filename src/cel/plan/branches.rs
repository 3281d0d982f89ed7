//! Finds the branches of a program, the points where evaluation may go one way or another, from the structure of its steps. Coverage
//! marks those that evaluations take.
//!
//! Branches are found on first use; evaluation alone never needs them.

use std::collections::HashMap;

use super::{
    Added, Attribute, Collect, CollectMap, Condition, Fold, FoldKind, Op, Program, QualifierKey, Root, Step,
};
use crate::source::Span;
use crate::syntax::ExprId;

/// A branch of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Branch {
    /// The span of the expression whose result takes the branch.
    pub span: Span,
    /// What that part is.
    pub kind: BranchKind,
    /// The outcome that takes the branch. Without one it is enough that the part was evaluated.
    pub when: Option<bool>,
}

/// The part of an expression that a branch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BranchKind {
    /// The whole expression; has two branches if its value is a bool.
    Result,
    /// A term of `&&`: two branches. A term that an earlier one makes unnecessary takes none.
    And,
    /// A term of `||`: two branches.
    Or,
    /// The second operand of `?:`: one branch.
    Then,
    /// The third operand of `?:`: one branch.
    Else,
    /// The condition of a macro (`all`, `exists`, `exists_one`, `filter`, …), in any round: two branches.
    Predicate,
    /// The body of a macro without a condition (`map`, `transformList`, …): one branch, taken if there are any items.
    Body,
    /// What `or` and `orValue` put in the place of an absent value: one branch.
    Fallback,
}

/// What observers need to know of a program.
#[derive(Debug)]
pub(crate) struct Points {
    branches: Box<[Branch]>,
    by_expr: HashMap<ExprId, Ways>,
    written: Box<[bool]>,
}

/// Positions of the branches of one part.
#[derive(Clone, Copy, Debug)]
enum Ways {
    Evaluated(usize),
    Decides { when_true: usize, when_false: usize },
}

impl Points {
    pub(super) fn of(program: &Program, is_bool: bool) -> Self {
        let written = vec![false; program.inner.spans.len()].into();
        let points = Self { branches: Box::default(), by_expr: HashMap::new(), written };
        let mut walk = Walk { program, points, branches: Vec::new() };
        let root = program.root();
        if is_bool {
            walk.decides(root.at, BranchKind::Result);
        }
        walk.step(root, None);
        let Walk { mut points, branches, .. } = walk;
        points.branches = branches.into();
        points
    }

    pub(super) fn branches(&self) -> &[Branch] {
        &self.branches
    }

    /// Whether the expression is in the text, rather than in a macro's expansion.
    pub(crate) fn is_written(&self, expr: ExprId) -> bool {
        self.written.get(expr.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the indices of the branches that an expression takes with a value; None as the value means that it is not a bool.
    pub(crate) fn taken(&self, expr: ExprId, value: Option<bool>) -> impl Iterator<Item = usize> {
        let position = match (self.by_expr.get(&expr).copied(), value) {
            (Some(Ways::Evaluated(position)), _)
            | (Some(Ways::Decides { when_true: position, .. }), Some(true))
            | (Some(Ways::Decides { when_false: position, .. }), Some(false)) => Some(position),
            (Some(Ways::Decides { .. }) | None, _) => None,
        };
        position.into_iter()
    }
}

struct Walk<'p> {
    program: &'p Program,
    points: Points,
    branches: Vec<Branch>,
}

impl Walk<'_> {
    fn decides(&mut self, expr: ExprId, kind: BranchKind) {
        let span = self.program.span(expr);
        let when_true = self.branches.len();
        let when_false = when_true.saturating_add(1);
        self.branches.extend([true, false].map(|when| Branch { span, kind, when: Some(when) }));
        self.points.by_expr.insert(expr, Ways::Decides { when_true, when_false });
    }

    fn evaluated(&mut self, expr: ExprId, kind: BranchKind) {
        let span = self.program.span(expr);
        self.points.by_expr.insert(expr, Ways::Evaluated(self.branches.len()));
        self.branches.push(Branch { span, kind, when: None });
    }

    /// Notes whether an expression is written; returns the span that its parts must differ from.
    fn written(&mut self, expr: ExprId, around: Option<Span>) -> Option<Span> {
        let span = self.program.span(expr);
        if around != Some(span)
            && let Some(written) = self.points.written.get_mut(expr.0 as usize)
        {
            *written = true;
        }
        Some(span)
    }

    fn step(&mut self, step: &Step, around: Option<Span>) {
        if let Op::Attribute(attribute) = &step.op {
            return self.attribute(attribute, around);
        }
        let around = self.written(step.at, around);
        match &step.op {
            Op::Constant(_) | Op::Attribute(_) => {}
            Op::Condition(condition) => self.condition(condition, around),
            Op::OptionalOr(or) => {
                let [left, right] = &or.operands;
                self.step(left, around);
                self.evaluated(right.at, BranchKind::Fallback);
                self.step(right, around);
            }
            Op::Matches(matches) => self.steps(&matches.operands, around),
            Op::Call(call) => self.steps(&call.args, around),
            Op::List(list) => self.steps(&list.elements, around),
            Op::Map(entries) => {
                for entry in entries {
                    self.step(&entry.key, around);
                    self.step(&entry.value, around);
                }
            }
            Op::Message(message) => {
                message.fields.iter().for_each(|field| self.step(&field.value, around));
            }
            Op::Fold(fold) => self.fold(fold, around),
        }
    }

    fn condition(&mut self, condition: &Condition, around: Option<Span>) {
        match condition {
            Condition::And(terms) => self.terms(terms, BranchKind::And, around),
            Condition::Or(terms) => self.terms(terms, BranchKind::Or, around),
            Condition::Not(operand) => self.step(operand, around),
            Condition::Equal(equal) => self.steps(&equal.operands, around),
            Condition::EqualConstant(equal) => self.step(&equal.operand, around),
            Condition::Member(member) => self.step(&member.operand, around),
            Condition::KeyIn(key_in) => self.steps(&key_in.call.args, around),
        }
    }

    fn steps(&mut self, steps: &[Step], around: Option<Span>) {
        for step in steps {
            self.step(step, around);
        }
    }

    fn terms(&mut self, terms: &[Step], kind: BranchKind, around: Option<Span>) {
        for term in terms {
            self.decides(term.at, kind);
            self.step(term, around);
        }
    }

    /// Every link of a chain is an expression around the links before it.
    fn attribute(&mut self, attribute: &Attribute, around: Option<Span>) {
        let mut around = around;
        for qualifier in attribute.qualifiers.iter().rev() {
            around = self.written(qualifier.at, around);
        }
        match &attribute.root {
            Root::Variable(_) | Root::Local(_) | Root::Undeclared(_) => {
                self.written(attribute.at, around);
            }
            Root::Step(step) => self.step(step, around),
            Root::Conditional(parts) => {
                let around = self.written(attribute.at, around);
                let (condition, truthy, falsy) = &**parts;
                self.step(condition, around);
                for (branch, kind) in [(truthy, BranchKind::Then), (falsy, BranchKind::Else)] {
                    self.evaluated(branch.whole(), kind);
                    self.attribute(branch, around);
                }
            }
        }
        for qualifier in &attribute.qualifiers {
            match &qualifier.key {
                QualifierKey::Field(_) | QualifierKey::Constant(_) => {}
                QualifierKey::Attribute(index) => self.attribute(index, around),
                QualifierKey::Step(index) => self.step(index, around),
            }
        }
    }

    fn fold(&mut self, fold: &Fold, around: Option<Span>) {
        self.step(&fold.range, around);
        let (predicate, bodies): (Option<&Step>, &[&Step]) = match &fold.kind {
            FoldKind::All(predicate) | FoldKind::Exists(predicate) | FoldKind::ExistsOne(predicate) => {
                (Some(predicate), &[])
            }
            FoldKind::Collect(Collect { filter, element, .. }) => (filter.as_ref(), &[element]),
            FoldKind::CollectMap(CollectMap { filter, added: Added::Entry { key, value } }) => {
                (filter.as_ref(), &[key, value])
            }
            FoldKind::CollectMap(CollectMap { filter, added: Added::Entries(entries) }) => {
                (filter.as_ref(), &[entries])
            }
            FoldKind::General(general) => {
                let parts = [&general.init, &general.condition, &general.step, &general.result];
                return parts.into_iter().for_each(|part| self.step(part, around));
            }
        };
        match (predicate, bodies.last()) {
            (Some(predicate), _) => self.decides(predicate.at, BranchKind::Predicate),
            (None, Some(body)) => self.evaluated(body.at, BranchKind::Body),
            (None, None) => {}
        }
        for part in predicate.into_iter().chain(bodies.iter().copied()) {
            self.step(part, around);
        }
    }
}
