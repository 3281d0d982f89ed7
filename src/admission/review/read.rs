//! Bytes to a request, within limits: of depth by the reader, of width here, of size by whoever received the bytes.

use admit_policy::{Arena, NoReview, Request, Review};
use serde_json::Value;

use super::id::{ReviewId, ReviewVersion};
use super::uid;

/// A review that can be decided on.
#[derive(Debug)]
pub(in crate::admission) struct Question<'d> {
    pub(in crate::admission) request: Request<'d>,
    version: ReviewVersion,
}

/// A review that is no question: what is wrong with it, and whose it is where that can be told.
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

/// Parts of a request that are written by clients. Elsewhere an API server never says a thing twice.
const FROM_CLIENTS: [[&str; 2]; 3] =
    [["request", "object"], ["request", "oldObject"], ["request", "options"]];

/// Reads an AdmissionReview of v1, or of v1beta1 where `beta` allows it.
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
            // Of an envelope that contradicts itself, the uid is not to be believed either.
            let first = repeats.paths().next().unwrap_or_default();
            (format!("duplicate field `{first}`"), repeats.are_within(&FROM_CLIENTS))
        }
    };
    Unreadable { id: if credible { uid::recover(body, beta) } else { None }, why }
}

/// Makes a review of v1beta1 one of v1; what it was.
fn upgrade(review: &mut Value) -> ReviewVersion {
    let Some(Value::String(api_version)) = review.get_mut("apiVersion") else { return ReviewVersion::V1 };
    let version = ReviewVersion::of(api_version);
    if version == ReviewVersion::V1beta1 {
        ReviewVersion::V1.api_version().clone_into(api_version);
    }
    version
}
