//! Caches what decisions need from the cluster: updated by watches, and marked as unreliable when these fail.
//!
//! ```text
//! Namespaces, CRDs ─┐                             ┌─► Host: namespaces, versions, params, access
//! policies, bindings┼─follow─► Collection ────────┼─► Host: exceptions, read when they change
//! exceptions        │                             │
//! params by kind   ─┘  list, watch, list again    └─► documents of policies, for whoever compiles them
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `access` | access questions, as SubjectAccessReviews | none of these |
//! | `collection` | the objects of a kind, and whether they are up to date | none of these |
//! | `definitions` | the served versions of custom resources | none of these |
//! | `exceptions` | which exceptions of the cluster are in force | collection, follow |
//! | `follow` | how a kind is listed and watched | collection |
//! | `params` | the objects that policies use as params | collection, follow |
//! | `cluster` | what the `Host` of decisions answers | access, collection, definitions, exceptions, follow, params |

mod access;
mod cluster;
mod collection;
mod definitions;
mod exceptions;
mod follow;
mod params;

pub use cluster::{ClusterCache, Wanted};
pub use exceptions::ExceptionCounts;
