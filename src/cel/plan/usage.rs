//! Finds the variables of the environment that an expression uses.

use crate::check::CheckedAst;
use crate::syntax::{Comprehension, Expr, ExprId};

/// Whether an expression names a variable of the environment, and not one of a comprehension with the same name.
pub(crate) fn uses_variable(checked: &CheckedAst, name: &str) -> bool {
    let mut search = Search { checked, name, shadows: 0 };
    search.expr(checked.ast().root)
}

struct Search<'c> {
    checked: &'c CheckedAst,
    name: &'c str,
    /// Comprehensions around, whose variable has the name.
    shadows: usize,
}

impl Search<'_> {
    fn expr(&mut self, id: ExprId) -> bool {
        let Some(expr) = self.checked.ast().exprs.get(id.0 as usize) else { return false };
        match expr {
            Expr::Literal(_) => false,
            Expr::Ident(name) => match name.strip_prefix('.') {
                Some(name) => name == self.name,
                None => self.shadows == 0 && **name == *self.name,
            },
            Expr::Select { operand, .. } => self.expr(*operand),
            Expr::Call { target, args, .. } => target.iter().chain(args).any(|id| self.expr(*id)),
            Expr::List { elements, .. } => elements.iter().any(|id| self.expr(*id)),
            Expr::Map(entries) => entries.iter().any(|entry| self.expr(entry.key) || self.expr(entry.value)),
            Expr::Struct { entries, .. } => entries.iter().any(|entry| self.expr(entry.value)),
            Expr::Comprehension(fold) => self.comprehension(fold),
        }
    }

    fn comprehension(&mut self, fold: &Comprehension) -> bool {
        let shadows_result = *fold.accu_var == *self.name;
        let shadows_step = shadows_result
            || *fold.iter_var == *self.name
            || fold.iter_var2.as_deref().is_some_and(|name| name == self.name);
        self.expr(fold.range)
            || self.expr(fold.accu_init)
            || self.under(shadows_step, fold.condition)
            || self.under(shadows_step, fold.step)
            || self.under(shadows_result, fold.result)
    }

    fn under(&mut self, shadows: bool, id: ExprId) -> bool {
        let outside = self.shadows;
        self.shadows = outside.saturating_add(usize::from(shadows));
        let found = self.expr(id);
        self.shadows = outside;
        found
    }
}
