//! Defines the types of the checker ([`Type`]) and of documents with a schema ([`DeclType`]).

mod decl;
mod display;
mod parse;

use std::sync::Arc;

pub(crate) use decl::field_position;
pub use decl::{DeclField, DeclKind, DeclType, ListType};
pub use display::runtime_name;
pub use parse::parse_type;
pub(crate) use parse::{TypeNames, parse_type_of, split_arguments};

/// The name of the type of a JSON patch's operations, which mutations make.
pub(crate) const PATCH: &str = "JSONPatch";

/// A CEL type.
///
/// ```
/// use admit_cel::{Type, parse_type};
///
/// let ty = parse_type("list(google.protobuf.Duration)").unwrap();
/// assert_eq!(ty, Type::List(Type::Duration.into()));
/// assert_eq!(ty.with_full_names().to_string(), "list(google.protobuf.Duration)");
/// assert_eq!(ty.to_string(), "list(duration)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// `null_type`, whose only value is null.
    Null,
    /// `bool`.
    Bool,
    /// `int`: 64 bits, signed.
    Int,
    /// `uint`: 64 bits, unsigned.
    Uint,
    /// `double`.
    Double,
    /// `string`.
    String,
    /// `bytes`.
    Bytes,
    /// `google.protobuf.Duration`.
    Duration,
    /// `google.protobuf.Timestamp`.
    Timestamp,
    /// A value whose type only its evaluation shows.
    Dyn,
    /// The same for cel-go's `any`: unlike `dyn` it is no range of a comprehension. Claims of tokens and attributes of
    /// devices are of it.
    Any,
    /// The type of an expression with an error; compatible with everything, so that an error is reported once.
    Error,
    /// `list(item)`.
    List(Arc<Self>),
    /// `map(key, value)`.
    Map(Arc<Self>, Arc<Self>),
    /// A type value, with the type that it names, if known.
    Type(Option<Arc<Self>>),
    /// `optional_type(value)`.
    Optional(Arc<Self>),
    /// `wrapper(int)` and its like: the primitive or null.
    Wrapper(Arc<Self>),
    /// A named type without fields that CEL can see: `kubernetes.Quantity`, `net.IP`.
    Opaque(Arc<str>),
    /// A type of the caller's own with parameters: `tuple(int, string)`.
    Abstract(Arc<AbstractType>),
    /// A document with declared fields.
    Object(Arc<DeclType>),
    /// A type parameter of an overload's signature: `T`.
    Param(Arc<str>),
    /// A type that a check has yet to find out; no checked expression has one.
    Var(u32),
}

/// A type that only the functions of the caller know: it has parameters, and neither fields nor literals.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AbstractType {
    /// Its name in signatures and messages.
    pub name: Box<str>,
    /// The parameters, in order.
    pub parameters: Box<[Type]>,
}
