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

/// The version of a review, which its answer has to have, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    /// Of webhooks that were written before Kubernetes 1.16; less is asked of their answers.
    V1beta1,
}

impl ReviewVersion {
    pub(super) const fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "admission.k8s.io/v1",
            Self::V1beta1 => "admission.k8s.io/v1beta1",
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::V1 => Self::V1beta1,
            Self::V1beta1 => Self::V1,
        }
    }

    fn name(self) -> &'static str {
        let api_version = self.api_version();
        api_version.rsplit('/').next().unwrap_or(api_version)
    }
}

/// # Errors
/// Everything that makes the answer no answer to the question `uid`, which was asked in `version`.
pub(super) fn verify(
    body: &[u8],
    version: ReviewVersion,
    uid: &str,
    role: Role,
) -> Result<Verdict, CallError> {
    let review = json::parse(body)
        .map_err(|error| {
            CallError(format!("failed to call webhook: couldn't get version/kind; json parse error: {error}"))
        })?
        .value;
    let uncalled = |why: String| CallError(format!("failed to call webhook: {why}"));
    let invalid = |why: String| CallError(format!("received invalid webhook response: {why}"));
    let text = |field: &str| review[field].as_str().unwrap_or_default();
    check_kind(version, text("apiVersion"), text("kind")).map_err(|why| uncalled(why.to_string()))?;
    let Value::Object(response) = &review["response"] else {
        return Err(invalid("webhook response was absent".to_owned()));
    };
    let allowed = match response.get("allowed") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(allowed)) => *allowed,
        Some(other) => return Err(uncalled(mistyped(other, "allowed", "bool"))),
    };
    let given = |field: &str| response.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let patch = match (version, role) {
        (ReviewVersion::V1, _) => {
            let found = given("uid").unwrap_or_default();
            if found != uid {
                let (expected, found) = (go::quote(uid), go::quote(found));
                return Err(invalid(format!("expected response.uid={expected}, got {found}")));
            }
            check_named(text("apiVersion"), text("kind")).map_err(invalid)?;
            patch_of(given("patch"), given("patchType"), role)?
        }
        (ReviewVersion::V1beta1, Role::Mutating) => given("patch").map(read_patch).transpose()?,
        (ReviewVersion::V1beta1, Role::Validating) => None,
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

/// Whether the answer says what it is.
fn check_named(api_version: &str, kind: &str) -> Result<(), String> {
    if (api_version, kind) == (ReviewVersion::V1.api_version(), "AdmissionReview") {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Err(format!(
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
    ))
}

/// The patch of an answer in v1, which names its type.
fn patch_of(
    patch: Option<&str>,
    patch_type: Option<&str>,
    role: Role,
) -> Result<Option<json_patch::Patch>, CallError> {
    let invalid = |why: &str| Err(CallError(format!("received invalid webhook response: {why}")));
    match (role, patch, patch_type) {
        (_, None, None) => Ok(None),
        (Role::Validating, Some(_), _) => invalid("validating webhook may not return response.patch"),
        (Role::Validating, None, Some(_)) => invalid("validating webhook may not return response.patchType"),
        (_, Some(_), None) => invalid("webhook returned response.patch but not response.patchType"),
        (_, None, Some(_)) => invalid("webhook returned response.patchType but not response.patch"),
        (_, Some(patch), Some("JSONPatch")) => read_patch(patch).map(Some),
        (_, Some(_), Some(other)) => Err(CallError(format!("unsupported patch type {}", go::quote(other)))),
    }
}

/// Why an answer is not decoded, in the words of Kubernetes' scheme.
#[derive(Debug, thiserror::Error)]
enum KindError<'a> {
    #[error("converting ({}.AdmissionReview) to ({}.AdmissionReview): unknown conversion", .0.other().name(), .0.name())]
    Unconvertible(ReviewVersion),
    #[error(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go::quote(.kind),
        go::quote(.version)
    )]
    Unregistered { kind: &'a str, version: &'a str },
}

/// Whether the answer is decoded at all: what says nothing of its type is taken for the type that is expected.
fn check_kind<'a>(expected: ReviewVersion, api_version: &'a str, kind: &'a str) -> Result<(), KindError<'a>> {
    let or = |text, default| if str::is_empty(text) { default } else { text };
    let (version, kind) = (or(api_version, expected.api_version()), or(kind, "AdmissionReview"));
    match kind {
        "AdmissionReview" if version == expected.api_version() => Ok(()),
        "AdmissionReview" if version == expected.other().api_version() => {
            Err(KindError::Unconvertible(expected))
        }
        kind => Err(KindError::Unregistered { kind, version }),
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
