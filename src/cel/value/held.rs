//! What an optional holds once an attribute starts from it: cel-go unwraps the optional to Go's own value of it and wraps that again
//! (`interpreter/attributes.go`), in which declared types are lost, and values of Kubernetes' libraries cannot be had back.

use super::runtime_type;
use super::{EvalError, List, Map, Node, Opaque, Value};

impl<'a> Value<'a> {
    /// Returns what an optional holds of this value from then on, if that is another one.
    pub(crate) fn held(&'a self) -> Option<Self> {
        Some(match self {
            Self::Map(Map::Document { node, decl: Some(_) }) => Self::untyped(Node::Map(*node)),
            Self::List(List::Document { items, decl: Some(_) }) => Self::untyped(Node::List(*items)),
            Self::Type(ty) => Self::String(runtime_type::name(ty)),
            Self::Optional(None) => Self::Null,
            Self::Optional(Some(inner)) => inner.held().unwrap_or(**inner),
            Self::Opaque(
                Opaque::Ip(_)
                | Opaque::Cidr(..)
                | Opaque::Quantity(_)
                | Opaque::Url(_)
                | Opaque::Semver(_)
                | Opaque::Authorization(_)
                | Opaque::Lost(_),
            ) => Self::Opaque(Opaque::Lost(self)),
            _ => return None,
        })
    }

    /// Takes the value out of an optional that holds it.
    ///
    /// # Errors
    /// `unsupported conversion to ref.Val` for one that was lost, `no such overload` for an authorizer's.
    pub(crate) fn taken(self) -> Result<Self, EvalError> {
        match self {
            Self::Opaque(Opaque::Lost(lost)) => Err(conversion_error(lost)),
            value => Ok(value),
        }
    }
}

/// The error that an optional holds in the place of a value that was lost.
pub(super) fn conversion_error(lost: &Value<'_>) -> EvalError {
    let text = match lost {
        Value::Opaque(Opaque::Ip(address)) => format!("(netip.Addr){address}"),
        Value::Opaque(Opaque::Cidr(address, bits)) => format!("(netip.Prefix){address}/{bits}"),
        Value::Opaque(Opaque::Quantity(quantity)) => format!("(*resource.Quantity){quantity}"),
        Value::Opaque(Opaque::Url(url)) => format!("(*url.URL){}", url.text),
        Value::Opaque(Opaque::Semver(version)) => format!("(semver.Version){}", version.text),
        // The error is a value, too, and has no way back either.
        Value::Opaque(Opaque::Lost(lost)) => format!("(*errors.errorString){}", conversion_error(lost)),
        _ => return EvalError::NoSuchOverload,
    };
    EvalError::other(format!("unsupported conversion to ref.Val: {text}"))
}
