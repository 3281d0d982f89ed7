//! Formats types as messages show them: `list(map(string, dyn))`.

use std::fmt;

use super::Type;

/// How types that come from protocol buffers are named.
#[derive(Clone, Copy)]
enum Names {
    /// `duration`, `timestamp`, `null`, as the checker's own messages have it.
    Short,
    /// `google.protobuf.Duration`, `google.protobuf.Timestamp`, `null_type`.
    Full,
}

struct Shown<'t>(&'t Type, Names);

impl Type {
    /// The type under the names of its declaration: `list(google.protobuf.Duration)`, `null_type`.
    #[must_use]
    pub fn with_full_names(&self) -> impl fmt::Display + '_ {
        Shown(self, Names::Full)
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Shown(self, Names::Short).fmt(f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(ty, names) = *self;
        let of = |ty| Shown(ty, names);
        let named = |short, full| match names {
            Names::Short => short,
            Names::Full => full,
        };
        match ty {
            Type::Null => f.write_str(named("null", "null_type")),
            Type::Bool => f.write_str("bool"),
            Type::Int => f.write_str("int"),
            Type::Uint => f.write_str("uint"),
            Type::Double => f.write_str("double"),
            Type::String => f.write_str("string"),
            Type::Bytes => f.write_str("bytes"),
            Type::Duration => f.write_str(named("duration", "google.protobuf.Duration")),
            Type::Timestamp => f.write_str(named("timestamp", "google.protobuf.Timestamp")),
            Type::Dyn => f.write_str("dyn"),
            Type::Any => f.write_str("any"),
            Type::Error => f.write_str("!error!"),
            Type::List(item) => write!(f, "list({})", of(item)),
            Type::Map(key, value) => write!(f, "map({}, {})", of(key), of(value)),
            Type::Type(None) => f.write_str("type"),
            Type::Type(Some(named)) => write!(f, "type({})", of(named)),
            Type::Optional(inner) => write!(f, "optional_type({})", of(inner)),
            Type::Wrapper(inner) => write!(f, "wrapper({})", of(inner)),
            Type::Opaque(name) | Type::Param(name) => f.write_str(name),
            Type::Abstract(ty) => {
                f.write_str(&ty.name)?;
                for (at, parameter) in ty.parameters.iter().enumerate() {
                    write!(f, "{}{}", if at == 0 { "(" } else { ", " }, of(parameter))?;
                }
                f.write_str(if ty.parameters.is_empty() { "" } else { ")" })
            }
            Type::Object(decl) => f.write_str(decl.name()),
            Type::Var(number) => write!(f, "_var{number}"),
        }
    }
}

/// The name of a type at run time: `int`, `list`, `google.protobuf.Duration`, `kubernetes.Quantity`.
#[must_use]
pub fn runtime_name(ty: &Type) -> &str {
    match ty {
        Type::Null => "null_type",
        Type::Bool => "bool",
        Type::Int => "int",
        Type::Uint => "uint",
        Type::Double => "double",
        Type::String => "string",
        Type::Bytes => "bytes",
        Type::Duration => "google.protobuf.Duration",
        Type::Timestamp => "google.protobuf.Timestamp",
        Type::Dyn | Type::Var(_) => "dyn",
        Type::Any => "google.protobuf.Any",
        Type::Error => "error",
        Type::List(_) => "list",
        Type::Map(..) => "map",
        Type::Type(_) => "type",
        Type::Optional(_) => "optional_type",
        Type::Wrapper(inner) => runtime_name(inner),
        Type::Opaque(name) | Type::Param(name) => name,
        Type::Abstract(ty) => &ty.name,
        Type::Object(decl) => match &decl.kind {
            super::DeclKind::Object { name, .. } => name,
            _ => "map",
        },
    }
}
