//! Reports the state of a controller as a ClusterOperator: its parts state what they know, whenever they know it, and
//! one reporter combines that into conditions.
//!
//! ```text
//!  kit: objects are watched, looks fail ──┐
//!  system: uploads fail, is switched off ─┼─► Says ──union──► Available, Progressing, Degraded ──► ClusterOperator (fenced)
//!                                         └─► conditions that are shown under names of their own ─┘
//! ```
//!
//! INVARIANT: conditions of other writers stay as they are, and only our own fields of a status are written. In a
//! cluster without ClusterOperators the same statements are made, and nobody reports them.

mod combine;
pub mod crd;
mod reporter;
mod statements;

pub use combine::{Aspect, Word};
pub use reporter::Operator;
pub use statements::Says;
