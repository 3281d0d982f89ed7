//! Kinds of Kubernetes itself that are served in several versions, and their conversion.
//!
//! In 1.36 that is HorizontalPodAutoscaler.

use serde_json::Value;

use super::autoscaler;
use crate::host::HostError;
use crate::request::{GroupVersionKind, GroupVersionResource};

/// The versions of a built-in resource with the kinds served at them; empty for one that has a single version.
#[must_use]
pub fn equivalents(
    resource: &GroupVersionResource,
    subresource: &str,
) -> Vec<(GroupVersionResource, GroupVersionKind)> {
    let is_autoscaler = resource.group == "autoscaling" && resource.resource == "horizontalpodautoscalers";
    if !is_autoscaler || !matches!(subresource, "" | "status") {
        return Vec::new();
    }
    let served = |version: &str| {
        let kind = GroupVersionKind::new("autoscaling", version, "HorizontalPodAutoscaler");
        (GroupVersionResource::new("autoscaling", version, resource.resource.as_str()), kind)
    };
    vec![served("v1"), served("v2")]
}

/// `object` in the version of `kind`.
///
/// # Errors
/// When that is no built-in kind of several versions.
pub fn convert(object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
    match (kind.group.as_str(), kind.kind.as_str(), kind.version.as_str()) {
        ("autoscaling", "HorizontalPodAutoscaler", "v1") => Ok(autoscaler::to_v1(object)),
        ("autoscaling", "HorizontalPodAutoscaler", "v2") => Ok(autoscaler::to_v2(object)),
        _ => {
            let what = format!("{}, Kind={}", kind.api_version(), kind.kind);
            Err(HostError(format!("conversion to {what} is not supported")))
        }
    }
}
