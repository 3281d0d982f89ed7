//! Infers the type of each expression from those of its parts, and resolves names and calls.
//!
//! An error is reported once: an expression with an error has the error type, which is assignable to every type.

use std::sync::Arc;

use crate::diagnostic::Findings;
use crate::library::messages;
use crate::limits::MAX_TYPE_PARTS;
use crate::source::Source;
use crate::syntax::{Ast, Comprehension, Entry, Expr, ExprId, Literal};
use crate::types::{DeclField, Type};

use super::Reference;
use super::names::{Environment, Fields, Found, FoundKind, qualified_name, root_name};
use super::unify::{Unifier, is_message_without_fields, most_general};

pub(super) struct Checker<'e, 's> {
    pub(super) env: Environment<'e>,
    pub(super) ast: Ast,
    pub(super) types: Vec<Type>,
    pub(super) references: Vec<Option<Reference>>,
    pub(super) findings: Findings<'s>,
    pub(super) unifier: Unifier,
    /// Variables of the comprehensions around the current expression, innermost last.
    locals: Vec<(Box<str>, Type)>,
    /// Room for the types of one call's operands.
    pub(super) operands: Vec<Type>,
}

impl<'e, 's> Checker<'e, 's> {
    pub(super) fn new(env: Environment<'e>, source: Source<'s>, ast: Ast) -> Self {
        let (types, references) = (vec![Type::Error; ast.len()], vec![None; ast.len()]);
        let (findings, unifier) = (Findings::new(source), Unifier::default());
        Self { env, ast, types, references, findings, unifier, locals: Vec::new(), operands: Vec::new() }
    }

    pub(super) fn check(&mut self, id: ExprId) {
        match self.ast.expr(id) {
            Expr::Literal(literal) => {
                let ty = literal_type(literal);
                self.set_type(id, ty);
            }
            Expr::Ident(_) => self.ident(id),
            Expr::Select { .. } => self.select(id),
            Expr::Call { .. } => self.call(id),
            _ => self.aggregate(id),
        }
    }

    fn aggregate(&mut self, id: ExprId) {
        let mut expr = self.take(id);
        match &mut expr {
            Expr::List { elements, optional } => self.list(id, elements, optional),
            Expr::Map(entries) => self.map(id, entries),
            Expr::Struct { name, entries } => self.message(id, name, entries),
            Expr::Comprehension(fold) => self.comprehension(id, fold),
            Expr::Literal(_) | Expr::Ident(_) | Expr::Select { .. } | Expr::Call { .. } => {}
        }
        self.put(id, expr);
    }

    pub(super) fn type_of(&self, id: ExprId) -> Type {
        self.types.get(id.0 as usize).cloned().unwrap_or(Type::Error)
    }

    pub(super) fn set_type(&mut self, id: ExprId, ty: Type) {
        let mut room = MAX_TYPE_PARTS;
        let ty = if fits_in(&ty, &mut room) {
            ty
        } else {
            self.error(id, format!("type of the expression has more than {MAX_TYPE_PARTS} parts"));
            Type::Error
        };
        if let Some(slot) = self.types.get_mut(id.0 as usize) {
            *slot = ty;
        }
    }

    pub(super) fn set_reference(&mut self, id: ExprId, reference: Reference) {
        if let Some(slot) = self.references.get_mut(id.0 as usize) {
            *slot = Some(reference);
        }
    }

    /// Takes an expression out of the tree while its parts are checked; [`Self::put`] gives it back, as it was or as
    /// it was found to be. Meanwhile its place and its parts stay where they are.
    pub(super) fn take(&mut self, id: ExprId) -> Expr {
        let absent = Expr::Literal(Literal::Null);
        self.ast.exprs.get_mut(id.0 as usize).map_or(absent.clone(), |slot| std::mem::replace(slot, absent))
    }

    pub(super) fn put(&mut self, id: ExprId, expr: Expr) {
        if let Some(slot) = self.ast.exprs.get_mut(id.0 as usize) {
            *slot = expr;
        }
    }

    pub(super) fn error(&mut self, at: ExprId, message: String) {
        self.findings.add(self.ast.span(at), self.ast.anchor(at), || message);
    }

    pub(super) fn undeclared(&mut self, at: ExprId, name: &str) {
        self.error(at, format!("undeclared reference to '{name}' (in container '{}')", self.env.container));
        self.set_type(at, Type::Error);
    }

    pub(super) fn mismatch(&mut self, at: ExprId, expected: &Type, found: &Type) {
        self.error(at, format!("expected type '{expected}' but found '{found}'"));
    }

    fn ident(&mut self, id: ExprId) {
        let Expr::Ident(name) = self.ast.expr(id) else { return };
        match self.env.identifier(name, &self.locals) {
            Some(found) => self.resolve(id, found),
            None => {
                let name = name.clone();
                self.undeclared(id, &name);
            }
        }
    }

