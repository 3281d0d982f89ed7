//! Evaluates what attributes start from. An attribute is an operand with its selections and indexes; cel-go unwraps an optional that is
//! the operand, and goes on behind a `?`, but finds nothing in an optional that a selection without one comes upon.

use admit_cel::syntax::{Expr, ExprId};

use super::eval::Evaluator;
use super::value::{HELD_OTHERWISE, Outcome, Value};
use super::{Undecided, undecided};

impl Evaluator<'_, '_, '_> {
    /// Evaluates what something is selected from.
    pub(super) fn operand(&mut self, id: ExprId) -> Result<Outcome, Undecided> {
        let outcome = self.branch(id)?;
        if outcome.value.may_be(&is_optional) && !self.goes_on(id) {
            return Err(undecided("a selection from an optional in another value").at(self.ast.span(id)));
        }
        Ok(outcome)
    }

    /// Evaluates a branch of a conditional, which is an attribute, too.
    pub(super) fn branch(&mut self, id: ExprId) -> Result<Outcome, Undecided> {
        let outcome = self.eval(id)?;
        let is_attribute = match self.ast.expr(id) {
            Expr::Ident(_) | Expr::Select { .. } => true,
            Expr::Call { function, .. } => matches!(&**function, "_?._" | "_[_]" | "_[?_]" | "_?_:_"),
            _ => false,
        };
        if !is_attribute && outcome.value.holds_otherwise(self.world.view) {
            return Err(undecided(HELD_OTHERWISE).at(self.ast.span(id)));
        }
        Ok(outcome)
    }

    /// Reports whether the attribute so far has a `?` or starts from an optional, so that what follows is optional, too.
    fn goes_on(&mut self, id: ExprId) -> bool {
        match self.ast.expr(id) {
            Expr::Select { operand, .. } => self.goes_on(*operand),
            Expr::Call { function, args, .. } => match (&**function, &**args) {
                ("_?._" | "_[?_]", _) => true,
                ("_[_]", [operand, _]) => self.goes_on(*operand),
                ("_?_:_", [_, yes, no]) => self.goes_on(*yes) && self.goes_on(*no),
                _ => self.is_one(id),
            },
            _ => self.is_one(id),
        }
    }

    fn is_one(&mut self, id: ExprId) -> bool {
        self.eval(id).is_ok_and(|outcome| is_optional(&outcome.value))
    }
}

const fn is_optional(value: &Value) -> bool {
    matches!(value, Value::Optional(..))
}
