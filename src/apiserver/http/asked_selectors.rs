//! Validates the selectors of an access review.

use admit_apimachinery::labels;
use serde_json::Value;

use crate::status::Cause;

const RESOURCE: &str = "spec.resourceAttributes";

/// Returns the errors in the selectors of the review's resource attributes.
pub(super) fn checked(resource: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in ["fieldSelector", "labelSelector"] {
        if let Some(selector) = resource.get(field).filter(|selector| !selector.is_null()) {
            selects(selector, &format!("{RESOURCE}.{field}"), field == "labelSelector", &mut causes);
        }
    }
    causes
}

fn selects(selector: &Value, at: &str, by_labels: bool, causes: &mut Vec<Cause>) {
    let raw = selector.get("rawSelector").filter(|raw| **raw != "" && !raw.is_null());
    let requirements = list(selector, "requirements");
    match raw {
        Some(raw) if !requirements.is_empty() => {
            let why = "may not specified at the same time as requirements";
            causes.push(Cause::invalid(format!("{at}.rawSelector"), raw, why));
        }
        None if requirements.is_empty() => {
            let why = format!("when {at} is specified, requirements or rawSelector is required");
            causes.push(Cause::required(format!("{at}.requirements"), &why));
        }
        _ => {}
    }
    for (index, requirement) in requirements.iter().enumerate() {
        required(requirement, &format!("{at}.requirements[{index}]"), by_labels, causes);
    }
}

/// Validates a requirement. Unknown operators are accepted, as they may come from newer clients.
fn required(requirement: &Value, at: &str, by_labels: bool, causes: &mut Vec<Cause>) {
    let text = |field: &str| requirement.get(field).and_then(Value::as_str).unwrap_or_default();
    let (key, values) = (text("key"), list(requirement, "values"));
    if !by_labels && key.is_empty() {
        causes.push(Cause::required(format!("{at}.key"), "must be specified"));
    }
    let place = format!("{at}.values");
    match text("operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            causes.push(Cause::required(place.as_str(), why));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            causes.push(Cause::forbidden(place.as_str(), why));
        }
        _ => {}
    }
    if !by_labels {
        return;
    }
    let of_key = labels::key(key);
    causes.extend(of_key.iter().map(|why| Cause::invalid(format!("{at}.key"), &key.into(), why)));
    for (index, value) in values.iter().enumerate() {
        let problems = labels::value(value.as_str().unwrap_or_default());
        causes.extend(problems.iter().map(|why| Cause::invalid(format!("{place}[{index}]"), value, why)));
    }
}

fn list<'v>(of: &'v Value, field: &str) -> &'v [Value] {
    of.get(field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
