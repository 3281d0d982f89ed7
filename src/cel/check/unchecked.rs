//! Prepares expressions that run without type check: resolves names as far as possible without types; other errors appear at
//! evaluation.

use crate::library::messages;
use crate::syntax::{Ast, Comprehension, Expr, ExprId, Literal};
use crate::types::Type;

use super::names::{Found, FoundKind, qualified_name};
use super::{CheckedAst, Environment, Reference};

/// The expression with the full names of variables, types and namespaced functions; every type is `dyn`.
pub(crate) fn unchecked(ast: Ast, environment: &Environment<'_>) -> CheckedAst {
    let references = vec![None; ast.len()];
    let types = vec![Type::Dyn; ast.len()];
    let root = ast.root;
    let mut resolver = Resolver { env: *environment, ast, references, locals: Vec::new() };
    resolver.resolve(root);
    let Resolver { ast, references, .. } = resolver;
    CheckedAst { ast, types, references, is_checked: false }
}

struct Resolver<'e> {
    env: Environment<'e>,
    ast: Ast,
    references: Vec<Option<Reference>>,
    /// Variables of the comprehensions around the current expression, innermost last.
    locals: Vec<(Box<str>, Type)>,
}

impl Resolver<'_> {
    fn resolve(&mut self, id: ExprId) {
        match self.ast.expr(id) {
            Expr::Literal(_) => {}
            Expr::Ident(_) => {
                self.name(id);
            }
            Expr::Select { operand, test_only, .. } => {
                let (operand, test_only) = (*operand, *test_only);
                if test_only || !self.name(id) {
                    self.resolve(operand);
                }
            }
            Expr::Call { .. } => self.call(id),
            Expr::Comprehension(fold) => {
                let fold = (**fold).clone();
                self.comprehension(&fold);
            }
            Expr::Struct { .. } => self.message(id),
            Expr::List { .. } | Expr::Map(_) => self.parts(id),
        }
    }

    fn parts(&mut self, id: ExprId) {
        let mut parts = Vec::new();
        self.ast.for_each_part(id, |part| parts.push(part));
        parts.into_iter().for_each(|part| self.resolve(part));
    }

    /// Makes an expression the variable or type that it names, if it is a name.
    fn name(&mut self, id: ExprId) -> bool {
        let found = qualified_name(&self.ast, id).and_then(|name| self.env.identifier(&name, &self.locals));
        let Some(Found { name, kind }) = found else { return false };
        let (expr, reference) = match kind {
            FoundKind::Variable(_) => (Expr::Ident(name), Some(Reference::Variable)),
            FoundKind::Type(ty) => (Expr::Ident(name), Some(Reference::Type(ty))),
            FoundKind::Constant(value) => (Expr::Literal(Literal::Int(value)), None),
        };
        self.put(id, expr, reference);
        true
    }

    fn call(&mut self, id: ExprId) {
        let Expr::Call { function, target, args } = self.ast.expr(id).clone() else { return };
        let namespace = target.and_then(|target| qualified_name(&self.ast, target));
        let namespaced =
            namespace.and_then(|namespace| self.env.function(&format!("{namespace}.{function}")));
        let (name, target) = match (namespaced, target) {
            (Some(function), _) => (function.name.into(), None),
            (None, target) => {
                (self.env.function(&function).map_or(function, |function| function.name.into()), target)
            }
        };
        target.iter().chain(&args).for_each(|part| self.resolve(*part));
        self.put(id, Expr::Call { function: name, target, args }, None);
    }

    fn message(&mut self, id: ExprId) {
        let Expr::Struct { name, entries } = self.ast.expr(id).clone() else { return };
        entries.iter().for_each(|entry| self.resolve(entry.value));
        let found = self.env.identifier(&name, &self.locals).map(|found| found.name);
        let name = found.filter(|found| messages::message(found).is_some()).unwrap_or(name);
        self.put(id, Expr::Struct { name, entries }, None);
    }

    fn comprehension(&mut self, fold: &Comprehension) {
        self.resolve(fold.range);
        self.resolve(fold.accu_init);
        let outer = self.locals.len();
        self.locals.push((fold.accu_var.clone(), Type::Dyn));
        let inner = self.locals.len();
        let names = [Some(&fold.iter_var), fold.iter_var2.as_ref()];
        self.locals.extend(names.into_iter().flatten().map(|name| (name.clone(), Type::Dyn)));
        self.resolve(fold.condition);
        self.resolve(fold.step);
        self.locals.truncate(inner);
        self.resolve(fold.result);
        self.locals.truncate(outer);
    }

    fn put(&mut self, id: ExprId, expr: Expr, reference: Option<Reference>) {
        if let (Some(place), Some(known)) =
            (self.ast.exprs.get_mut(id.0 as usize), self.references.get_mut(id.0 as usize))
        {
            (*place, *known) = (expr, reference);
        }
    }
}
