//! Converts built-in kinds that are served under several groups or versions.
//!
//! In 1.36, with what is served by default, those are HorizontalPodAutoscaler and Event.

use serde_json::Value;

use super::{autoscaler, event};
use crate::request::{GroupVersionKind, GroupVersionResource};

/// Group, version, kind and resource of everything that is one thing with another. Rows of one resource are equivalent.
const SERVED: [(&str, &str, &str, &str); 4] = [
    ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
    ("", "v1", "Event", "events"),
    ("events.k8s.io", "v1", "Event", "events"),
];

/// The groups and versions under which a built-in resource is served, with the kinds served there; empty for one that
/// is served once.
///
/// ```
/// use admit_policy::GroupVersionResource;
/// use admit_policy::matching::builtin::equivalents;
///
/// let event = GroupVersionResource::new("", "v1", "events");
/// let others = equivalents(&event, "");
/// assert!(others.iter().any(|(resource, _)| resource.group == "events.k8s.io"));
/// ```
#[must_use]
pub fn equivalents(
    resource: &GroupVersionResource,
    subresource: &str,
) -> Vec<(GroupVersionResource, GroupVersionKind)> {
    let is_known = SERVED.iter().any(|(group, _, _, plural)| {
        *plural == resource.resource && *group == resource.group && has(plural, subresource)
    });
    let same = SERVED.iter().filter(|(_, _, _, plural)| is_known && *plural == resource.resource);
    same.map(|(group, version, kind, plural)| {
        (GroupVersionResource::new(*group, *version, *plural), GroupVersionKind::new(*group, *version, *kind))
    })
    .collect()
}

fn has(resource: &str, subresource: &str) -> bool {
    subresource.is_empty() || (subresource == "status" && resource == "horizontalpodautoscalers")
}

/// `object` in the version of `kind`; `None` when that is no built-in kind that is served more than once.
///
/// ```
/// use admit_policy::GroupVersionKind;
/// use admit_policy::matching::builtin::convert;
/// use serde_json::json;
///
/// let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a"}, "message": "started"});
/// let kind = GroupVersionKind::new("events.k8s.io", "v1", "Event");
/// assert_eq!(convert(&event, &kind).unwrap()["note"], "started");
/// assert_eq!(convert(&json!({"apiVersion": "v1", "kind": "Pod"}), &GroupVersionKind::new("", "v1", "Pod")), None);
/// ```
#[must_use]
pub fn convert(object: &Value, kind: &GroupVersionKind) -> Option<Value> {
    match (kind.group.as_str(), kind.version.as_str(), kind.kind.as_str()) {
        ("autoscaling", "v1", "HorizontalPodAutoscaler") => Some(autoscaler::to_v1(object)),
        ("autoscaling", "v2", "HorizontalPodAutoscaler") => Some(autoscaler::to_v2(object)),
        ("", "v1", "Event") => Some(event::to_core(object)),
        ("events.k8s.io", "v1", "Event") => Some(event::to_events(object)),
        _ => None,
    }
}
