//! Bytes to a request, within limits: of depth by the reader, of width here, of size by whoever received the bytes.

use admit_policy::json;
use admit_policy::request::Request;
use serde_json::Value;

use super::id::{ReviewId, ReviewVersion};
use super::uid;

/// A review that can be decided on.
#[derive(Debug)]
pub(in crate::admission) struct Question {
    pub(in crate::admission) request: Request,
    version: ReviewVersion,
}

/// A review that is no question: what is wrong with it, and whose it is where that can be told.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::admission) struct Unreadable {
    pub(in crate::admission) id: Option<ReviewId>,
    pub(in crate::admission) why: String,
}

impl Question {
    pub(in crate::admission) fn id(&self) -> ReviewId {
        ReviewId { uid: self.request.uid.clone(), version: self.version }
    }
}

/// Parts of a request that are written by clients. Elsewhere an API server never says a thing twice.
const FROM_CLIENTS: [&str; 3] = ["request.object.", "request.oldObject.", "request.options."];

/// Reads an AdmissionReview of v1, or of v1beta1 where `beta` allows it.
pub(in crate::admission) fn read(body: &[u8], beta: bool) -> Result<Question, Unreadable> {
    let document = json::parse(body).map_err(|why| {
        let why = format!("body is not JSON: {why}");
        Unreadable { id: uid::recover(body, beta), why }
    })?;
    if let Some(path) = document.duplicates.first() {
        let why = format!("duplicate field `{path}`");
        // Of an envelope that contradicts itself, the uid is not to be believed either.
        let in_object = |path: &String| FROM_CLIENTS.iter().any(|part| path.starts_with(part));
        let id = if document.duplicates.iter().all(in_object) { uid::recover(body, beta) } else { None };
        return Err(Unreadable { id, why });
    }
    let mut review = document.value;
    let version = if beta { upgrade(&mut review) } else { ReviewVersion::V1 };
    match Request::from_review(review) {
        Ok(request) => Ok(Question { request, version }),
        Err(error) => {
            let why = error.to_string();
            Err(Unreadable { id: error.uid.map(|uid| ReviewId { uid, version }), why })
        }
    }
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
