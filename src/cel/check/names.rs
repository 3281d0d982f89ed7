//! Resolves names: iteration variables, declared variables, types, functions; within a container, innermost first.

use std::sync::Arc;

use crate::library::functions::Function;
use crate::library::messages::Message;
use crate::library::{Functions, Version, messages};
use crate::syntax::{Ast, Expr, ExprId};
use crate::types::{PATCH, Type, parse_type};

/// What an expression may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Environment<'e> {
    /// The functions, with their overloads.
    pub functions: &'e Functions,
    /// The variables by their full names.
    pub variables: &'e [(Box<str>, Type)],
    /// Names are also looked up within this namespace and those around it; empty for none.
    pub container: &'e str,
    /// Whether the elements of a list or map literal must be of one type.
    pub homogeneous_literals: bool,
    /// Whether constant durations, timestamps and regular expressions must be valid.
    pub checked_literals: bool,
    /// Variables of comprehensions hide all others; otherwise a name is first looked up in the container, together with the selections
    /// that follow it.
    pub locals_first: bool,
    /// Whether scalar types also have the names under which Kubernetes declares them (apiserver `pkg/cel/types.go`).
    pub declared_scalars: bool,
    /// Mutations make objects, their parts and patches (apiserver `pkg/cel/mutation`).
    pub patch_types: bool,
    /// Fields may be named by reserved words as they are (apiserver `pkg/cel/environment/environment.go`).
    pub keyword_fields: bool,
    /// The version: type names are known from the release on that added them.
    pub version: Version,
}

/// A name that was found.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) name: Box<str>,
    pub(super) kind: FoundKind,
}

#[derive(Clone, Debug)]
pub(super) enum FoundKind {
    Variable(Type),
    Type(Type),
    /// A constant of an enumeration.
    Constant(i64),
}

