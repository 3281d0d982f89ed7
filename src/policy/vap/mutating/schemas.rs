//! Defines the interface through which mutations learn about kinds; servers and loaders of kinds implement it.

use std::fmt::Debug;

use serde_json::Value;

use crate::report::decision::Status;
use crate::request::GroupVersionKind;

/// What is known of the kinds whose objects are changed. [`MutatingPolicy`](crate::MutatingPolicy) has an example.
pub trait Schemas: Sync + Debug {
    /// Whether the kind is served at all.
    fn serves(&self, kind: &GroupVersionKind) -> bool;

    /// `live` with what `configuration` sets, merged by the rules of the kind's schema as structured-merge-diff has them.
    ///
    /// # Errors
    /// When one of them does not fit the schema, or the configuration sets something atomic; without the words
    /// `error applying patch`.
    fn merged(&self, kind: &GroupVersionKind, live: &Value, configuration: &Value) -> Result<Value, Unmade>;

    /// An object that a mutation made, as a server reads it: decoded as its kind, with defaults. `strict` objects to fields
    /// that the kind does not have.
    ///
    /// # Errors
    /// When it cannot be decoded as its kind.
    fn settled(&self, kind: &GroupVersionKind, object: Value, strict: bool) -> Result<Value, Unmade>;
}

/// Why a mutation makes no object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unmade {
    /// For the failure policy to decide on.
    Failed(String),
    /// The client gets it whatever the failure policy says.
    Refused(Box<Status>),
}
