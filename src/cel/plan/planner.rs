//! Plans expressions recursively: literals, names, aggregates. Calls, attributes and comprehensions have files of their own. The
//! recursion is as deep as the expression, which the parser limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::check::{CheckedAst, Reference, is_made, type_named};
use crate::library::{Functions, messages};
use crate::syntax::{Ast, Entry, Expr, ExprId, Literal};
use crate::types::Type;
use crate::value::{Constant, ConstantEntries};

use super::patterns::PatternSum;
use super::{
    Attribute, EntryPlan, Field, FieldPlan, ListPlan, Local, Makes, MessagePlan, Op, ProgramError, Root,
    Slot, Step,
};

/// What a plan may do ahead of evaluation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether to fold constants, as Kubernetes does. Changes costs, and which errors occur at plan time, never a value.
    pub(crate) folds: bool,
    /// Tell macros by their shape. Changes nothing but speed.
    pub(crate) tells_macros: bool,
    /// Whether to follow the current conformance suite: an optional chain on a value without fields is an error, and so is a map
    /// literal with a duplicate key or a double as key.
    pub(crate) is_strict: bool,
}

impl Default for Options {
    /// Returns Kubernetes' options.
    fn default() -> Self {
        Self { folds: true, tells_macros: true, is_strict: false }
    }
}

pub(super) struct Planner<'p> {
    pub(super) options: Options,
    pub(super) checked: &'p CheckedAst,
    pub(super) functions: &'p Functions,
    variables: Vec<Box<str>>,
    /// Comprehension variables in sight, innermost last.
    scope: Vec<(&'p str, Local)>,
    locals: u16,
    /// The constant patterns of this program and of others that count together with it.
    pub(super) patterns: &'p mut PatternSum,
    /// The fields that attributes have selected so far, by the hash of their names.
    pub(super) fields: BTreeMap<u32, Vec<Arc<Field>>>,
}

impl<'p> Planner<'p> {
    pub(super) const fn new(
        checked: &'p CheckedAst,
        variables: Vec<Box<str>>,
        functions: &'p Functions,
        options: Options,
        patterns: &'p mut PatternSum,
    ) -> Self {
        let fields = BTreeMap::new();
        Self { options, checked, functions, variables, scope: Vec::new(), locals: 0, patterns, fields }
    }

    /// The names of the variables by slot, and the number of comprehension variables.
    pub(super) fn finish(self) -> (Box<[Box<str>]>, u16) {
        (self.variables.into(), self.locals)
    }

