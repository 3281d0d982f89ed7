//! Judges documents as the API servers of several Kubernetes releases would, in one run.
//!
//! Input: documents, and the releases. Output: a [`Report`]: what each release rejects or finds too costly, what it drops or does not
//! check, and the first release that accepts a whole file. The differences between releases come from [`facts`] and from the rows of
//! admit-cel, each with its source. [`facts::unknown_of`] reports what is unknown.

mod boundaries;
pub mod facts;
mod judge;
mod page;
mod range;
mod reason;

pub use boundaries::offered_from;
pub use judge::{DocumentReport, FileReport, Found, Report, groups, judge, not_served};
pub use page::page;
pub use range::{FIRST, LAST, Release, Releases, ReleasesError};
pub use reason::Cause;
