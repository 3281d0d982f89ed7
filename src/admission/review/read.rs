//! Parses a request within limits: the parser limits its depth, this module its width, and the receiver of the bytes its size.

use admit_policy::{Arena, NoReview, Request, Review};
use serde_json::Value;

use super::id::{ReviewId, ReviewVersion};
use super::uid;

/// A valid review.
#[derive(Debug)]
pub(in crate::admission) struct Question<'d> {
    pub(in crate::admission) request: Request<'d>,
    version: ReviewVersion,
}

/// An invalid review: its error, and its id if that is known.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::admission) struct Unreadable {
    pub(in crate::admission) id: Option<ReviewId>,
    pub(in crate::admission) why: String,
}

impl Question<'_> {
    pub(in crate::admission) fn id(&self) -> ReviewId {
        ReviewId { uid: self.request.uid.clone(), version: self.version }
    }
}

/// The parts of a request that come from clients, where duplicate keys are possible. API servers write none elsewhere.
const FROM_CLIENTS: [[&str; 2]; 3] =
    [["request", "object"], ["request", "oldObject"], ["request", "options"]];

/// Parses an AdmissionReview of v1, or of v1beta1 if `beta` is true.
pub(in crate::admission) fn read<'d>(
    arena: &'d Arena,
    body: &'d [u8],
    beta: bool,
) -> Result<Question<'d>, Unreadable> {
    let mut review = Review::read(arena, body).map_err(|error| unreadable(error, body, beta))?;
    let version = if beta { upgrade(&mut review.envelope) } else { ReviewVersion::V1 };
    match Request::from_review(review) {
        Ok(request) => Ok(Question { request, version }),
        Err(error) => {
            let why = error.to_string();
            Err(Unreadable { id: error.uid.map(|uid| ReviewId { uid, version }), why })
        }
    }
}

fn unreadable(error: NoReview, body: &[u8], beta: bool) -> Unreadable {
    let (why, credible) = match error {
        NoReview::Syntax(why) => (format!("body is not JSON: {why}"), true),
        NoReview::TooMuch(why) => (why, true),
        NoReview::Duplicates(repeats) => {
            // If the envelope has duplicate keys, its uid is not reliable either.
            let first = repeats.paths().next().unwrap_or_default();
            (format!("duplicate field `{first}`"), repeats.are_within(&FROM_CLIENTS))
        }
    };
    Unreadable { id: if credible { uid::recover(body, beta) } else { None }, why }
}

/// Converts a review of v1beta1 to v1; returns its original version.
fn upgrade(review: &mut Value) -> ReviewVersion {
    let Some(Value::String(api_version)) = review.get_mut("apiVersion") else { return ReviewVersion::V1 };
    let version = ReviewVersion::of(api_version);
    if version == ReviewVersion::V1beta1 {
        ReviewVersion::V1.api_version().clone_into(api_version);
    }
    version
}