    pub(super) fn ast(&self) -> &'p Ast {
        self.checked.ast()
    }

    pub(super) fn expr(&self, id: ExprId) -> Result<&'p Expr, ProgramError> {
        self.ast().exprs.get(id.0 as usize).ok_or_else(|| ProgramError::Invalid("unsupported expr".into()))
    }

    pub(super) fn step(&mut self, id: ExprId) -> Result<Step, ProgramError> {
        let op = match self.expr(id)? {
            Expr::Literal(literal) => Op::Constant(constant(literal)),
            Expr::Ident(name) => self.ident(id, name)?,
            Expr::Select { operand, field, test_only } => {
                return self.select(id, *operand, field, *test_only);
            }
            Expr::Call { function, target, args } => return self.call(id, function, *target, args),
            Expr::List { elements, optional } => self.list(elements, optional)?,
            Expr::Map(entries) => self.map(entries)?,
            Expr::Struct { name, entries } => self.message(name, entries)?,
            Expr::Comprehension(comprehension) => self.comprehension(comprehension)?,
        };
        Ok(Step { op, at: id })
    }

    pub(super) fn steps(&mut self, ids: &[ExprId]) -> Result<Vec<Step>, ProgramError> {
        ids.iter().map(|id| self.step(*id)).collect()
    }

    /// Plans the fields' values in the order of the text.
    fn message(&mut self, name: &str, entries: &[Entry]) -> Result<Op, ProgramError> {
        let makes = match messages::message(name) {
            Some(message) => Makes::Message(message),
            // The checker has found it, so that it is offered here.
            None if is_made(name) => Makes::Object(Type::Opaque(name.into())),
            None => return Err(ProgramError::Invalid(format!("unknown type: {name}").into())),
        };
        let mut fields = Vec::with_capacity(entries.len());
        for entry in entries {
            let Expr::Literal(Literal::String(field)) = self.expr(entry.key)? else { continue };
            if let Makes::Message(message) = makes
                && message.field(field).is_none()
            {
                return Err(ProgramError::Invalid(format!("no such field: {field}").into()));
            }
            let (field, value) = (field.clone(), self.step(entry.value)?);
            fields.push(FieldPlan { field, value, is_optional: entry.optional });
        }
        Ok(Op::Message(Box::new(MessagePlan { makes, fields: fields.into() })))
    }

    fn ident(&self, id: ExprId, name: &str) -> Result<Op, ProgramError> {
        if let Some(Reference::Type(ty)) = self.checked.reference(id) {
            // cel-go knows messages only as such and not as values, and knows nothing by a name that only the checker has.
            let is_value = matches!(ty, Type::Duration | Type::Timestamp | Type::Opaque(_));
            let is_message = messages::message(name).is_some();
            let bare = name.trim_start_matches('.');
            if is_message && !is_value || type_named(bare).is_none() && !is_made(bare) {
                return Err(ProgramError::Invalid(format!("reference to undefined type: {name}").into()));
            }
            return Ok(Op::Constant(Constant::Type(ty.clone())));
        }
        // cel-go takes every name of a type for the name of that type, variables included.
        if self.checked.is_checked() && matches!(self.checked.type_of(id), Type::Type(_)) {
            let made = || is_made(name).then(|| Type::Opaque(name.into()));
            return match type_named(name).or_else(made) {
                Some(ty) => Ok(Op::Constant(Constant::Type(ty))),
                None => Err(ProgramError::Invalid(format!("reference to undefined type: {name}").into())),
            };
        }
        let root = match self.root(name) {
            Some(root) => root,
            None if !self.checked.is_checked() => Root::Undeclared(name.into()),
            None => {
                return Err(ProgramError::Invalid(format!("undeclared reference to '{name}'").into()));
            }
        };
        Ok(attribute(root, id))
    }

    /// The variable of a name: of a comprehension before one of the environment, unless the name is absolute.
    fn root(&self, name: &str) -> Option<Root> {
        let absolute = name.strip_prefix('.');
        let name = absolute.unwrap_or(name);
        if absolute.is_none()
            && let Some((_, local)) = self.scope.iter().rev().find(|(known, _)| *known == name)
        {
            return Some(Root::Local(*local));
        }
        let at = self.variables.iter().position(|known| **known == *name)?;
        u16::try_from(at).ok().map(|slot| Root::Variable(Slot(slot)))
    }

    /// Declares a variable for the expressions that `inside` plans.
    pub(super) fn with_locals<T>(
        &mut self,
        variables: &[(&'p str, Local)],
        inside: impl FnOnce(&mut Self) -> Result<T, ProgramError>,
    ) -> Result<T, ProgramError> {
        let outside = self.scope.len();
        self.scope.extend_from_slice(variables);
        let result = inside(self);
        self.scope.truncate(outside);
        result
    }

    pub(super) fn new_local(&mut self) -> Result<Local, ProgramError> {
        let local = self.locals;
        self.locals = local
            .checked_add(1)
            .ok_or_else(|| ProgramError::Invalid("too many comprehension variables".into()))?;
        Ok(local)
    }

    fn list(&mut self, elements: &[ExprId], optional: &[u32]) -> Result<Op, ProgramError> {
        let elements = self.steps(elements)?;
        if self.options.folds
            && optional.is_empty()
            && let Some(items) = elements.iter().map(|step| step.constant().cloned()).collect()
        {
            return Ok(Op::Constant(Constant::List(items)));
        }
        let optional = (0_u32..).take(elements.len()).map(|at| optional.binary_search(&at).is_ok()).collect();
        Ok(Op::List(Box::new(ListPlan { elements: elements.into(), optional })))
    }

    fn map(&mut self, entries: &[Entry]) -> Result<Op, ProgramError> {
        let mut planned = Vec::with_capacity(entries.len());
        for entry in entries {
            let (key, value) = (self.step(entry.key)?, self.step(entry.value)?);
            planned.push(EntryPlan { key, value, is_optional: entry.optional });
        }
        let folded = planned.iter().map(|entry| match (entry.key.constant(), entry.value.constant()) {
            (Some(key), Some(value)) if !entry.is_optional => Some((key.clone(), value.clone())),
            _ => None,
        });
        if self.options.folds
            && let Some(constants) = folded.collect::<Option<Vec<_>>>()
        {
            return Ok(Op::Constant(Constant::Map(ConstantEntries::new(&constants))));
        }
        Ok(Op::Map(planned.into()))
    }
}

impl Step {
    /// The value of a step that has one at plan time.
    pub(crate) const fn constant(&self) -> Option<&Constant> {
        match &self.op {
            Op::Constant(constant) => Some(constant),
            _ => None,
        }
    }
}

pub(super) fn attribute(root: Root, at: ExprId) -> Op {
    Op::Attribute(Box::new(Attribute { root, at, qualifiers: Vec::new(), is_test: false }))
}

fn constant(literal: &Literal) -> Constant {
    match literal {
        Literal::Null => Constant::Null,
        Literal::Bool(b) => Constant::Bool(*b),
        Literal::Int(i) => Constant::Int(*i),
        Literal::Uint(u) => Constant::Uint(*u),
        Literal::Double(d) => Constant::Double(*d),
        Literal::String(s) => Constant::String(s.clone()),
        Literal::Bytes(b) => Constant::Bytes(b.clone()),
    }
}
