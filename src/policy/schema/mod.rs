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
//!
//! ```
//! use admit_apimachinery::findings::FieldErrors;
//! use admit_apimachinery::weight::Budget;
//! use admit_policy::{Pace, Path, schema};
//! use serde_json::json;
//!
//! let schema = schema::parse(
//!     &json!({"type": "object", "properties": {
//!         "size": {"type": "integer", "default": 3},
//!         "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
//!     }}),
//!     &Path::Nil,
//! )
//! .unwrap();
//! let (mut object, pace) = (json!({"size": null, "tags": ["a", "a"], "bogus": true}), Pace::new(None));
//! schema::drop_nulls(&mut object, Some(&schema), &pace);
//! assert!(schema::take_added(&object, &schema, &mut Budget::of_text(10_000)).is_ok());
//! schema::default(&mut object, &schema, &pace);
//! assert_eq!(schema::prune(&mut object, &schema, &pace), ["bogus"]);
//! assert_eq!(object, json!({"size": 3, "tags": ["a", "a"]}));
//! assert!(schema::validate(&object, &schema, None, &Path::Nil, &pace).is_empty());
//! let mut errors = FieldErrors::default();
//! schema::validate_lists(&object, &schema, &Path::Nil, &mut errors, &pace);
//! assert_eq!(errors.into_vec()[0].to_string(), "tags[1]: Duplicate value: \"a\"");
//! ```

pub(crate) mod correlate;
mod default;
mod enumeration;
pub(crate) mod format;
pub(crate) mod list_type;
pub(crate) mod metadata;
pub(crate) mod numeric;
mod outline;
mod parse;
mod pattern;
pub(crate) mod prune;
mod structural;
pub(crate) mod validate;

pub use correlate::{Correlated, Items, MapListIndex};
pub use default::{default, drop_nulls, is_default_refused, take_added};
pub use enumeration::Enumeration;
pub use list_type::validate as validate_lists;
pub use metadata::Malformed;
pub(crate) use outline::outline;
pub use parse::parse;
pub use pattern::Pattern;
pub use prune::prune;
pub use structural::{
    AdditionalProperties, Annotations, Checks, ListType, MapType, OwnChecks, Reason, Rule, Schema,
    SchemaType, Unsupported,
};
pub use validate::validate;