/// A type's name, the release that added it, and the type.
type Named = (&'static str, Version, fn() -> Type);

const TYPES: [Named; 15] = [
    ("bool", Version(1, 0), || Type::Bool),
    ("bytes", Version(1, 0), || Type::Bytes),
    ("double", Version(1, 0), || Type::Double),
    ("google.protobuf.Duration", Version(1, 0), || Type::Duration),
    ("google.protobuf.Timestamp", Version(1, 0), || Type::Timestamp),
    ("int", Version(1, 0), || Type::Int),
    ("list", Version(1, 0), || Type::List(Arc::new(Type::Dyn))),
    ("map", Version(1, 0), || Type::Map(Arc::new(Type::Dyn), Arc::new(Type::Dyn))),
    ("net.CIDR", Version(1, 30), || Type::Opaque("net.CIDR".into())),
    ("net.IP", Version(1, 30), || Type::Opaque("net.IP".into())),
    ("null_type", Version(1, 0), || Type::Null),
    ("optional_type", Version(1, 28), || Type::Optional(Arc::new(Type::Dyn))),
    ("string", Version(1, 0), || Type::String),
    ("type", Version(1, 0), || Type::Type(None)),
    ("uint", Version(1, 0), || Type::Uint),
];

/// Whether the name is of the object that a mutation makes, or of a part of it.
fn is_object(name: &str) -> bool {
    name.strip_prefix("Object").is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Whether the name is of something that mutations make, and no name of a message.
pub(crate) fn is_made(name: &str) -> bool {
    name == PATCH || is_object(name)
}

/// The fields of the type that a literal creates.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fields {
    Message(&'static Message),
    /// Any field of any type.
    Object,
    Patch,
}

impl Fields {
    /// The type of a field.
    pub(super) fn field(self, name: &str) -> Option<Type> {
        match (self, name) {
            (Self::Message(message), _) => message.field(name).and_then(|(_, ty)| parse_type(ty)),
            (Self::Object, _) | (Self::Patch, "value") => Some(Type::Dyn),
            (Self::Patch, "op" | "path" | "from") => Some(Type::String),
            (Self::Patch, _) => None,
        }
    }
}

/// The type of a name, of whatever release.
pub(crate) fn type_named(name: &str) -> Option<Type> {
    match TYPES.iter().find(|(known, ..)| *known == name) {
        Some((.., ty)) => Some(ty()),
        None => messages::message(name).and_then(|message| parse_type(message.ty)),
    }
}

impl<'e> Environment<'e> {
    /// What a literal of a type may set, if there are such literals.
    pub(super) fn fields(&self, name: &str) -> Option<Fields> {
        messages::message(name).map(Fields::Message).or_else(|| self.made_fields(name))
    }

    /// Returns the fields of objects of mutations.
    pub(super) fn made_fields(&self, name: &str) -> Option<Fields> {
        let made = match name {
            PATCH => Some(Fields::Patch),
            _ => is_object(name).then_some(Fields::Object),
        };
        made.filter(|_| self.patch_types)
    }

    /// The variable or type of a name; `locals` hide it, the last one first.
    pub(super) fn identifier(&self, name: &str, locals: &[(Box<str>, Type)]) -> Option<Found> {
        if self.locals_first
            && let Some(hidden) = self.hidden(name, locals)
        {
            return hidden;
        }
        self.candidates(name, |candidate| {
            let local = locals.iter().rev().find(|(known, _)| **known == *candidate);
            let declared = || self.variables.iter().find(|(known, _)| **known == *candidate);
            let kind = match local.or_else(declared) {
                Some((_, ty)) => FoundKind::Variable(ty.clone()),
                None => match self.type_named(candidate) {
                    Some(ty) => FoundKind::Type(ty),
                    None => FoundKind::Constant(messages::enumerator(candidate)?),
                },
            };
            Some(Found { name: candidate.into(), kind })
        })
    }

    /// What a name means whose first part is a variable of a comprehension, or would be if it were not absolute.
    fn hidden(&self, name: &str, locals: &[(Box<str>, Type)]) -> Option<Option<Found>> {
        let absolute = name.strip_prefix('.');
        let root = absolute.unwrap_or(name).split('.').next().unwrap_or_default();
        let (_, ty) = locals.iter().rev().find(|(known, _)| **known == *root)?;
        Some(match absolute {
            // Keeps the leading dot, so that the planner does not confuse it with the variable that hides it.
            Some(_) => self
                .identifier(name, &[])
                .map(|found| Found { name: format!(".{}", found.name).into(), ..found }),
            None if root == name => Some(Found { name: name.into(), kind: FoundKind::Variable(ty.clone()) }),
            None => None,
        })
    }

    pub(super) fn function(&self, name: &str) -> Option<&'e Function> {
        let functions = self.functions;
        self.candidates(name, |candidate| functions.get(candidate))
    }

    /// Whether any variable or type has a dotted name that begins with this one, so that a selection may be a name.
    pub(super) fn may_qualify(&self, root: &str) -> bool {
        let begins = |name: &str| {
            name.strip_prefix(root.trim_start_matches('.')).is_some_and(|rest| rest.starts_with('.'))
        };
        !self.container.is_empty()
            || begins("google.protobuf")
            || (self.patch_types && is_object(root.trim_start_matches('.')))
            || TYPES.iter().any(|(name, ..)| begins(name))
            || self.variables.iter().any(|(name, _)| begins(name))
    }

    fn type_named(&self, name: &str) -> Option<Type> {
        let is_newer = TYPES.iter().any(|(known, since, _)| *known == name && *since > self.version);
        if is_newer {
            return None;
        }
        type_named(name).or(match name {
            // Kubernetes' own names: known to the checker, but not at run time.
            "duration" if self.declared_scalars => Some(Type::Duration),
            "timestamp" if self.declared_scalars => Some(Type::Timestamp),
            PATCH => self.patch_types.then(|| Type::Opaque(name.into())),
            _ => (self.patch_types && is_object(name)).then(|| Type::Opaque(name.into())),
        })
    }

    /// Tries a name in the container, in each enclosing namespace, and as written; an absolute name only as written.
    fn candidates<T>(&self, name: &str, mut find: impl FnMut(&str) -> Option<T>) -> Option<T> {
        if let Some(absolute) = name.strip_prefix('.') {
            return find(absolute);
        }
        let mut container = self.container;
        while !container.is_empty() {
            if let Some(found) = find(&format!("{container}.{name}")) {
                return Some(found);
            }
            container = container.rsplit_once('.').map_or("", |(outer, _)| outer);
        }
        find(name)
    }
}

/// The dotted name that an expression spells, if it is a name or a chain of selections from one.
pub(super) fn qualified_name(ast: &Ast, id: ExprId) -> Option<String> {
    let mut fields: Vec<&str> = Vec::new();
    let mut at = id;
    loop {
        match ast.expr(at) {
            Expr::Ident(name) => {
                let mut text = name.to_string();
                for field in fields.iter().rev() {
                    text.push('.');
                    text.push_str(field);
                }
                return Some(text);
            }
            Expr::Select { operand, field, test_only: false } => {
                fields.push(field);
                at = *operand;
            }
            _ => return None,
        }
    }
}

/// The name at the root of a chain of selections.
pub(super) fn root_name(ast: &Ast, id: ExprId) -> Option<&str> {
    let mut at = id;
    loop {
        match ast.expr(at) {
            Expr::Ident(name) => return Some(name),
            Expr::Select { operand, test_only: false, .. } => at = *operand,
            _ => return None,
        }
    }
}
