//! One run, every release: judges documents as the API servers of several Kubernetes releases would.
//!
//! Input: documents, and the releases. Output: a [`Report`]: what each release refuses or finds too costly, what it drops or
//! does not check, and the first release from which on all of a file is taken. What differs between releases is known from
//! [`facts`] and from the rows of admit-cel; each says where it was read. What is not known is told by [`facts::unknown_of`].

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
