//! Kinds of Kubernetes itself that are served in several versions, and their conversion.
//!
//! In 1.36 that is HorizontalPodAutoscaler. What v1 cannot express lies in its annotations, which is not done here:
//! such an object is refused with a reason.

use serde_json::{Map, Value, json};

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
/// When that is no built-in kind of several versions, or the object says what the other version cannot.
pub fn convert(object: &Value, kind: &GroupVersionKind) -> Result<Value, HostError> {
    let version = (kind.group.as_str(), kind.kind.as_str(), kind.version.as_str());
    let mut converted = object.clone();
    let Value::Object(fields) = &mut converted else {
        return Err(unsupported("a document that is no object"));
    };
    match version {
        ("autoscaling", "HorizontalPodAutoscaler", "v1") => {
            part(fields, "spec", &["behavior"], metrics_to_target)?;
            part(fields, "status", &["conditions", "currentMetrics"], |_| Ok(()))?;
        }
        ("autoscaling", "HorizontalPodAutoscaler", "v2") => {
            part(fields, "spec", &[], target_to_metrics)?;
            part(fields, "status", &["currentCPUUtilizationPercentage"], |_| Ok(()))?;
        }
        _ => {
            return Err(unsupported(&format!("{}, Kind={}", kind.api_version(), kind.kind)));
        }
    }
    fields.insert("apiVersion".to_owned(), json!(kind.api_version()));
    Ok(converted)
}

/// Converts the map at `key`, in which `without` must say nothing.
fn part(
    fields: &mut Map<String, Value>,
    key: &str,
    without: &[&str],
    convert: impl Fn(&mut Map<String, Value>) -> Result<(), HostError>,
) -> Result<(), HostError> {
    let Some(Value::Object(part)) = fields.get_mut(key) else { return Ok(()) };
    for field in without {
        let says_something = |value: Value| !matches!(value, Value::Null) && value != json!([]);
        if part.remove(*field).is_some_and(says_something) {
            return Err(unsupported(&format!("{key}.{field}")));
        }
    }
    convert(part)
}

/// The one metric that v1 has a field for.
fn metrics_to_target(spec: &mut Map<String, Value>) -> Result<(), HostError> {
    let metrics = match spec.remove("metrics") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Array(metrics)) => metrics,
        Some(_) => return Err(unsupported("spec.metrics")),
    };
    for metric in metrics {
        let target = metric.pointer("/resource/target/averageUtilization").filter(|_| {
            metric.get("type").is_some_and(|kind| kind == "Resource")
                && metric.pointer("/resource/name").is_some_and(|name| name == "cpu")
        });
        match target {
            Some(target) if !spec.contains_key("targetCPUUtilizationPercentage") => {
                spec.insert("targetCPUUtilizationPercentage".to_owned(), target.clone());
            }
            _ => return Err(unsupported("spec.metrics beside the utilization of cpu")),
        }
    }
    Ok(())
}

fn target_to_metrics(spec: &mut Map<String, Value>) -> Result<(), HostError> {
    if let Some(target) = spec.remove("targetCPUUtilizationPercentage").filter(|target| !target.is_null()) {
        let target = json!({"type": "Utilization", "averageUtilization": target});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        spec.insert("metrics".to_owned(), json!([metric]));
    }
    Ok(())
}

fn unsupported(what: &str) -> HostError {
    HostError(format!("conversion of {what} is not supported"))
}
