//! The AdmissionReview codec: what comes back for a request, a decision or a failure, exact to what an API server
//! verifies (`apiVersion`, `kind`, the same `uid`).

use admit_policy::decision::{Decision, Status};
use admit_policy::error::StatusCause;
use admit_policy::request::ReviewError;
use http::StatusCode;
use serde_json::{Map, Value, json};

/// What is sent back: an HTTP status and a JSON body.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub code: StatusCode,
    pub body: Value,
}

impl Answer {
    /// The answer to a request that was decided.
    #[must_use]
    pub fn decided(uid: &str, decision: &Decision) -> Self {
        let mut response = Map::new();
        response.insert("uid".to_owned(), uid.into());
        response.insert("allowed".to_owned(), decision.denial.is_none().into());
        if let Some(denial) = &decision.denial {
            response.insert("status".to_owned(), status(&denial.status, &denial.message));
        }
        if !decision.warnings.is_empty() {
            response.insert("warnings".to_owned(), decision.warnings.clone().into());
        }
        if !decision.audit_annotations.is_empty() {
            let annotations: Map<_, _> =
                decision.audit_annotations.iter().map(|(k, v)| (k.clone(), v.clone().into())).collect();
            response.insert("auditAnnotations".to_owned(), annotations.into());
        }
        Self::review(response.into())
    }

    /// The answer to a review that cannot be decided on: a denial where the uid is known, so that the caller's failure
    /// policy is not asked; else a plain 400.
    #[must_use]
    pub fn malformed(error: &ReviewError) -> Self {
        let message = format!("the AdmissionReview is malformed: {error}");
        match &error.uid {
            Some(uid) => Self::failed(uid, StatusCode::BAD_REQUEST, "BadRequest", &message),
            None => Self::plain(StatusCode::BAD_REQUEST, "BadRequest", &message),
        }
    }

    /// A denial for a reason that lies with us: the request with this uid could not be decided.
    #[must_use]
    pub fn failed(uid: &str, code: StatusCode, reason: &str, message: &str) -> Self {
        let status =
            json!({"status": "Failure", "message": message, "reason": reason, "code": code.as_u16()});
        Self::review(json!({"uid": uid, "allowed": false, "status": status}))
    }

    /// A Kubernetes `Status` outside of any review.
    #[must_use]
    pub fn plain(code: StatusCode, reason: &str, message: &str) -> Self {
        let body = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code.as_u16(),
        });
        Self { code, body }
    }

    fn review(response: Value) -> Self {
        let mut body = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
        body["response"] = response;
        Self { code: StatusCode::OK, body }
    }
}

/// `message` in place of the status' own: the API server puts the object's name in front by itself.
fn status(status: &Status, message: &str) -> Value {
    let Status { code, reason, message: _, details } = status;
    let causes: Vec<Value> = details.causes.iter().map(cause).collect();
    json!({
        "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code,
        "details": {"name": details.name, "group": details.group, "kind": details.kind, "causes": causes},
    })
}

fn cause(cause: &StatusCause) -> Value {
    let StatusCause { reason, message, field } = cause;
    let mut map = Map::new();
    for (key, text) in [("reason", *reason), ("message", message.as_str()), ("field", field.as_str())] {
        if !text.is_empty() {
            map.insert(key.to_owned(), text.into());
        }
    }
    map.into()
}
