//! Defines the errors of webhook calls, with the messages of kube-apiserver.

use admit_apimachinery::go;
use admit_apimachinery::go::json::CorruptInput;
use admit_policy::json::JsonError;
use thiserror::Error;

use crate::callout::CalloutError;

/// Says why a webhook gave no valid response; the failure policy decides what follows.
#[derive(Debug, Error)]
pub(super) enum CallError {
    #[error(
        "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    )]
    NoVersion,
    #[error("failed to call webhook: {0}")]
    Callout(#[from] CalloutError),
    /// The body is not an AdmissionReview.
    #[error("failed to call webhook: {0}")]
    Unread(#[from] Unread),
    /// The response does not match the request.
    #[error("received invalid webhook response: {0}")]
    Invalid(#[from] InvalidAnswer),
    #[error("unsupported patch type {}", go::quote(.0))]
    PatchType(String),
    /// The response is valid, but its patch is not.
    #[error("received undecodable patch in webhook response: {0}")]
    Patch(#[from] NoPatch),
}

impl CallError {
    /// Returns the status code under which kube-apiserver counts the failure; clients do not get it.
    pub(super) fn code(&self) -> u16 {
        match self {
            Self::NoVersion | Self::PatchType(_) => 400,
            Self::Callout(CalloutError::Unsuccessful { status, .. }) => *status,
            Self::Callout(_) | Self::Unread(_) | Self::Invalid(_) | Self::Patch(_) => 503,
        }
    }
}

/// Says why a patch is invalid.
#[derive(Debug, Error)]
pub(super) enum NoPatch {
    #[error("{0}")]
    Json(JsonError),
    #[error("json: cannot unmarshal {0} into Go value of type jsonpatch.Patch")]
    List(&'static str),
    #[error("json: cannot unmarshal {0} into Go value of type jsonpatch.Operation")]
    Operation(&'static str),
}

/// Says why a response cannot be decoded.
#[derive(Debug, Error)]
pub(super) enum Unread {
    #[error("couldn't get version/kind; json parse error: {0}")]
    Json(JsonError),
    #[error("{0}")]
    Yaml(String),
    /// The value has another type.
    #[error("{0}")]
    NoObject(String),
    #[error("converting ({other}.AdmissionReview) to ({expected}.AdmissionReview): unknown conversion")]
    Unconvertible { other: &'static str, expected: &'static str },
    #[error(
        "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:111\"",
        go::quote(.kind),
        go::quote(.version)
    )]
    Unregistered { kind: String, version: String },
    #[error(
        "json: cannot unmarshal {0} into Go struct field AdmissionResponse.response.allowed of type bool"
    )]
    Allowed(&'static str),
    #[error("{0}")]
    EncodedPatch(CorruptInput),
}

/// Says why a decoded response is invalid.
#[derive(Debug, Error)]
pub(super) enum InvalidAnswer {
    #[error("webhook response was absent")]
    NoResponse,
    #[error("expected response.uid={}, got {}", go::quote(.expected), go::quote(.found))]
    Uid { expected: String, found: String },
    #[error(
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={kind}"
    )]
    Kind { group: String, version: String, kind: String },
    #[error("validating webhook may not return response.{0}")]
    Validating(&'static str),
    #[error("webhook returned response.{given} but not response.{missing}")]
    Half { given: &'static str, missing: &'static str },
}
