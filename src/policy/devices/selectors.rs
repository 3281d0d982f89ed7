//! Finds the device selectors in a document.

use admit_apimachinery::field_error::FieldError;
use admit_cel::Env;
use serde_json::Value;

use super::features::DeviceFeatures;
use super::language::{self, Selector, SelectorProblem};

/// Bytes that one expression may have.
const MOST_BYTES: usize = 10 << 10;
/// The group of the kinds that have such expressions.
const GROUP: &str = "resource.k8s.io";

/// What the expression of a selector of devices may name.
///
/// ```
/// assert!(admit_policy::selector_env().variables().eq(["device"]));
/// ```
#[must_use]
pub fn selector_env() -> Env {
    language::env(DeviceFeatures::default()).clone()
}

/// Returns the estimated maximum cost of an expression, limited by [`SELECTOR_LIMIT`](super::SELECTOR_LIMIT); None if it is invalid.
///
/// ```
/// use admit_policy::{SELECTOR_LIMIT, selector_cost};
///
/// assert!(selector_cost("device.driver == 'a'").is_some_and(|cost| cost < SELECTOR_LIMIT));
/// assert_eq!(selector_cost("device."), None);
/// ```
#[must_use]
pub fn selector_cost(text: &str) -> Option<u64> {
    Selector::compile(text, DeviceFeatures::default()).ok().map(|selector| selector.max_cost())
}

/// The expressions of the selectors of a DeviceClass, a ResourceClaim or its template, each with its field; nothing of other
/// documents.
///
/// ```
/// use serde_json::json;
///
/// let class = json!({
///     "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": "a"},
///     "spec": {"selectors": [{"cel": {"expression": "device.driver == 'a'"}}]},
/// });
/// let found = admit_policy::device_selectors(&class);
/// assert_eq!(found, [("spec.selectors[0].cel.expression".to_owned(), "device.driver == 'a'")]);
/// ```
#[must_use]
pub fn device_selectors(document: &Value) -> Vec<(String, &str)> {
    let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").split_once('/').map(|(group, _)| group);
    let mut found = Vec::new();
    if group != Some(GROUP) {
        return found;
    }
    let spec = |pointer: &str| document.pointer(pointer).unwrap_or(&Value::Null);
    match text("kind") {
        "DeviceClass" => selectors(spec("/spec"), "spec", &mut found),
        "ResourceClaim" => requests(spec("/spec"), "spec", &mut found),
        "ResourceClaimTemplate" => requests(spec("/spec/spec"), "spec.spec", &mut found),
        _ => {}
    }
    found
}

fn requests<'d>(spec: &'d Value, at: &str, found: &mut Vec<(String, &'d str)>) {
    for (index, request) in list(spec.pointer("/devices/requests")) {
        let at = format!("{at}.devices.requests[{index}]");
        // Also in the form of API versions before there were alternatives.
        selectors(request, &at, found);
        selectors(request.get("exactly").unwrap_or(&Value::Null), &format!("{at}.exactly"), found);
        for (index, alternative) in list(request.get("firstAvailable")) {
            selectors(alternative, &format!("{at}.firstAvailable[{index}]"), found);
        }
    }
}

fn selectors<'d>(holder: &'d Value, at: &str, found: &mut Vec<(String, &'d str)>) {
    for (index, selector) in list(holder.get("selectors")) {
        let text = selector.pointer("/cel/expression").and_then(Value::as_str);
        found.extend(text.map(|text| (format!("{at}.selectors[{index}].cel.expression"), text)));
    }
}

fn list(value: Option<&Value>) -> impl Iterator<Item = (usize, &Value)> {
    value.and_then(Value::as_array).into_iter().flatten().enumerate()
}

/// Returns the errors that a server would report for the selectors of a document.
pub(crate) fn selector_errors(document: &Value) -> Vec<FieldError> {
    let error = |(at, text): (String, &str)| {
        if text.len() > MOST_BYTES {
            return Some(FieldError::too_long(at, 10 << 10));
        }
        Some(match language::selector_problem(text)? {
            SelectorProblem::Invalid(why) => FieldError::invalid(at, text, why.to_string()),
            SelectorProblem::TooComplex => FieldError::forbidden(at, "too complex, exceeds cost limit"),
        })
    };
    device_selectors(document).into_iter().filter_map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_found_wherever_requests_have_them() {
        let selectors = |text: &str| serde_json::json!([{"cel": {"expression": text}}]);
        let spec = serde_json::json!({"devices": {"requests": [
            {"name": "a", "selectors": selectors("device.drivr == 'a'")},
            {"name": "b", "exactly": {"selectors": selectors("true")}},
            {"name": "c", "firstAvailable": [{"name": "d", "selectors": selectors(&"x".repeat(MOST_BYTES + 1))}]},
        ]}});
        let api_version = "resource.k8s.io/v1";
        let claim = serde_json::json!({"apiVersion": api_version, "kind": "ResourceClaim", "spec": spec});
        let template = serde_json::json!({
            "apiVersion": api_version, "kind": "ResourceClaimTemplate", "spec": {"spec": spec},
        });
        for (document, at) in [(&claim, "spec"), (&template, "spec.spec")] {
            let places: Vec<String> =
                device_selectors(document).into_iter().map(|(place, _)| place).collect();
            let expected = ["[0]", "[1].exactly", "[2].firstAvailable[0]"]
                .map(|request| format!("{at}.devices.requests{request}.selectors[0].cel.expression"));
            assert_eq!(places, expected);
            let errors: Vec<String> =
                selector_errors(document).into_iter().map(|error| error.to_string()).collect();
            assert!(errors[0].contains("undefined field 'drivr'"), "{errors:?}");
            assert!(errors[1].ends_with("Too long: may not be more than 10240 bytes"), "{errors:?}");
            assert_eq!(errors.len(), 2);
        }
        let other =
            serde_json::json!({"apiVersion": "example.com/v1", "kind": "ResourceClaim", "spec": spec});
        assert!(device_selectors(&other).is_empty());
    }
}
