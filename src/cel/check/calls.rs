//! Calls: which function a call means, and which of its overloads the argument types allow.

use crate::library::functions::Function;
use crate::syntax::{Expr, ExprId, Literal};
use crate::types::Type;

use super::Reference;
use super::checker::Checker;
use super::names::qualified_name;
use super::unify::same;

impl Checker<'_, '_> {
    pub(super) fn call(&mut self, id: ExprId) {
        let Expr::Call { function, target, args } = self.ast.expr(id).clone() else { return };
        if &*function == "_?._" {
            self.optional_select(id, &args);
            return;
        }
        for arg in &args {
            self.check(*arg);
        }
        match target {
            None => self.global_call(id, &function, &args),
            Some(target) => self.member_call(id, &function, target, &args),
        }
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
            self.set_reference(id, Reference::Overloads([declared.row].into()));
        }
    }

    fn global_call(&mut self, id: ExprId, name: &str, args: &[ExprId]) {
        let Some(function) = self.env.function(name) else {
            self.undeclared(id, name);
            return;
        };
        if function.name != name {
            self.replace(id, Expr::Call { function: function.name.into(), target: None, args: args.into() });
        }
        self.resolve_overload(id, function, None, args);
    }

    /// `a.b.c(x)` is a call of the function `a.b.c` if there is one, else of the member function `c` of `a.b`.
    fn member_call(&mut self, id: ExprId, name: &str, target: ExprId, args: &[ExprId]) {
        let qualified = qualified_name(&self.ast, target);
        if let Some(function) = qualified.and_then(|prefix| self.env.function(&format!("{prefix}.{name}"))) {
            self.replace(id, Expr::Call { function: function.name.into(), target: None, args: args.into() });
            self.resolve_overload(id, function, None, args);
            return;
        }
        self.check(target);
        match self.env.function(name) {
            Some(function) => self.resolve_overload(id, function, Some(target), args),
            None => self.undeclared(id, name),
        }
    }

    fn resolve_overload(&mut self, id: ExprId, function: &Function, target: Option<ExprId>, args: &[ExprId]) {
        let operands: Vec<ExprId> = target.into_iter().chain(args.iter().copied()).collect();
        let types: Vec<Type> = operands.iter().map(|operand| self.type_of(*operand)).collect();
        if matches!(function.name, "_&&_" | "_||_") {
            self.logical(id, function, &operands, &types);
            return;
        }
        let borrowed: Vec<&Type> = types.iter().collect();
        let mut rows = Vec::new();
        let mut result: Option<Type> = None;
        for declared in &function.overloads {
            let signature = &declared.signature;
            if signature.member != target.is_some() {
                continue;
            }
            let (parameters, returned) = self.unifier.instantiate(signature);
            if !self.unifier.assignable_list(&borrowed, &parameters) {
                continue;
            }
            rows.push(declared.row);
            let returned = self.unifier.substitute(&returned, false);
            result = Some(match result {
                None => returned,
                Some(first) if matches!(first, Type::Dyn) || same(&returned, &first) => first,
                Some(_) => Type::Dyn,
            });
        }
        match result {
            Some(ty) => {
                self.set_type(id, ty);
                self.set_reference(id, Reference::Overloads(rows.into()));
            }
            None => self.no_overload(id, function.name, &types, target.is_some()),
        }
    }

    /// The operands of `&&` and `||` are each told if they are no booleans.
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
            self.set_reference(id, Reference::Overloads([declared.row].into()));
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
