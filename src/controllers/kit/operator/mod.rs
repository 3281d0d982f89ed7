//! Reports the state of a controller as a ClusterOperator: its parts state what they know, whenever they know it, and
//! one reporter combines that into conditions.
//!
//! ```text
//!  kit: objects are watched, looks fail ──┐
//!  system: uploads fail, is switched off ─┼─► Says ──union──► Available, Progressing, Degraded ──► ClusterOperator (fenced)
//!                                         └─► conditions that are shown under names of their own ─┘
//! ```
//!
//! INVARIANT: a condition of another's making stays as it is; what is not ours of a status is not written. Who is no operator of a
//! cluster that knows ClusterOperators says the same, and nobody hears it.

pub mod crd;
mod reporter;
mod says;
mod union;

pub use reporter::Operator;
pub use says::Says;
pub use union::{Aspect, Word};
