//! Defines values: small and `Copy`, borrowing the decoded document, a program's constants or the evaluation's arena, all with the
//! lifetime `'a`.
//!
//! | part | decides |
//! |---|---|
//! | `list`, `map` | one interface over computed, constant and document collections |
//! | `entries` | finding keys in maps that are not a document's |
//! | `walk` | the entries of a map, one after the other |
//! | `view` | what a node of a document is through its declared type |
//! | `equality`, `written`, `members`, `order` | `==` and the order of `<` and `sort`, across number types |
//! | `held` | what becomes of a value in an optional |
//! | `convert` | JSON |
//! | `made` | the objects and patches that mutations make |
//! | `quantity`, `parsed` | quantities, URLs, versions, named formats |
//! | [`authorization`] | checks of rights |
//! | [`runtime_type`] | the type of a value |
//! | `preview` | CEL's own notation, shortened |
//! | `text` | how Go prints a value inside an error text |

pub mod authorization;
mod constant;
mod convert;
mod entries;
mod equality;
mod error;
mod formats;
mod held;
mod list;
mod made;
mod map;
mod members;
mod order;
mod parsed;
mod preview;
mod quantity;
pub mod runtime_type;
mod text;
mod view;
mod walk;
mod written;

use std::net::IpAddr;

use authorization::Authorization;
pub use constant::{Constant, ConstantEntries};
pub(crate) use entries::Entries;
pub use entries::Indexed;
pub use error::EvalError;
pub use list::List;
pub use made::Made;
pub(crate) use map::object_field;
pub use map::{HostMap, Map};
pub(crate) use members::Identity;
use order::{compare_int_double, compare_uint_double};
pub use parsed::{NamedFormat, Semver, Url};
pub use quantity::Quantity;
pub(crate) use walk::Walk;

pub(crate) use crate::document::{ListNode, MapNode, Node};
use crate::types::Type;
pub use admit_apimachinery::go::{Layout, Timestamp};

/// Nanoseconds, signed, as Go's `time.Duration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub i64);

/// The value of an expression.
///
/// Values of the authorizer are shown [at the trait that answers](crate::authorization::Authorizer).
///
/// ```
/// use std::cmp::Ordering;
///
/// use admit_cel::{List, Node, Value};
///
/// let one = Value::Int(1);
/// assert!(one.equals(&Value::Double(1.0)) && !one.equals(&Value::String("1")));
/// assert_eq!(one.compare(&Value::Uint(2))?, Ordering::Less);
///
/// // Documents are looked at where they are.
/// let (arena, json) = (bumpalo::Bump::new(), serde_json::json!({"tags": ["a"]}));
/// let document = Value::from_node(&arena, Node::from_json(&json), None)?;
/// assert!(document.try_equals(&arena, &Value::untyped(Node::from_json(&json)))?);
/// assert_eq!(document.to_json(&arena)?, json);
/// assert_eq!(Value::List(List::Values(&[one])).go_text(), "[1]");
/// # Ok::<(), admit_cel::EvalError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating point number.
    Double(f64),
    /// Text.
    String(&'a str),
    /// A byte sequence.
    Bytes(&'a [u8]),
    /// A span of time.
    Duration(Duration),
    /// An instant.
    Timestamp(Timestamp),
    /// A list.
    List(List<'a>),
    /// A map or object.
    Map(Map<'a>),
    /// A type as a value.
    Type(&'a Type),
    /// An optional, with or without a value.
    Optional(Option<&'a Self>),
    /// A value of Kubernetes' libraries.
    Opaque(Opaque<'a>),
}

/// Values of Kubernetes' libraries, objects of mutations, and the one message that stays a message.
#[derive(Clone, Copy, Debug)]
pub enum Opaque<'a> {
    /// An IP address.
    Ip(IpAddr),
    /// A network: an address and the length of its prefix.
    Cidr(IpAddr, u8),
    /// A quantity of a resource.
    Quantity(&'a Quantity<'a>),
    /// A URL.
    Url(&'a Url<'a>),
    /// A semantic version.
    Semver(&'a Semver<'a>),
    /// A named format of strings.
    Format(&'static NamedFormat),
    /// A check of rights, or its outcome.
    Authorization(&'a Authorization<'a>),
    /// A `google.protobuf.Empty`, which has no fields.
    Empty,
    /// An object, a part of one or a patch, as mutations make them.
    Made(&'a Made<'a>),
    /// What an optional held before an attribute started from it, and that cannot be taken out of it any more.
    Lost(&'a Value<'a>),
}

/// Reserves memory for that many parts of a value; adding more may still fail.
///
/// # Errors
///
/// If the arena's limit is exceeded.
pub(crate) fn room<T>(
    arena: &bumpalo::Bump,
    count: usize,
) -> Result<bumpalo::collections::Vec<'_, T>, EvalError> {
    let mut parts = bumpalo::collections::Vec::new_in(arena);
    parts.try_reserve_exact(count).map_err(|_| EvalError::MemoryLimitExceeded)?;
    Ok(parts)
}
