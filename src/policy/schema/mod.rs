//! The structural schema of a custom resource: parsed from `openAPIV3Schema`, then used to prune, default and
//! validate objects with kube-apiserver's verdicts and messages.
//!
//! ```text
//! openAPIV3Schema ──parse──► Schema ──┬─ default   nulls dropped, defaults filled in
//!                                     ├─ prune     unknown fields removed and named
//!                                     ├─ metadata  ObjectMeta of the root and of embedded resources
//!                                     ├─ validate  value checks, ratcheted against an old document
//!                                     └─ listtype  duplicates in sets and map lists
//! ```
//!
//! Whether a schema may be registered is decided by [`crate::crd`]; one that may not can still be parsed here.

pub(crate) mod correlate;
mod default;
mod enumeration;
pub(crate) mod format;
pub(crate) mod list_type;
pub(crate) mod metadata;
mod numeric;
mod outline;
mod parse;
mod pattern;
pub(crate) mod prune;
mod structural;
pub(crate) mod validate;

pub use correlate::{Correlated, Items, MapListIndex};
pub use default::{default, drop_nulls, take_added};
pub use enumeration::Enumeration;
pub use list_type::validate as validate_lists;
pub use metadata::Malformed;
pub use outline::outline;
pub use parse::parse;
pub use pattern::Pattern;
pub use prune::prune;
pub use structural::{
    AdditionalProperties, Annotations, Checks, ListType, MapType, OwnChecks, Reason, Rule, Schema,
    SchemaType, Unsupported,
};
pub use validate::validate;
