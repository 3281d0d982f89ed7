//! Plans comprehensions: expansions of known macros are recognised by their structure and get a loop of their own, which neither copies
//! the accumulator nor calls functions; any other comprehension is evaluated as written.

use crate::syntax::{Comprehension, Expr, ExprId, Literal};

use super::planner::Planner;
use super::{Added, Collect, CollectMap, Fold, FoldKind, General, Local, Op, ProgramError};

/// A macro's shape, with the expressions that its user wrote.
#[derive(Clone, Copy)]
enum Shape {
    All(ExprId),
    Exists(ExprId),
    ExistsOne(ExprId),
    Collect { filter: Option<ExprId>, element: ExprId },
    CollectEntries { filter: Option<ExprId>, key: ExprId, value: ExprId },
    MergeEntries { filter: Option<ExprId>, entries: ExprId },
}

impl<'p> Planner<'p> {
    pub(super) fn comprehension(&mut self, fold: &'p Comprehension) -> Result<Op, ProgramError> {
        let range = self.step(fold.range)?;
        let first = self.new_local()?;
        let second = fold.iter_var2.is_some().then(|| self.new_local()).transpose()?;
        let accumulator = self.new_local()?;
        let mut inside: Vec<(&'p str, Local)> = vec![(&fold.iter_var, first)];
        inside.extend(fold.iter_var2.as_deref().zip(second));
        inside.push((&fold.accu_var, accumulator));
        let kind = match self.shape(fold).filter(|_| self.options.tells_macros) {
            Some(shape) => self.with_locals(&inside, |planner| planner.shaped(shape))?,
            None => self.general(fold, &inside, accumulator)?,
        };
        let starts_empty = matches!(self.expr(fold.accu_init)?, Expr::List { .. } | Expr::Map(_));
        let pays_start = starts_empty && !self.options.folds;
        Ok(Op::Fold(Box::new(Fold { range, first, second, accumulator, kind, pays_start })))
    }

    fn shaped(&mut self, shape: Shape) -> Result<FoldKind, ProgramError> {
        let optional = |planner: &mut Self, id: Option<ExprId>| id.map(|id| planner.step(id)).transpose();
        Ok(match shape {
            Shape::All(predicate) => FoldKind::All(self.step(predicate)?),
            Shape::Exists(predicate) => FoldKind::Exists(self.step(predicate)?),
            Shape::ExistsOne(predicate) => FoldKind::ExistsOne(self.step(predicate)?),
            Shape::Collect { filter, element } => {
                let (filter, element) = (optional(self, filter)?, self.step(element)?);
                let pays_list = element.constant().is_none() || !self.options.folds;
                FoldKind::Collect(Collect { filter, element, pays_list })
            }
            Shape::CollectEntries { filter, key, value } => {
                let filter = optional(self, filter)?;
                let added = Added::Entry { key: self.step(key)?, value: self.step(value)? };
                FoldKind::CollectMap(CollectMap { filter, added })
            }
            Shape::MergeEntries { filter, entries } => {
                let filter = optional(self, filter)?;
                FoldKind::CollectMap(CollectMap { filter, added: Added::Entries(self.step(entries)?) })
            }
        })
    }

    fn general(
        &mut self,
        fold: &'p Comprehension,
        inside: &[(&'p str, Local)],
        accumulator: Local,
    ) -> Result<FoldKind, ProgramError> {
        let init = self.step(fold.accu_init)?;
        let (condition, step) = self
            .with_locals(inside, |planner| Ok((planner.step(fold.condition)?, planner.step(fold.step)?)))?;
        let result =
            self.with_locals(&[(&fold.accu_var, accumulator)], |planner| planner.step(fold.result))?;
        Ok(FoldKind::General(Box::new(General { init, condition, step, result })))
    }

    fn shape(&self, fold: &Comprehension) -> Option<Shape> {
        let is_accu = |id: ExprId| matches!(self.expr(id), Ok(Expr::Ident(name)) if *name == fold.accu_var);
        let init = self.expr(fold.accu_init).ok()?;
        if let Some([x, one]) = self.called(fold.result, "_==_") {
            let counts = matches!(init, Expr::Literal(Literal::Int(0)))
                && is_accu(x)
                && self.is_literal(one, &Literal::Int(1))
                && self.is_literal(fold.condition, &Literal::Bool(true));
            let [predicate, more, same] = self.called(fold.step, "_?_:_")?;
            let [accu, one] = self.called(more, "_+_")?;
            let is_counter = is_accu(same) && is_accu(accu) && self.is_literal(one, &Literal::Int(1));
            return (counts && is_counter).then_some(Shape::ExistsOne(predicate));
        }
        if !is_accu(fold.result) {
            return None;
        }
        match init {
            Expr::Literal(Literal::Bool(true)) => {
                let [accu, predicate] = self.called(fold.step, "_&&_")?;
                let [goes_on] = self.called(fold.condition, "@not_strictly_false")?;
                (is_accu(accu) && is_accu(goes_on)).then_some(Shape::All(predicate))
            }
            Expr::Literal(Literal::Bool(false)) => {
                let [accu, predicate] = self.called(fold.step, "_||_")?;
                let [goes_on] = self.called(fold.condition, "@not_strictly_false")?;
                let [negated] = self.called(goes_on, "!_")?;
                (is_accu(accu) && is_accu(negated)).then_some(Shape::Exists(predicate))
            }
            Expr::List { elements, .. } if elements.is_empty() => self.collecting(fold, &is_accu),
            Expr::Map(entries) if entries.is_empty() => self.collecting(fold, &is_accu),
            _ => None,
        }
    }

    /// `accu + [element]`, or `cel.@mapInsert(accu, …)`, under a filter or always.
    fn collecting(&self, fold: &Comprehension, is_accu: &dyn Fn(ExprId) -> bool) -> Option<Shape> {
        if !self.is_literal(fold.condition, &Literal::Bool(true)) {
            return None;
        }
        let (filter, step) = match self.called(fold.step, "_?_:_") {
            Some([filter, step, same]) if is_accu(same) => (Some(filter), step),
            Some(_) => return None,
            None => (None, fold.step),
        };
        let is_map = matches!(self.expr(fold.accu_init), Ok(Expr::Map(_)));
        if !is_map {
            let [accu, list] = self.called(step, "_+_")?;
            let Ok(Expr::List { elements, optional }) = self.expr(list) else { return None };
            let [element] = **elements else { return None };
            return (is_accu(accu) && optional.is_empty()).then_some(Shape::Collect { filter, element });
        }
        if let Some([accu, key, value]) = self.called(step, "cel.@mapInsert") {
            return is_accu(accu).then_some(Shape::CollectEntries { filter, key, value });
        }
        let [accu, entries] = self.called(step, "cel.@mapInsert")?;
        is_accu(accu).then_some(Shape::MergeEntries { filter, entries })
    }

    /// The arguments of a call of a global function.
    fn called<const N: usize>(&self, id: ExprId, name: &str) -> Option<[ExprId; N]> {
        match self.expr(id) {
            Ok(Expr::Call { function, target: None, args }) if **function == *name => {
                (**args).try_into().ok()
            }
            _ => None,
        }
    }

    fn is_literal(&self, id: ExprId, literal: &Literal) -> bool {
        matches!(self.expr(id), Ok(Expr::Literal(found)) if found == literal)
    }
}
