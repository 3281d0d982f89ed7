//! Compiles policy documents into a [`PolicySet`] and decides requests with it. Pure functions, no I/O.
//!
//! ```text
//! documents ──PolicySet::load──► PolicySet ──decide(Request, Host)──► Decision
//!             every mistake of         matching, params, CEL             denial · warnings · annotations
//!             every document                                             and what each rule said
//! ```
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

pub mod access;
pub mod adhoc;
pub mod apply;
pub mod crd;
pub mod decision;
mod decode;
pub mod documents;
pub mod explanation;
pub mod host;
mod index;
pub mod json;
pub mod lint;
mod load;
pub mod manifest;
pub mod matching;
mod meta;
pub mod object;
mod oversight;
pub mod patch;
pub mod path;
pub mod rbac;
pub mod recording;
pub mod request;
pub mod review;
pub mod schema;
mod set;
pub mod skeleton;
mod strict;
pub mod suite;
pub mod vap;
pub mod webhook;

pub use self::decision::Decision;
pub use self::decode::DecodeError;
pub use self::documents::Documents;
pub use self::load::LoadOptions;
pub use self::oversight::{Deadline, Interrupted, Oversight, Pace, asking, unasked};
pub use self::recording::Recording;
pub use self::request::Request;
pub use self::set::{LoadErrorKind, PolicySet, PolicySetBuilder};
