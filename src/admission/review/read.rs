//! Bytes to a request, within limits: of depth by the reader, of width here, of size by whoever received the bytes.

use admit_policy::json;
use admit_policy::request::Request;

use super::uid;

/// A review that is no question: what is wrong with it, and its uid where that can be told.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::admission) struct Unreadable {
    pub(in crate::admission) uid: Option<String>,
    pub(in crate::admission) why: String,
}

/// Parts of a request that are written by clients. Elsewhere an API server never says a thing twice.
const FROM_CLIENTS: [&str; 3] = ["request.object.", "request.oldObject.", "request.options."];

/// Reads an AdmissionReview.
pub(in crate::admission) fn read(body: &[u8]) -> Result<Request, Unreadable> {
    let document = json::parse(body).map_err(|why| {
        let why = format!("body is not JSON: {why}");
        Unreadable { uid: uid::recover(body), why }
    })?;
    if let Some(path) = document.duplicates.first() {
        let why = format!("duplicate field `{path}`");
        // Of an envelope that contradicts itself, the uid is not to be believed either.
        let in_object = |path: &String| FROM_CLIENTS.iter().any(|part| path.starts_with(part));
        let uid = if document.duplicates.iter().all(in_object) { uid::recover(body) } else { None };
        return Err(Unreadable { uid, why });
    }
    Request::from_review(document.value)
        .map_err(|error| Unreadable { uid: error.uid.clone(), why: error.to_string() })
}
