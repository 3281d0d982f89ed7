//! Writes the response to a request so that an API server accepts it: the same `apiVersion`, `kind` and `uid`, a patch with its
//! type or neither, a status code of an error, annotation keys that it can qualify.

use admit_apimachinery::go;
use admit_apimachinery::status::Status;
use admit_policy::Decision;
use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use serde_json::{Map, Value};

use super::annotations;
use super::id::{ReviewId, ReviewVersion};

/// The most bytes of warnings. API servers limit the warnings of all webhooks together to 4,096 characters per client.
const MAX_WARNINGS: usize = 16 * 1024;

/// An HTTP response: a status code and a JSON body.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub code: StatusCode,
    pub body: Bytes,
}

/// A response with its metrics label.
pub(in crate::admission) struct Decided {
    pub(in crate::admission) answer: Answer,
    /// The outcome in metrics labels.
    pub(in crate::admission) label: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Map::is_empty")]
    audit_annotations: Map<String, Value>,
    /// The JSON patch in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
}

impl Answer {
    /// Creates the response to a request that was decided.
    #[must_use]
    pub(in crate::admission) fn decided(id: &ReviewId, decision: &Decision) -> Self {
        review(
            id.version,
            Response {
                uid: &id.uid,
                allowed: decision.denial.is_none(),
                status: decision.denial.as_ref().map(|denial| denial.status.fields()),
                warnings: told(&decision.warnings),
                audit_annotations: annotations::for_webhook(&decision.audit_annotations),
                patch: None,
                patch_type: None,
            },
        )
    }

    /// Creates the response that admits an object, with a patch if there is one.
    #[must_use]
    pub(in crate::admission) fn patched(id: &ReviewId, patch: Option<&Value>, decision: &Decision) -> Self {
        review(
            id.version,
            Response {
                uid: &id.uid,
                allowed: true,
                status: None,
                warnings: told(&decision.warnings),
                audit_annotations: annotations::for_webhook(&decision.audit_annotations),
                patch: patch.map(|patch| go::base64::encode(json(patch))),
                patch_type: patch.map(|_| "JSONPatch"),
            },
        )
    }

    /// Creates the response that admits a request that was not decided, with the reason as a warning.
    #[must_use]
    pub(in crate::admission) fn let_through(id: &ReviewId, warning: &str) -> Self {
        let warnings = [warning.to_owned()];
        review(
            id.version,
            Response {
                uid: &id.uid,
                allowed: true,
                status: None,
                warnings: told(&warnings),
                audit_annotations: Map::new(),
                patch: None,
                patch_type: None,
            },
        )
    }

    /// Creates a response with a Kubernetes `Status` outside of any review.
    #[must_use]
    pub fn plain(status: &Status) -> Self {
        let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Self { code, body: json(&status.to_value()) }
    }

    /// Creates the response that denies a request that was not decided, so that the caller's failure policy does not apply.
    #[must_use]
    pub(in crate::admission) fn denied(id: &ReviewId, status: &Status) -> Self {
        let status = Some(status.fields());
        review(
            id.version,
            Response {
                uid: &id.uid,
                allowed: false,
                status,
                warnings: &[],
                audit_annotations: Map::new(),
                patch: None,
                patch_type: None,
            },
        )
    }
}

fn review(version: ReviewVersion, response: Response<'_>) -> Answer {
    let review = Review { api_version: version.api_version(), kind: "AdmissionReview", response };
    Answer { code: StatusCode::OK, body: json(&review) }
}

fn json(value: &impl Serialize) -> Bytes {
    // The value has only strings, numbers and maps with string keys, so serialization cannot fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}

/// Returns the first warnings that fit the limit.
fn told(warnings: &[String]) -> &[String] {
    let mut bytes = 0_usize;
    let fits = warnings.iter().take_while(|warning| {
        bytes = bytes.saturating_add(warning.len());
        bytes <= MAX_WARNINGS
    });
    let count = fits.count();
    warnings.get(..count).unwrap_or_default()
}
