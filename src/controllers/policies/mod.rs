//! Caches what decisions need from the cluster: kept up to date by watches, and marked when it may not be.
//!
//! ```text
//! Namespaces, CRDs ─┐                             ┌─► Host: namespaces, versions, params, access
//! policies, bindings┼─follow─► Collection ────────┤
//! params by kind   ─┘  list, watch, list again    └─► documents of policies, for whoever compiles them
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `access` | access questions, as SubjectAccessReviews | none of these |
//! | `collection` | the objects of a kind, and whether they are up to date | none of these |
//! | `definitions` | the served versions of custom resources | none of these |
//! | `follow` | how a kind is listed and watched | collection |
//! | `params` | the objects that policies use as params | collection, follow |
//! | `cluster` | what the `Host` of decisions answers | access, collection, definitions, follow, params |

mod access;
mod cluster;
mod collection;
mod definitions;
mod follow;
mod params;

pub use cluster::ClusterCache;
