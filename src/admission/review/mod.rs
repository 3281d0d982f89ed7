//! The AdmissionReview codec: bytes to a request within limits, a decision or a failure to bytes that an API server
//! believes. Deciding is left to others.

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
