//! Values: small and `Copy`, borrowing the decoded document or the evaluation's arena, both of lifetime `'a`.

mod containers;
mod error;
mod node;

use std::net::IpAddr;

pub use error::EvalError;
pub use node::{MapNode, Node};

use crate::types::{DeclType, Type};

/// Nanoseconds, signed, as Go's `time.Duration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub i64);

/// An instant with the offset it was written with.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// 0 to 999,999,999.
    pub nanos: u32,
    /// Seconds east of UTC; shown, never compared.
    pub offset: i32,
}

/// The value of an expression.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(&'a str),
    Bytes(&'a [u8]),
    Duration(Duration),
    Timestamp(Timestamp),
    List(List<'a>),
    Map(Map<'a>),
    Type(&'a Type),
    Optional(Option<&'a Value<'a>>),
    Opaque(Opaque<'a>),
}

/// A list: computed, or a view of a document's array through its declared type.
#[derive(Clone, Copy, Debug)]
pub enum List<'a> {
    Values(&'a [Value<'a>]),
    Document { items: &'a [Node<'a>], decl: Option<&'a DeclType> },
}

/// A map or object: computed, or a view of a document's object through its declared type.
#[derive(Clone, Copy, Debug)]
pub enum Map<'a> {
    /// Entries in the order they were made; keys are unique.
    Values(&'a [(Value<'a>, Value<'a>)]),
    Document {
        node: &'a MapNode<'a>,
        decl: Option<&'a DeclType>,
    },
}

/// Values of Kubernetes' libraries.
#[derive(Clone, Copy, Debug)]
pub enum Opaque<'a> {
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Quantity(&'a crate::library::quantity::Quantity),
    Url(&'a crate::library::url::Url),
    Semver(&'a crate::library::semver::Semver),
    Format(&'static crate::library::format::NamedFormat),
}
