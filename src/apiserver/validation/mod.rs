//! What the contents of built-in kinds have to satisfy beyond their types: required fields, ranges, names, references.
//!
//! Input: a decoded object with its defaults. Output: what is wrong, in the order in which Kubernetes finds it. Metadata,
//! changes of immutable fields and the expressions of policies are checked elsewhere.

mod config;
mod event;
mod pod;
mod workload;

use serde_json::Value;

use crate::resources::ResourceInfo;
use crate::status::Cause;

/// What is wrong with the content of `object`.
#[must_use]
pub(crate) fn content(info: &ResourceInfo, object: &Value) -> Vec<Cause> {
    if !info.builtin {
        return Vec::new();
    }
    match (info.group.as_str(), info.kind.as_str()) {
        ("", "ConfigMap") => config::config_map(object),
        ("", "Secret") => config::secret(object),
        ("", "Pod") => pod::spec(object.get("spec").unwrap_or(&Value::Null), "spec"),
        ("" | "events.k8s.io", "Event") => event::event(info, object),
        ("batch", "Job") => workload::job(object),
        ("coordination.k8s.io", "Lease") => workload::lease(object),
        _ => Vec::new(),
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn items<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A number that is given has to be at least 0.
fn not_negative(object: &Value, path: &str, name: &str) -> Option<Cause> {
    let value = object.get(name)?;
    (value.as_i64()? < 0)
        .then(|| Cause::invalid(format!("{path}.{name}"), value, "must be greater than or equal to 0"))
}

/// A value out of a closed set. An empty one counts as missing.
fn one_of(object: &Value, path: &str, name: &str, allowed: &[&str]) -> Option<Cause> {
    match text(object, name) {
        "" => None,
        value if allowed.contains(&value) => None,
        value => Some(Cause::unsupported(format!("{path}.{name}"), &value.into(), allowed)),
    }
}
