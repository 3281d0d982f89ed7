//! Reads values at JSON pointers (RFC 6901) in objects that may be malformed: missing values and wrong types are empty.

use serde_json::Value;

/// Returns the string at `pointer`; empty if there is none.
///
/// ```
/// use admit_apimachinery::pointer;
/// use serde_json::json;
///
/// let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{}]}});
/// assert_eq!(pointer::text(&pod, "/metadata/name"), "a");
/// assert_eq!(pointer::text(&pod, "/metadata/namespace"), "");
/// assert_eq!(pointer::items(&pod, "/spec/containers").len(), 1);
/// assert!(pointer::items(&pod, "/spec/volumes").is_empty());
/// ```
#[must_use]
pub fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the items of the list at `pointer`; empty if there is none.
#[must_use]
pub fn items<'v>(value: &'v Value, pointer: &str) -> &'v [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
