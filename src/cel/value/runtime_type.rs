//! Represents the type of a value at run time, and its name in messages. Parameters are erased, as in cel-go: every list is a `list`,
//! every map a `map`.
//!
//! ```
//! use admit_cel::{Type, Value, runtime_type};
//!
//! assert_eq!(runtime_type::of(&Value::Int(1)), &Type::Int);
//! assert_eq!(runtime_type::name_of(&Value::Null), "null_type");
//! assert_eq!(runtime_type::name(&Type::Duration), "google.protobuf.Duration");
//! ```

use std::sync::{Arc, LazyLock};

use super::authorization::Authorization;
use super::{Opaque, Value};
use crate::types::Type;
pub use crate::types::runtime_name as name;

static LIST: LazyLock<Type> = LazyLock::new(|| Type::List(Arc::new(Type::Dyn)));
static MAP: LazyLock<Type> = LazyLock::new(|| Type::Map(Arc::new(Type::Dyn), Arc::new(Type::Dyn)));
static OPTIONAL: LazyLock<Type> = LazyLock::new(|| Type::Optional(Arc::new(Type::Dyn)));
static TYPE: Type = Type::Type(None);
static IP: LazyLock<Type> = LazyLock::new(|| Type::Opaque("net.IP".into()));
static CIDR: LazyLock<Type> = LazyLock::new(|| Type::Opaque("net.CIDR".into()));
static QUANTITY: LazyLock<Type> = LazyLock::new(|| Type::Opaque("kubernetes.Quantity".into()));
static URL: LazyLock<Type> = LazyLock::new(|| Type::Opaque("kubernetes.URL".into()));
static SEMVER: LazyLock<Type> = LazyLock::new(|| Type::Opaque("kubernetes.Semver".into()));
static FORMAT: LazyLock<Type> = LazyLock::new(|| Type::Opaque("kubernetes.NamedFormat".into()));

static EMPTY: LazyLock<Type> = LazyLock::new(|| Type::Opaque("google.protobuf.Empty".into()));
static AUTHORIZER: LazyLock<Type> =
    LazyLock::new(|| Type::Opaque("kubernetes.authorization.Authorizer".into()));
static PATH_CHECK: LazyLock<Type> =
    LazyLock::new(|| Type::Opaque("kubernetes.authorization.PathCheck".into()));
static GROUP_CHECK: LazyLock<Type> =
    LazyLock::new(|| Type::Opaque("kubernetes.authorization.GroupCheck".into()));
static RESOURCE_CHECK: LazyLock<Type> =
    LazyLock::new(|| Type::Opaque("kubernetes.authorization.ResourceCheck".into()));
static DECISION: LazyLock<Type> = LazyLock::new(|| Type::Opaque("kubernetes.authorization.Decision".into()));

/// The type of a value.
#[must_use]
pub fn of<'a>(value: &Value<'a>) -> &'a Type {
    match value {
        Value::Null => &Type::Null,
        Value::Bool(_) => &Type::Bool,
        Value::Int(_) => &Type::Int,
        Value::Uint(_) => &Type::Uint,
        Value::Double(_) => &Type::Double,
        Value::String(_) => &Type::String,
        Value::Bytes(_) => &Type::Bytes,
        Value::Duration(_) => &Type::Duration,
        Value::Timestamp(_) => &Type::Timestamp,
        Value::List(_) => &LIST,
        Value::Map(_) => &MAP,
        Value::Type(_) => &TYPE,
        Value::Optional(_) => &OPTIONAL,
        Value::Opaque(opaque) => of_opaque(opaque),
    }
}

fn of_opaque<'a>(value: &Opaque<'a>) -> &'a Type {
    match value {
        Opaque::Ip(_) => &IP,
        Opaque::Cidr(..) => &CIDR,
        Opaque::Quantity(_) => &QUANTITY,
        Opaque::Url(_) => &URL,
        Opaque::Semver(_) => &SEMVER,
        Opaque::Format(_) => &FORMAT,
        Opaque::Empty => &EMPTY,
        Opaque::Made(made) => made.ty(),
        Opaque::Lost(lost) => of(lost),
        Opaque::Authorization(value) => match value {
            Authorization::Authorizer(_) => &AUTHORIZER,
            Authorization::Path(..) => &PATH_CHECK,
            Authorization::Group(..) => &GROUP_CHECK,
            Authorization::Resource(..) => &RESOURCE_CHECK,
            Authorization::Decision { .. } => &DECISION,
        },
    }
}

/// The name of a value's type.
#[must_use]
pub fn name_of<'a>(value: &Value<'a>) -> &'a str {
    name(of(value))
}
