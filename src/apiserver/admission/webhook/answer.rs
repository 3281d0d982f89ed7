//! Parses a webhook's AdmissionReview response, and accepts it only if it answers the request that was sent.

use admit_apimachinery::{go, yaml};
use admit_policy::json;
use serde_json::Value;

use super::error::{CallError, InvalidAnswer, NoPatch, Unread};

/// The decision in a webhook's response.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) allowed: bool,
    pub(super) warnings: Vec<String>,
    /// `response.status`: the reason of a refusal.
    pub(super) status: Option<Value>,
    /// Annotations for the audit log, under the webhook's own keys.
    pub(super) audit_annotations: Vec<(String, String)>,
    /// The patch of a mutating webhook.
    pub(super) patch: Option<Change>,
}

/// A patch as received.
#[derive(Clone, Debug)]
pub(super) struct Change {
    text: Vec<u8>,
    patch_type: String,
}

impl Change {
    /// Returns its operations, each a JSON value.
    ///
    /// # Errors
    /// If it is not a list of objects.
    pub(super) fn operations(&self) -> Result<Vec<Value>, NoPatch> {
        match json::parse(&self.text).map_err(NoPatch::Json)?.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(operations) => {
                let stray =
                    operations.iter().find(|operation| !operation.is_object() && !operation.is_null());
                match stray {
                    Some(stray) => Err(NoPatch::Operation(go::json::kind(stray))),
                    None => Ok(operations),
                }
            }
            other => Err(NoPatch::List(go::json::kind(&other))),
        }
    }

    /// # Errors
    /// If the server does not support the patch type.
    pub(super) fn check_type(&self) -> Result<(), CallError> {
        match self.patch_type.as_str() {
            JSON_PATCH => Ok(()),
            other => Err(CallError::PatchType(other.to_owned())),
        }
    }
}

const JSON_PATCH: &str = "JSONPatch";

/// The kind of webhook, which decides whether its response may hold a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Validating,
    Mutating,
}

/// The version of an AdmissionReview, which is also that of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReviewVersion {
    V1,
    /// For webhooks written before Kubernetes 1.16; their responses are checked less strictly.
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
/// If the body is no valid response to the request `uid`, which was sent in `version`.
pub(super) fn verify(
    body: &[u8],
    version: ReviewVersion,
    uid: &str,
    role: Role,
) -> Result<Verdict, CallError> {
    let review = read(body)?;
    let text = |field: &str| review[field].as_str().unwrap_or_default();
    check_kind(version, text("apiVersion"), text("kind"))?;
    let Value::Object(response) = &review["response"] else {
        return Err(InvalidAnswer::NoResponse.into());
    };
    let allowed = match response.get("allowed") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(allowed)) => *allowed,
        Some(other) => return Err(Unread::Allowed(go::json::kind(other)).into()),
    };
    let given = |field: &str| response.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let patch = match (version, role) {
        (ReviewVersion::V1, _) => {
            let found = given("uid").unwrap_or_default();
            if found != uid {
                let (expected, found) = (uid.to_owned(), found.to_owned());
                return Err(InvalidAnswer::Uid { expected, found }.into());
            }
            check_named(text("apiVersion"), text("kind"))?;
            patch_of(given("patch"), given("patchType"), role)?
        }
        (ReviewVersion::V1beta1, Role::Mutating) => {
            given("patch").map(|patch| read_patch(patch, JSON_PATCH)).transpose()?
        }
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

/// Checks that a v1 response names its kind and version.
fn check_named(api_version: &str, kind: &str) -> Result<(), InvalidAnswer> {
    if (api_version, kind) == (ReviewVersion::V1.api_version(), "AdmissionReview") {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let [group, version, kind] = [group, version, kind].map(ToOwned::to_owned);
    Err(InvalidAnswer::Kind { group, version, kind })
}

/// Returns the patch of a v1 response, which must name its type.
fn patch_of(patch: Option<&str>, patch_type: Option<&str>, role: Role) -> Result<Option<Change>, CallError> {
    let half = |given, missing| Err(InvalidAnswer::Half { given, missing }.into());
    match (role, patch, patch_type) {
        (_, None, None) => Ok(None),
        (Role::Validating, Some(_), _) => Err(InvalidAnswer::Validating("patch").into()),
        (Role::Validating, None, Some(_)) => Err(InvalidAnswer::Validating("patchType").into()),
        (_, Some(_), None) => half("patch", "patchType"),
        (_, None, Some(_)) => half("patchType", "patch"),
        (_, Some(patch), Some(patch_type)) => read_patch(patch, patch_type).map(Some),
    }
}

/// Checks the response's kind and version; missing ones are taken as expected.
fn check_kind(expected: ReviewVersion, api_version: &str, kind: &str) -> Result<(), Unread> {
    let or = |text, default| if str::is_empty(text) { default } else { text };
    let (version, kind) = (or(api_version, expected.api_version()), or(kind, "AdmissionReview"));
    match kind {
        "AdmissionReview" if version == expected.api_version() => Ok(()),
        "AdmissionReview" if version == expected.other().api_version() => {
            Err(Unread::Unconvertible { other: expected.other().name(), expected: expected.name() })
        }
        kind => Err(Unread::Unregistered { kind: kind.to_owned(), version: version.to_owned() }),
    }
}

fn read_patch(encoded: &str, patch_type: &str) -> Result<Change, CallError> {
    let text = go::json::bytes(encoded).map_err(Unread::EncodedPatch)?;
    Ok(Change { text, patch_type: patch_type.to_owned() })
}

/// Parses the body. What does not begin as a JSON object is read as YAML, whatever its content type.
fn read(body: &[u8]) -> Result<Value, Unread> {
    if body.trim_ascii_start().starts_with(b"{") {
        return Ok(json::parse(body).map_err(Unread::Json)?.value);
    }
    let text = String::from_utf8_lossy(body);
    let read = yaml::parse_first(&text)
        .map_err(|error| Unread::Yaml(format!("yaml: {}", error.message.trim_start_matches("not YAML: "))))?;
    match read.map(|tree| tree.value).unwrap_or_default() {
        value @ (Value::Object(_) | Value::Null) => Ok(value),
        other => Err(Unread::NoObject(go::json::without_kind(&other))),
    }
}
