//! Defines the interface through which mutations learn about kinds; servers and loaders of kinds implement it.

use std::fmt::Debug;

use serde_json::Value;

use crate::report::decision::Status;
use crate::request::GroupVersionKind;

/// What mutations need to know about the kinds of objects. [`MutatingPolicy`](crate::MutatingPolicy) has an example.
pub trait Schemas: Sync + Debug {
    /// Whether the kind is served at all.
    fn serves(&self, kind: &GroupVersionKind) -> bool;

    /// Merges the fields that `configuration` sets into `live`, by the rules of the kind's schema, as structured-merge-diff does.
    ///
    /// # Errors
    /// If one of them violates the schema, or the configuration sets an atomic field; without the prefix `error applying patch`.
    fn merged(&self, kind: &GroupVersionKind, live: &Value, configuration: &Value) -> Result<Value, Unmade>;

    /// Returns the result of a mutation as a server reads it: decoded as its kind, with defaults. `strict` rejects unknown fields.
    ///
    /// # Errors
    /// If it cannot be decoded as its kind.
    fn settled(&self, kind: &GroupVersionKind, object: Value, strict: bool) -> Result<Value, Unmade>;
}

/// Why a mutation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmade {
    /// An error to which the failure policy applies.
    Failed(String),
    /// An error for the client, whatever the failure policy is.
    Refused(Box<Status>),
}
