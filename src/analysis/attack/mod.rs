//! Searches for ways around a policy: from a request that it denies to an admitted one with the same effect.
//!
//! ```text
//! given ──or── denied        a request that the policy denies
//!                 │ offence  shrunk, and the place for which it is denied
//!                 ▼
//!               Scene ──families──► neighbours, by types and meaning ──judge──► findings, the nearest first
//! ```
//!
//! Nothing here knows particular policies or evasions. Equal effects follow from the types of fields ([`admit_policy::Catalogue`], or
//! the schema of a definition), from what expressions read, and from how server and API treat a field. The engine decides what is
//! admitted, and a pair is reported only if the engine confirms both requests.
//!
//! | file | decides |
//! |---|---|
//! | `path` | paths in objects |
//! | `ask` | requests that are tried, reported and written |
//! | `judge` | the verdict of a server and all policies on a request |
//! | `rules`, `selectors` | what a policy reads, and what it and its bindings select |
//! | `types`, `values` | where values of a type may occur, and which values to try |
//! | `denied` | a denied request, if none is given |
//! | `offence` | the field for which a request is denied |
//! | `scene`, `families` | requests with the same effect |
//! | `finding`, `inquiry` | pairs, confirmed and ranked |

mod ask;
mod denied;
mod families;
mod finding;
mod inquiry;
mod judge;
mod offence;
mod path;
mod rules;
mod scene;
mod selectors;
mod types;
mod values;

pub use ask::Ask;
pub use finding::{Attacked, Family, Finding, Unconfirmed, Undecided, UnknownFamily};
pub use inquiry::Inquiry;
