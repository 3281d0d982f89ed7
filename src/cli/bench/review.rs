//! Prepares the AdmissionReview that is posted: its JSON is serialized once, and each request gets a uid of its own.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use admit_apimachinery::yaml;
use admit_policy::json;
use bytes::Bytes;
use serde_json::Value;

use crate::cli::load;
use crate::cli::process::Fault;

const POD: &str = include_str!("pod.json");
/// A uid of the form that API servers use; all uids have its length.
const UID: &str = "bench000-0000-4000-8000-000000000000";
/// The range of the request's number in it.
const NUMBER: Range<usize> = 24..36;

/// Why a file has no AdmissionReview that can be posted.
#[derive(Debug, thiserror::Error)]
enum ReviewError {
    #[error(transparent)]
    Syntax(#[from] yaml::YamlError),
    #[error("it is empty")]
    Empty,
    #[error("it has {0} documents; one is expected")]
    TooMany(usize),
    #[error("`kind` is another")]
    OtherKind,
    #[error("there is no `request`")]
    MissingRequest,
    #[error("there is no room for a uid")]
    MissingUid,
}

/// An AdmissionReview as JSON, in two parts around the uid.
#[derive(Debug)]
pub(super) struct Review {
    before: String,
    after: String,
}

impl Review {
    /// Reads the review in `file`, JSON or YAML, or the built-in one.
    ///
    /// # Errors
    /// When the file cannot be read, or is not an AdmissionReview.
    pub(super) fn read(file: Option<&Path>) -> Result<Self, Fault> {
        let text = file.map_or_else(|| Ok(POD.to_owned()), load::text)?;
        let no_review = |reason: ReviewError| {
            let name = file.unwrap_or(Path::new("the built-in review"));
            Fault::usage(format!("`{}` is no AdmissionReview: {reason}", name.display()))
        };
        let mut review = single(&text).map_err(no_review)?;
        if review.get("kind").and_then(Value::as_str) != Some("AdmissionReview") {
            return Err(no_review(ReviewError::OtherKind));
        }
        let request = review.get_mut("request").and_then(Value::as_object_mut);
        let request = request.ok_or_else(|| no_review(ReviewError::MissingRequest))?;
        request.insert("uid".to_owned(), UID.into());
        let text = review.to_string();
        let (before, after) = text.split_once(UID).ok_or_else(|| no_review(ReviewError::MissingUid))?;
        Ok(Self { before: before.to_owned(), after: after.to_owned() })
    }

    /// Returns the uid of the request with this number.
    pub(super) fn uid(number: u64) -> String {
        let mut uid = UID.get(..NUMBER.start).unwrap_or_default().to_owned();
        // Writing to a string cannot fail. 48 bits are more than any run has requests.
        let _ = write!(uid, "{:012x}", number & 0xffff_ffff_ffff);
        uid
    }

    /// Returns the body of a request.
    pub(super) fn body(&self, uid: &str) -> Bytes {
        let mut text = String::with_capacity(self.before.len() + uid.len() + self.after.len());
        text.push_str(&self.before);
        text.push_str(uid);
        text.push_str(&self.after);
        Bytes::from(text)
    }
}

/// Parses `text` as one document, with the limits for untrusted input.
fn single(text: &str) -> Result<Value, ReviewError> {
    // JSON is valid YAML, but its own parser is far quicker.
    if let Ok(document) = json::parse(text.as_bytes()) {
        return Ok(document.value);
    }
    let trees = yaml::parse_values(text)?;
    let mut documents = trees.into_iter().map(|tree| tree.value).filter(|value| !value.is_null());
    match (documents.next(), documents.count()) {
        (Some(document), 0) => Ok(document),
        (None, _) => Err(ReviewError::Empty),
        (Some(_), more) => Err(ReviewError::TooMany(more + 1)),
    }
}

#[cfg(test)]
mod tests {
    use admit_policy::{Arena, Request};

    use super::*;

    #[test]
    fn the_built_in_review_is_one_that_we_read() {
        let review = Review::read(None).unwrap();
        let uid = Review::uid(0x1f);
        assert_eq!(uid, "bench000-0000-4000-8000-00000000001f");
        let (arena, body) = (Arena::default(), review.body(&uid));
        let request = Request::from_review(admit_policy::Review::read(&arena, &body).unwrap()).unwrap();
        assert_eq!((request.uid.as_str(), request.resource.resource.as_str()), (uid.as_str(), "pods"));
    }

    #[test]
    fn what_is_no_review_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("review.yaml");
        let refusal = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Review::read(Some(&path)).unwrap_err().to_string()
        };
        assert!(refusal("kind: Pod").ends_with("is no AdmissionReview: `kind` is another"));
        assert!(refusal("kind: AdmissionReview").ends_with("there is no `request`"));
        assert!(refusal("kind: A\n---\nkind: B").ends_with("it has 2 documents; one is expected"));
        let mut aliases = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..9 {
            let before = n - 1;
            let list = vec![format!("*a{before}"); 9].join(", ");
            let _ = writeln!(aliases, "a{n}: &a{n} [{list}]");
        }
        assert!(refusal(&aliases).contains("more values than a text of"), "{}", refusal(&aliases));
        std::fs::write(&path, "kind: AdmissionReview\nrequest: {operation: CREATE}").unwrap();
        assert!(Review::read(Some(&path)).is_ok());
    }
}