    /// Makes an expression the full name it was found to be.
    fn resolve(&mut self, id: ExprId, found: Found) {
        let (ty, reference) = match found.kind {
            FoundKind::Variable(ty) => (ty, Reference::Variable),
            FoundKind::Type(ty) => (Type::Type(Some(Arc::new(ty.clone()))), Reference::Type(ty)),
            FoundKind::Constant(value) => {
                self.set_type(id, Type::Int);
                self.put(id, Expr::Literal(Literal::Int(value)));
                return;
            }
        };
        self.set_type(id, ty);
        self.set_reference(id, reference);
        self.put(id, Expr::Ident(found.name));
    }

    fn select(&mut self, id: ExprId) {
        let Expr::Select { operand, test_only, field: _ } = self.ast.expr(id) else { return };
        let (operand, test_only) = (*operand, *test_only);
        if !test_only
            && root_name(&self.ast, operand).is_some_and(|root| self.env.may_qualify(root))
            && let Some(name) = qualified_name(&self.ast, id)
            && let Some(found) = self.env.identifier(&name, &self.locals)
        {
            self.resolve(id, found);
            return;
        }
        let expr = self.take(id);
        let Expr::Select { field, .. } = &expr else { return };
        let ty = self.field(id, operand, field, false);
        self.put(id, expr);
        let ty = if test_only { Type::Bool } else { self.unifier.substitute(&ty, false) };
        self.set_type(id, ty);
    }

    /// Whether a field is accessible by this name: a field with a reserved name has an escaped one, and its own name where reserved
    /// words are accepted.
    fn reaches(&self, field: &DeclField, name: &str) -> bool {
        self.env.keyword_fields || *field.cel_name == *name
    }

