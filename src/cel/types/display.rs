//! Types as messages show them: `list(map(string, dyn))`.

use std::fmt;

use super::Type;

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("bool"),
            Self::Int => f.write_str("int"),
            Self::Uint => f.write_str("uint"),
            Self::Double => f.write_str("double"),
            Self::String => f.write_str("string"),
            Self::Bytes => f.write_str("bytes"),
            Self::Duration => f.write_str("duration"),
            Self::Timestamp => f.write_str("timestamp"),
            Self::Dyn => f.write_str("dyn"),
            Self::Error => f.write_str("!error!"),
            Self::List(item) => write!(f, "list({item})"),
            Self::Map(key, value) => write!(f, "map({key}, {value})"),
            Self::Type(None) => f.write_str("type"),
            Self::Type(Some(named)) => write!(f, "type({named})"),
            Self::Optional(inner) => write!(f, "optional_type({inner})"),
            Self::Wrapper(inner) => write!(f, "wrapper({inner})"),
            Self::Opaque(name) | Self::Param(name) => f.write_str(name),
            Self::Abstract(ty) => {
                f.write_str(&ty.name)?;
                for (at, parameter) in ty.parameters.iter().enumerate() {
                    write!(f, "{}{parameter}", if at == 0 { "(" } else { ", " })?;
                }
                f.write_str(if ty.parameters.is_empty() { "" } else { ")" })
            }
            Self::Object(decl) => f.write_str(decl.name()),
            Self::Var(number) => write!(f, "_var{number}"),
        }
    }
}
