//! Decides assignability of types and infers type parameters from it. The rules are those of cel-go's `checker/types.go`: assignability
//! is symmetric about `dyn`, a nullable type accepts null, and the more general of two types wins.

use std::sync::Arc;

use crate::library::Signature;
use crate::types::{AbstractType, Type};

/// What has been found out about type variables. A failed attempt leaves no trace.
#[derive(Debug, Default)]
pub(super) struct Unifier {
    bindings: Vec<Option<Type>>,
    /// Previous bindings, for undoing; grows only during an attempt.
    trail: Vec<(u32, Option<Type>)>,
    /// Buffers for one call: the substitutes of type parameters, and the parameters after substitution.
    room: (Names, Vec<Type>),
}

type Names = Vec<(Arc<str>, Type)>;

impl Unifier {
    pub(super) fn fresh(&mut self) -> Type {
        let number = u32::try_from(self.bindings.len()).unwrap_or(u32::MAX);
        self.bindings.push(None);
        Type::Var(number)
    }

    /// The type of a call with arguments of these types; none if the signature does not admit them.
    pub(super) fn apply(&mut self, signature: &Signature, arguments: &[Type]) -> Option<Type> {
        let parameters = &signature.parameters;
        if !parameters.iter().chain([&signature.result]).any(is_generic) {
            return self.assignable_list(arguments, parameters).then(|| signature.result.clone());
        }
        let (mut names, mut renamed) = std::mem::take(&mut self.room);
        names.clear();
        renamed.clear();
        for parameter in parameters {
            let parameter = self.rename(parameter, &mut names);
            renamed.push(parameter);
        }
        let result = self.rename(&signature.result, &mut names);
        let returned = self.assignable_list(arguments, &renamed).then(|| self.substitute(&result, false));
        self.room = (names, renamed);
        returned
    }

    /// A type with fresh variables for its parameters, one for each name.
    fn rename(&mut self, ty: &Type, names: &mut Names) -> Type {
        let Type::Param(name) = ty else { return map_parts(ty, &mut |part| self.rename(part, names)) };
        if let Some((_, variable)) = names.iter().find(|(known, _)| known == name) {
            return variable.clone();
        }
        let variable = self.fresh();
        names.push((Arc::clone(name), variable.clone()));
        variable
    }

    /// Whether a value of type `from` is assignable to `to`; if so, the inferred bindings are kept.
    pub(super) fn assignable(&mut self, from: &Type, to: &Type) -> bool {
        self.attempt(|this| this.fits(from, to))
    }

    fn assignable_list(&mut self, from: &[Type], to: &[Type]) -> bool {
        from.len() == to.len()
            && self.attempt(|this| from.iter().zip(to).all(|(from, to)| this.fits(from, to)))
    }

    /// Replaces every variable in a type by its binding; unbound ones remain, or become `dyn`.
    pub(super) fn substitute(&self, ty: &Type, unknown_is_dyn: bool) -> Type {
        match ty {
            Type::Var(_) => match self.find(ty) {
                Some(found) => self.substitute(found, unknown_is_dyn),
                None if unknown_is_dyn => Type::Dyn,
                None => ty.clone(),
            },
            Type::Param(_) if unknown_is_dyn => Type::Dyn,
            ty => map_parts(ty, &mut |part| self.substitute(part, unknown_is_dyn)),
        }
    }

    fn attempt(&mut self, fits: impl FnOnce(&mut Self) -> bool) -> bool {
        let fit = fits(self);
        while let Some((variable, former)) = self.trail.pop() {
            if !fit && let Some(binding) = self.bindings.get_mut(variable as usize) {
                *binding = former;
            }
        }
        fit
    }

    fn find(&self, ty: &Type) -> Option<&Type> {
        let Type::Var(variable) = ty else { return None };
        self.bindings.get(*variable as usize)?.as_ref()
    }

    fn bind(&mut self, variable: &Type, ty: Type) {
        if let Type::Var(number) = variable
            && let Some(binding) = self.bindings.get_mut(*number as usize)
        {
            self.trail.push((*number, binding.replace(ty)));
        }
    }

    fn fits(&mut self, from: &Type, to: &Type) -> bool {
        if matches!(to, Type::Var(_)) {
            let (valid, bound) = self.substitutes(from, to);
            if valid || bound {
                return valid;
            }
        }
        if matches!(from, Type::Var(_)) {
            return self.substitutes(to, from).0;
        }
        match (from, to) {
            (Type::Dyn | Type::Any | Type::Error, _) | (_, Type::Dyn | Type::Any | Type::Error) => true,
            (Type::Null, other) | (other, Type::Null) => takes_null(other),
            (Type::Type(_), Type::Type(_)) => true,
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.fits(a, b),
            (Type::Map(k1, v1), Type::Map(k2, v2)) => self.fits(k1, k2) && self.fits(v1, v2),
            (Type::Abstract(a), Type::Abstract(b)) => {
                parts(a, b).is_some_and(|mut parts| parts.all(|(a, b)| self.fits(a, b)))
            }
            (from, to) => same(from, to),
        }
    }

