//! Expressions that select devices (resource.k8s.io): what they may use, and what is wrong with one.
//!
//! Read from k8s.io/dynamic-resource-allocation/cel of Kubernetes 1.36.

use std::sync::{Arc, LazyLock};

use admit_apimachinery::field_error::FieldError;
use admit_cel::{DeclField, DeclKind, DeclType, Env, Mode, SizeHints, Type, Version};
use serde_json::Value;

/// Static cost that one expression may have.
pub const SELECTOR_LIMIT: u64 = 1_000_000;
/// Bytes that one expression may have.
const MOST_BYTES: usize = 10 << 10;
/// The group of the kinds that have such expressions.
const GROUP: &str = "resource.k8s.io";
/// Bytes of a driver's name.
const DRIVER_LENGTH: u64 = 63;
/// Attributes and capacities of one device.
const MOST_MEMBERS: u64 = 32;
/// Bytes of the text of an attribute.
const TEXT_LENGTH: u64 = 64;

static DEVICE: LazyLock<Arc<DeclType>> = LazyLock::new(|| Arc::new(device()));
static ENV: LazyLock<Env> =
    LazyLock::new(|| Env::kubernetes(Version(1, 36), Mode::New).with_variable("device", DEVICE.cel_type()));

/// What is wrong with a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectorProblem {
    /// It is no expression that yields a truth value, in these words.
    Invalid(String),
    /// It may take too long.
    TooComplex,
}

/// What the expression of a selector of devices may name.
///
/// ```
/// assert!(admit_policy::selector_env().variables().eq(["device"]));
/// ```
#[must_use]
pub fn selector_env() -> Env {
    ENV.clone()
}

/// The greatest cost of an expression by its estimate, which [`SELECTOR_LIMIT`] bounds; none where it is no expression.
///
/// ```
/// use admit_policy::{SELECTOR_LIMIT, selector_cost};
///
/// assert!(selector_cost("device.driver == 'a'").is_some_and(|cost| cost < SELECTOR_LIMIT));
/// assert_eq!(selector_cost("device."), None);
/// ```
#[must_use]
pub fn selector_cost(text: &str) -> Option<u64> {
    let hints = SizeHints { root: Some(Arc::clone(&DEVICE)) };
    ENV.compile(text).ok().map(|checked| checked.estimate(&hints).max)
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
        // As it was before there were alternatives, too.
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

/// What a server would say of the selectors of a document.
pub(crate) fn selector_errors(document: &Value) -> Vec<FieldError> {
    let error = |(at, text): (String, &str)| {
        if text.len() > MOST_BYTES {
            return Some(FieldError::too_long(at, 10 << 10));
        }
        Some(match selector_problem(text)? {
            SelectorProblem::Invalid(why) => FieldError::invalid(at, text, why),
            SelectorProblem::TooComplex => FieldError::forbidden(at, "too complex, exceeds cost limit"),
        })
    };
    device_selectors(document).into_iter().filter_map(error).collect()
}

/// What is wrong with the expression of a selector of devices, if anything is.
///
/// ```
/// use admit_policy::selector_problem;
///
/// assert_eq!(selector_problem("device.driver == 'gpu.example.com'"), None);
/// assert!(selector_problem("device.driver").is_some(), "no truth value");
/// ```
#[must_use]
pub fn selector_problem(text: &str) -> Option<SelectorProblem> {
    let checked = match ENV.compile(text) {
        Ok(checked) => checked,
        Err(error) => return Some(SelectorProblem::Invalid(format!("compilation failed: {error}"))),
    };
    let output = checked.output_type();
    if !matches!(output, Type::Bool | Type::Dyn) {
        let found = output.with_full_names();
        let why = format!("must evaluate to bool or the unknown type, not {found}");
        return Some(SelectorProblem::Invalid(why));
    }
    if let Err(error) = ENV.program(&checked) {
        return Some(SelectorProblem::Invalid(error.to_string()));
    }
    let hints = SizeHints { root: Some(Arc::clone(&DEVICE)) };
    (checked.estimate(&hints).max > SELECTOR_LIMIT).then_some(SelectorProblem::TooComplex)
}

/// A device: its driver, and for each domain what it is and has.
fn device() -> DeclType {
    let sized = |ty, size| DeclType { max_elements: Some(size), ..DeclType::unbounded(DeclKind::Scalar(ty)) };
    let by_name = |value: DeclType| {
        let map = |value: DeclType| DeclType {
            max_elements: Some(MOST_MEMBERS),
            ..DeclType::unbounded(DeclKind::Map {
                key: Arc::new(sized(Type::String, DRIVER_LENGTH)),
                value: Arc::new(value),
            })
        };
        map(map(value))
    };
    let quantity = DeclType::unbounded(DeclKind::Scalar(Type::Opaque("kubernetes.Quantity".into())));
    let field = |name: &str, decl: DeclType| DeclField {
        name: name.into(),
        cel_name: name.into(),
        decl: Arc::new(decl),
        required: true,
    };
    // In the order of their names.
    let fields = vec![
        field("allowMultipleAllocations", DeclType::unbounded(DeclKind::Scalar(Type::Bool))),
        field("attributes", by_name(sized(Type::Dyn, TEXT_LENGTH))),
        field("capacity", by_name(quantity)),
        field("driver", sized(Type::String, DRIVER_LENGTH)),
    ];
    DeclType::unbounded(DeclKind::Object { name: "kubernetes.DRADevice".into(), fields: fields.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_yield_truth_values() {
        let fine = [
            "device.driver == 'gpu.example.com'",
            "device.attributes['gpu.example.com'].model.startsWith('a')",
            "device.capacity['gpu.example.com'].memory.compareTo(quantity('10Gi')) >= 0",
            "true",
        ];
        for text in fine {
            assert_eq!(selector_problem(text), None, "{text}");
        }
        assert_eq!(
            selector_problem("-5"),
            Some(SelectorProblem::Invalid("must evaluate to bool or the unknown type, not int".to_owned()))
        );
        let Some(SelectorProblem::Invalid(why)) = selector_problem("devices") else { panic!("no device") };
        assert!(why.starts_with("compilation failed: ERROR: <input>:1:1: undeclared reference to 'devices'"));
        let nested = "device.attributes.all(a, device.attributes.all(b, device.attributes.all(c, \
                      device.attributes.all(d, a == b && c == d))))";
        assert_eq!(selector_problem(nested), Some(SelectorProblem::TooComplex));
    }

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
