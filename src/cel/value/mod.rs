//! Values: small and `Copy`, borrowing the decoded document, a program's constants or the evaluation's arena, all of
//! lifetime `'a`.
//!
//! | part | decides |
//! |---|---|
//! | `list`, `map` | one interface over computed, constant and document collections |
//! | `view` | what a node of a document is through its declared type |
//! | `equality`, `members`, `order` | `==` and the order of `<` and `sort`, across number types |
//! | `convert` | JSON |
//! | `text` | how Go prints a value inside an error text |

mod constant;
mod convert;
mod equality;
mod error;
mod formats;
mod list;
mod map;
mod members;
mod order;
mod text;
mod view;

use std::net::IpAddr;

pub use constant::{Constant, ConstantEntries};
pub use error::EvalError;
pub use list::List;
pub(crate) use map::object_field;
pub use map::{HostMap, Map};
pub(crate) use members::Identity;
pub use order::{compare_int_double, compare_uint_double};
pub use text::TimestampError;

pub use crate::document::{MapNode, Node};
use crate::types::Type;

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
    Optional(Option<&'a Self>),
    Opaque(Opaque<'a>),
}

/// Values of Kubernetes' libraries.
#[derive(Clone, Copy, Debug)]
pub enum Opaque<'a> {
    Ip(IpAddr),
    Cidr(IpAddr, u8),
    Quantity(&'a crate::library::quantity::Quantity<'a>),
    Url(&'a crate::library::url::Url<'a>),
    Semver(&'a crate::library::semver::Semver<'a>),
    Format(&'static crate::library::format::NamedFormat),
    Authorization(&'a crate::library::authorizer::Authorization<'a>),
}
