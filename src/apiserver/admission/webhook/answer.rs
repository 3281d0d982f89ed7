//! Reads a webhook's answer, and believes it only when it is the answer to the question that was asked.

use admit_policy::json;
use serde_json::Value;

use super::CallFailed;

/// What a webhook said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    pub(super) warnings: Vec<String>,
    /// `response.status`: the reason of a refusal, in the webhook's words.
    pub(super) status: Option<Value>,
}

/// # Errors
/// Everything that makes the answer no answer to the question `uid`.
pub(super) fn verify(body: &[u8], uid: &str) -> Result<Verdict, CallFailed> {
    let review = json::parse(body)
        .map_err(|error| {
            CallFailed(format!(
                "failed to call webhook: couldn't get version/kind; json parse error: {error}"
            ))
        })?
        .value;
    let invalid = |why: String| CallFailed(format!("received invalid webhook response: {why}"));
    let text = |field: &str| review[field].as_str().unwrap_or_default();
    let Value::Object(response) = &review["response"] else {
        return Err(invalid("webhook response was absent".to_owned()));
    };
    let found = response.get("uid").and_then(Value::as_str).unwrap_or_default();
    if found != uid {
        return Err(invalid(format!("expected response.uid={uid:?}, got {found:?}")));
    }
    if (text("apiVersion"), text("kind")) != ("admission.k8s.io/v1", "AdmissionReview") {
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        return Err(invalid(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={}",
            text("kind")
        )));
    }
    for field in ["patch", "patchType"] {
        if response.get(field).is_some_and(|value| !value.is_null() && value.as_str() != Some("")) {
            return Err(invalid(format!("validating webhook may not return response.{field}")));
        }
    }
    let warnings = response.get("warnings").and_then(Value::as_array);
    Ok(Verdict {
        allowed: response.get("allowed") == Some(&Value::Bool(true)),
        warnings: warnings.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        status: response.get("status").filter(|status| status.is_object()).cloned(),
    })
}
