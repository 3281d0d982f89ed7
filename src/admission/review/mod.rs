//! Encodes and decodes AdmissionReviews: parses bytes to a request within limits, and writes a decision or a failure so that an API
//! server accepts it. It decides nothing.

mod annotations;
mod answer;
mod id;
mod read;
mod uid;

pub use answer::Answer;
pub(super) use answer::Decided;
pub(super) use id::ReviewId;
pub(super) use read::{Question, Unreadable, read};
pub(super) use uid::recover as recover_id;
