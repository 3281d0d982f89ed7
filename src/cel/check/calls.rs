//! Resolves calls: which function a call refers to, and which of its overloads the argument types allow.

use crate::library::functions::Function;
use crate::syntax::{Expr, ExprId, Literal};
use crate::types::Type;

use super::checker::Checker;
use super::names::qualified_name;
use super::unify::same;
use super::{Reference, Rows};

impl<'e> Checker<'e, '_> {
    pub(super) fn call(&mut self, id: ExprId) {
        let mut expr = self.take(id);
        if let Expr::Call { function, target, args } = &mut expr {
            if &**function == "_?._" {
                self.optional_select(id, args);
            } else {
                self.function_call(id, function, target, args);
            }
        }
        self.put(id, expr);
    }

    /// The name becomes the function's full name; the target of a namespaced function goes.
    fn function_call(
        &mut self,
        id: ExprId,
        name: &mut Box<str>,
        target: &mut Option<ExprId>,
        args: &[ExprId],
    ) {
        for arg in args {
            self.check(*arg);
        }
        let namespaced = target.and_then(|target| self.namespaced(target, name));
        if namespaced.is_some() {
            *target = None;
        } else if let Some(target) = target {
            self.check(*target);
        }
        let Some(function) = namespaced.or_else(|| self.env.function(name)) else {
            self.undeclared(id, name);
            return;
        };
        if function.name != &**name {
            *name = function.name.into();
        }
        self.resolve_overload(id, function, *target, args);
    }

    fn optional_select(&mut self, id: ExprId, args: &[ExprId]) {
        let [operand, field] = args else { return };
        let Expr::Literal(Literal::String(name)) = self.ast.expr(*field) else { return };
        let name = name.clone();
        self.set_type(*field, Type::String);
        let ty = self.field(id, *operand, &name, true);
        let ty = self.unifier.substitute(&ty, false);
        self.set_type(id, ty);
        if let Some(declared) = self.env.function("_?._").and_then(|function| function.overloads.first()) {
            self.set_reference(id, Reference::Overloads(Rows::One([declared.row])));
        }
    }

    /// Resolves `a.b.c(x)`: the function `a.b.c` if it exists; else `c` is a member function of `a.b`.
    fn namespaced(&self, target: ExprId, name: &str) -> Option<&'e Function> {
        let mut qualified = qualified_name(&self.ast, target)?;
        qualified.push('.');
        qualified.push_str(name);
        self.env.function(&qualified)
    }

    fn resolve_overload(&mut self, id: ExprId, function: &Function, target: Option<ExprId>, args: &[ExprId]) {
        let mut types = std::mem::take(&mut self.operands);
        types.clear();
        types.extend(target.iter().chain(args).map(|operand| self.type_of(*operand)));
        if matches!(function.name, "_&&_" | "_||_") {
            self.logical(id, function, args, &types);
        } else {
            self.choose_overload(id, function, target.is_some(), &types);
        }
        self.operands = types;
    }

    fn choose_overload(&mut self, id: ExprId, function: &Function, is_member: bool, types: &[Type]) {
        let mut first_row = None;
        let mut more = Vec::new();
        let mut result: Option<Type> = None;
        for declared in &function.overloads {
            let signature = &declared.signature;
            if signature.member != is_member {
                continue;
            }
            let Some(returned) = self.unifier.apply(signature, types) else { continue };
            match first_row {
                None => first_row = Some(declared.row),
                Some(_) => more.push(declared.row),
            }
            result = Some(match result {
                None => returned,
                Some(first) if matches!(first, Type::Dyn | Type::Any) || same(&returned, &first) => first,
                Some(_) => Type::Dyn,
            });
        }
        match result.zip(first_row) {
            Some((ty, first)) => {
                self.set_type(id, ty);
                self.set_reference(id, Reference::Overloads(Rows::of(first, &more)));
            }
            None => self.no_overload(id, function.name, types, is_member),
        }
    }

    /// Each operand of `&&` and `||` that is not a boolean is reported.
    fn logical(&mut self, id: ExprId, function: &Function, operands: &[ExprId], types: &[Type]) {
        let mut all = true;
        for (operand, ty) in operands.iter().zip(types) {
            if !self.unifier.assignable(ty, &Type::Bool) {
                self.mismatch(*operand, &Type::Bool, ty);
                all = false;
            }
        }
        self.set_type(id, if all { Type::Bool } else { Type::Error });
        if let Some(declared) = function.overloads.first() {
            self.set_reference(id, Reference::Overloads(Rows::One([declared.row])));
        }
    }

    fn no_overload(&mut self, id: ExprId, name: &str, types: &[Type], member: bool) {
        let shown: Vec<String> =
            types.iter().map(|ty| self.unifier.substitute(ty, true).to_string()).collect();
        let applied = match shown.split_first() {
            Some((receiver, args)) if member => format!("{receiver}.({})", args.join(", ")),
            _ => format!("({})", shown.join(", ")),
        };
        self.error(id, format!("found no matching overload for '{name}' applied to '{applied}'"));
        self.set_type(id, Type::Error);
    }
}