    /// Whether `ty` may be bound to `variable`, and whether that already had a binding.
    fn substitutes(&mut self, ty: &Type, variable: &Type) -> (bool, bool) {
        if ty == variable {
            return (true, true);
        }
        if let Some(found) = self.find(variable).cloned() {
            if same(ty, &found) {
                return (true, true);
            }
            if !self.fits(ty, &found) {
                return (false, true);
            }
            let general = if at_most_as_specific(ty, &found) { ty } else { &found };
            if !self.occurs(variable, general) {
                self.bind(variable, general.clone());
            }
            return (true, true);
        }
        if self.occurs(variable, ty) {
            return (false, false);
        }
        self.bind(variable, ty.clone());
        (true, false)
    }

    /// Whether a type contains a variable, which it then cannot be bound to.
    fn occurs(&self, variable: &Type, within: &Type) -> bool {
        if variable == within {
            return true;
        }
        match within {
            Type::Var(_) => self.find(within).is_some_and(|found| self.occurs(variable, found)),
            Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => {
                self.occurs(variable, inner)
            }
            Type::Map(key, value) => self.occurs(variable, key) || self.occurs(variable, value),
            Type::Abstract(ty) => ty.parameters.iter().any(|part| self.occurs(variable, part)),
            _ => false,
        }
    }
}

/// The more general of two types that fit each other; of null and a type that takes it, that type.
pub(super) fn most_general<'t>(a: &'t Type, b: &'t Type) -> &'t Type {
    if matches!(b, Type::Null) || at_most_as_specific(a, b) { a } else { b }
}

/// Whether two types are equal, with objects compared by name and a nullable primitive equal to the primitive.
pub(super) fn same(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Wrapper(a), b) => same(a, b),
        (a, Type::Wrapper(b)) => same(a, b),
        (Type::List(a), Type::List(b))
        | (Type::Optional(a), Type::Optional(b))
        | (Type::Type(Some(a)), Type::Type(Some(b))) => same(a, b),
        (Type::Map(k1, v1), Type::Map(k2, v2)) => same(k1, k2) && same(v1, v2),
        (Type::Abstract(a), Type::Abstract(b)) => {
            parts(a, b).is_some_and(|mut parts| parts.all(|(a, b)| same(a, b)))
        }
        (Type::Object(a), Type::Object(b)) => Arc::ptr_eq(a, b) || a.name() == b.name(),
        (a, b) => a == b,
    }
}

/// The parameters of two types of one name, side by side.
fn parts<'t>(a: &'t AbstractType, b: &'t AbstractType) -> Option<impl Iterator<Item = (&'t Type, &'t Type)>> {
    let are_alike = a.name == b.name && a.parameters.len() == b.parameters.len();
    are_alike.then(|| a.parameters.iter().zip(&b.parameters))
}

/// Kubernetes' own types that cel-go holds for messages without fields, as opposed to abstract types.
pub(super) fn is_message_without_fields(name: &str) -> bool {
    name.starts_with("kubernetes.")
}

fn takes_null(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Null
            | Type::Wrapper(_)
            | Type::Optional(_)
            | Type::Opaque(_)
            | Type::Abstract(_)
            | Type::Object(_)
            | Type::Duration
            | Type::Timestamp
    )
}

fn at_most_as_specific(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Dyn | Type::Any | Type::Var(_) | Type::Param(_), _) => true,
        (_, Type::Dyn | Type::Any | Type::Var(_) | Type::Param(_)) => false,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => at_most_as_specific(a, b),
        (Type::Map(k1, v1), Type::Map(k2, v2)) => at_most_as_specific(k1, k2) && at_most_as_specific(v1, v2),
        (Type::Abstract(a), Type::Abstract(b)) => {
            parts(a, b).is_some_and(|mut parts| parts.all(|(a, b)| at_most_as_specific(a, b)))
        }
        (Type::Type(_), Type::Type(_)) => true,
        (a, b) => same(a, b),
    }
}

/// Whether a type names a parameter.
fn is_generic(ty: &Type) -> bool {
    match ty {
        Type::Param(_) => true,
        Type::List(inner) | Type::Optional(inner) | Type::Type(Some(inner)) => is_generic(inner),
        Type::Map(key, value) => is_generic(key) || is_generic(value),
        Type::Abstract(ty) => ty.parameters.iter().any(is_generic),
        _ => false,
    }
}

/// The type with its parts replaced.
fn map_parts(ty: &Type, replace: &mut dyn FnMut(&Type) -> Type) -> Type {
    match ty {
        Type::List(item) => Type::List(Arc::new(replace(item))),
        Type::Map(key, value) => Type::Map(Arc::new(replace(key)), Arc::new(replace(value))),
        Type::Optional(inner) => Type::Optional(Arc::new(replace(inner))),
        Type::Type(Some(named)) => Type::Type(Some(Arc::new(replace(named)))),
        Type::Abstract(ty) => Type::Abstract(Arc::new(AbstractType {
            name: ty.name.clone(),
            parameters: ty.parameters.iter().map(replace).collect(),
        })),
        other => other.clone(),
    }
}
