//! Draws state diagrams of what rules allow: which values of a field may follow one another, under schema, rules of the definition and
//! bound policies together.
//!
//! ```text
//! rules ──reads──► fields that are compared with what they were before
//! field, or expression ──space──► states, and values of other fields ─┬─ exact    what holds for all objects
//!                                                                     └─ explore  what is admitted, object by object ──► Picture
//! ```
//!
//! A transition is *allowed* if an object that came to be under these rules makes it (an example is shown); *forbidden* if rules that
//! read this field and few others refuse all of their values; otherwise no example was found in a number of writes, and it is
//! *undecided*. Every verdict on an object is that of admit-policy.
//!
//! Values that the schema rejects are not considered: an object stored before the schema was narrowed may have them.

mod assembly;
mod atoms;
mod bases;
mod calls;
mod eligible;
mod exact;
mod expect;
mod explore;
mod expression;
mod field;
mod inquiry;
mod judge;
mod local;
mod looks;
mod mermaid;
mod moves;
mod picture;
mod rules;
mod scalar;
mod space;
mod subject;
mod values;

pub use expect::{Diagram, DiagramError, Difference, compare};
pub use expression::state_env;
pub use field::{FieldPath, FieldPathError, Step};
pub use inquiry::Inquiry;
pub use mermaid::mermaid;
pub use picture::{Allowance, Example, Limit, Picture, PictureError, Reach, RuleText, StateOf, Transition};
pub use subject::Subject;