    /// The type of a field of an operand, which is checked first.
    pub(super) fn field(&mut self, id: ExprId, operand: ExprId, field: &str, optional: bool) -> Type {
        self.check(operand);
        let operand = self.unifier.substitute(&self.type_of(operand), false);
        let (target, was_optional) = unwrap_optional(&operand);
        let ty = match target {
            Type::Map(_, value) => (**value).clone(),
            Type::Object(decl) => match decl.field(field).filter(|found| self.reaches(found, field)) {
                Some(found) => found.decl.cel_type(),
                None => {
                    self.error(id, format!("undefined field '{field}'"));
                    Type::Error
                }
            },
            Type::Opaque(name) if is_message_without_fields(name) => {
                self.error(id, format!("unexpected failed resolution of '{name}'"));
                Type::Error
            }
            Type::Opaque(name) if messages::message(name).is_some() => {
                self.error(id, format!("undefined field '{field}'"));
                Type::Error
            }
            Type::Opaque(name) if let Some(fields) = self.env.made_fields(name) => {
                fields.field(field).unwrap_or_else(|| {
                    self.error(id, format!("undefined field '{field}'"));
                    Type::Error
                })
            }
            Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, target);
                Type::Dyn
            }
            Type::Dyn | Type::Any | Type::Error => Type::Dyn,
            other => {
                self.error(id, format!("type '{other}' does not support field selection"));
                Type::Dyn
            }
        };
        if was_optional || optional { Type::Optional(Arc::new(ty)) } else { ty }
    }

    fn list(&mut self, id: ExprId, elements: &[ExprId], optional: &[u32]) {
        let mut items: Option<Type> = None;
        for (index, element) in (0_u32..).zip(elements) {
            self.check(*element);
            let ty = self.unwrapped(*element, optional.binary_search(&index).is_ok());
            items = Some(self.join(items, ty));
        }
        let items = items.unwrap_or_else(|| self.unifier.fresh());
        self.set_type(id, Type::List(Arc::new(items)));
    }

    /// Returns the type of an element; for an optional one, that of its value.
    fn unwrapped(&mut self, element: ExprId, optional: bool) -> Type {
        let ty = self.type_of(element);
        if !optional {
            return ty;
        }
        match ty {
            Type::Optional(inner) => (*inner).clone(),
            ty @ (Type::Dyn | Type::Any) => ty,
            other => {
                self.mismatch(element, &Type::Optional(Arc::new(other.clone())), &other);
                other
            }
        }
    }

    fn map(&mut self, id: ExprId, entries: &[Entry]) {
        let mut types: Option<(Type, Type)> = None;
        for Entry { key, value, optional } in entries {
            let (keys, values) = types.map_or((None, None), |(keys, values)| (Some(keys), Some(values)));
            self.check(*key);
            let keys = self.join(keys, self.type_of(*key));
            self.check(*value);
            let ty = self.unwrapped(*value, *optional);
            let values = self.join(values, ty);
            types = Some((keys, values));
        }
        let (keys, values) = types.unwrap_or_else(|| (self.unifier.fresh(), self.unifier.fresh()));
        self.set_type(id, Type::Map(Arc::new(keys), Arc::new(values)));
    }

    /// The common type of the elements so far and the next one.
    fn join(&mut self, previous: Option<Type>, current: Type) -> Type {
        match previous {
            None => current,
            Some(previous) if self.unifier.assignable(&previous, &current) => {
                most_general(&previous, &current).clone()
            }
            Some(_) => Type::Dyn,
        }
    }

    /// The name becomes the message's full name.
    fn message(&mut self, id: ExprId, name: &mut Box<str>, entries: &[Entry]) {
        let Some(found) = self.env.identifier(name, &self.locals) else {
            let name = name.clone();
            self.undeclared(id, &name);
            return;
        };
        *name = found.name;
        let fields = self.env.fields(name);
        match found.kind {
            FoundKind::Type(ty) if fields.is_some() => self.set_type(id, ty),
            FoundKind::Type(ty) => self.error(id, format!("'{}' is not a message type", declared_name(&ty))),
            FoundKind::Variable(ty) => self.error(id, format!("'{}' is not a type", declared_name(&ty))),
            FoundKind::Constant(_) => self.error(id, "'int' is not a type".to_owned()),
        }
        for entry in entries {
            self.check(entry.value);
            match fields {
                Some(fields) => self.message_field(fields, entry),
                None => self.error(entry.key, format!("unexpected failed resolution of '{name}'")),
            }
        }
    }

    fn message_field(&mut self, fields: Fields, entry: &Entry) {
        let Expr::Literal(Literal::String(name)) = self.ast.expr(entry.key) else { return };
        let name = name.clone();
        let Some(ty) = fields.field(&name) else {
            self.error(entry.key, format!("undefined field '{name}'"));
            return;
        };
        let found = self.unwrapped(entry.value, entry.optional);
        if !self.unifier.assignable(&ty, &found) {
            let text = format!("expected type of field '{name}' is '{ty}' but provided type is '{found}'");
            self.error(entry.key, text);
        }
    }

    fn comprehension(&mut self, id: ExprId, fold: &Comprehension) {
        self.check(fold.range);
        self.check(fold.accu_init);
        let range = self.unifier.substitute(&self.type_of(fold.range), false);
        let accumulator = self.type_of(fold.accu_init);
        let outer = self.locals.len();
        self.locals.push((fold.accu_var.clone(), accumulator.clone()));
        let inner = self.locals.len();
        self.push_variables(fold, &range);
        self.check(fold.condition);
        self.assert_type(fold.condition, &Type::Bool);
        self.check(fold.step);
        self.assert_type(fold.step, &accumulator);
        self.locals.truncate(inner);
        self.check(fold.result);
        self.locals.truncate(outer);
        let ty = self.unifier.substitute(&self.type_of(fold.result), false);
        self.set_type(id, ty);
    }

    fn push_variables(&mut self, fold: &Comprehension, range: &Type) {
        let two = fold.iter_var2.is_some();
        let (first, second) = match range {
            Type::List(item) if two => (Type::Int, (**item).clone()),
            Type::List(item) => ((**item).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Error | Type::Var(_) => {
                self.unifier.assignable(&Type::Dyn, range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.error(fold.range, message);
                (Type::Error, Type::Error)
            }
        };
        self.locals.push((fold.iter_var.clone(), first));
        if let Some(name) = &fold.iter_var2 {
            self.locals.push((name.clone(), second));
        }
    }

    fn assert_type(&mut self, id: ExprId, expected: &Type) {
        let found = self.type_of(id);
        if !self.unifier.assignable(expected, &found) {
            self.mismatch(id, expected, &found);
        }
    }
}

/// Whether a type has no more parts than `room` allows. A type variable may occur in a type twice, so types can double with every level
/// of nesting; this also visits no more parts than allowed.
fn fits_in(ty: &Type, room: &mut usize) -> bool {
    let Some(less) = room.checked_sub(1) else { return false };
    *room = less;
    match ty {
        Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => fits_in(inner, room),
        Type::Map(key, value) => fits_in(key, room) && fits_in(value, room),
        Type::Abstract(ty) => ty.parameters.iter().all(|part| fits_in(part, room)),
        _ => true,
    }
}

fn unwrap_optional(ty: &Type) -> (&Type, bool) {
    match ty {
        Type::Optional(inner) => (inner, true),
        other => (other, false),
    }
}

/// Returns a type's name without its parameters; a nullable primitive is named like the primitive.
fn declared_name(ty: &Type) -> String {
    match ty {
        Type::Wrapper(_) => ty.to_string(),
        other => other.with_full_names().to_string().split('(').next().unwrap_or_default().to_owned(),
    }
}

const fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}
