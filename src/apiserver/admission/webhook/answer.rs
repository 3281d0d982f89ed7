//! Parses a webhook's AdmissionReview response, and accepts it only if it answers the request that was sent.

use std::fmt::Display;

use admit_apimachinery::go;
use admit_policy::json;
use serde_json::Value;

use super::CallError;

/// What a webhook said.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    pub(super) warnings: Vec<String>,
    /// `response.status`: the reason of a refusal, in the webhook's words.
    pub(super) status: Option<Value>,
    /// What it adds to the audit log, by its own names.
    pub(super) audit_annotations: Vec<(String, String)>,
    /// Of a mutating webhook: how the object is to be changed.
    pub(super) patch: Option<json_patch::Patch>,
}

/// Which answers a webhook may give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Validating,
    Mutating,
}

/// # Errors
/// Everything that makes the answer no answer to the question `uid`.
pub(super) fn verify(body: &[u8], uid: &str, role: Role) -> Result<Verdict, CallError> {
    let review = json::parse(body)
        .map_err(|error| {
            CallError(format!("failed to call webhook: couldn't get version/kind; json parse error: {error}"))
        })?
        .value;
    let uncalled = |why: String| CallError(format!("failed to call webhook: {why}"));
    let invalid = |why: String| CallError(format!("received invalid webhook response: {why}"));
    let text = |field: &str| review[field].as_str().unwrap_or_default();
    check_kind(text("apiVersion"), text("kind")).map_err(|why| uncalled(why.to_string()))?;
    let Value::Object(response) = &review["response"] else {
        return Err(invalid("webhook response was absent".to_owned()));
    };
    let allowed = match response.get("allowed") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(allowed)) => *allowed,
        Some(other) => return Err(uncalled(mistyped(other, "allowed", "bool"))),
    };
    let found = response.get("uid").and_then(Value::as_str).unwrap_or_default();
    if found != uid {
        return Err(invalid(format!("expected response.uid={}, got {}", go::quote(uid), go::quote(found))));
    }
    if (text("apiVersion"), text("kind")) != ("admission.k8s.io/v1", "AdmissionReview") {
        let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
        return Err(invalid(format!(
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={}",
            text("kind")
        )));
    }
    let given = |field: &str| response.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let (Role::Validating, Some(field)) =
        (role, ["patch", "patchType"].into_iter().find(|field| given(field).is_some()))
    {
        return Err(invalid(format!("validating webhook may not return response.{field}")));
    }
    let patch = match (given("patch"), given("patchType")) {
        (None, None) => None,
        (Some(_), None) => {
            return Err(invalid("webhook returned response.patch but not response.patchType".to_owned()));
        }
        (None, Some(_)) => {
            return Err(invalid("webhook returned response.patchType but not response.patch".to_owned()));
        }
        (Some(patch), Some("JSONPatch")) => Some(read_patch(patch)?),
        (Some(_), Some(other)) => {
            return Err(CallError(format!("unsupported patch type {}", go::quote(other))));
        }
    };
    let annotations = response.get("auditAnnotations").and_then(Value::as_object).into_iter().flatten();
    let annotations = annotations.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let warnings = response.get("warnings").and_then(Value::as_array);
    Ok(Verdict {
        allowed,
        warnings: warnings.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        audit_annotations: annotations.collect(),
        status: response.get("status").filter(|status| status.is_object()).cloned(),
        patch,
    })
}

/// Why an answer is not decoded, in the words of Kubernetes' scheme.
#[derive(Debug, thiserror::Error)]
enum KindError<'a> {
    #[error("converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion")]
    Unconvertible,
    #[error(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go::quote(.kind),
        go::quote(.version)
    )]
    Unregistered { kind: &'a str, version: &'a str },
}

/// Whether the answer is decoded at all: what says nothing of its type is taken for the type that is expected.
fn check_kind<'a>(api_version: &'a str, kind: &'a str) -> Result<(), KindError<'a>> {
    match (api_version, kind) {
        ("admission.k8s.io/v1beta1", "AdmissionReview" | "") => Err(KindError::Unconvertible),
        ("admission.k8s.io/v1" | "", "AdmissionReview" | "") => Ok(()),
        (version, kind) => {
            let or = |text, default| if str::is_empty(text) { default } else { text };
            Err(KindError::Unregistered {
                kind: or(kind, "AdmissionReview"),
                version: or(version, "admission.k8s.io/v1"),
            })
        }
    }
}

/// As Go's decoder of JSON says that a field is of another type.
fn mistyped(found: &Value, field: &str, expected: &str) -> String {
    let found = go::json::kind(found);
    format!(
        "json: cannot unmarshal {found} into Go struct field AdmissionResponse.response.{field} of type {expected}"
    )
}

fn read_patch(encoded: &str) -> Result<json_patch::Patch, CallError> {
    let unreadable =
        |why: &dyn Display| CallError(format!("failed to call webhook: the patch cannot be read: {why}"));
    let bytes = go::json::bytes(encoded).map_err(|error| unreadable(&error))?;
    serde_json::from_slice(&bytes).map_err(|error| unreadable(&error))
}
