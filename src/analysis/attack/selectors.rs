//! Reads what a policy and its bindings select: objects and namespaces by labels, objects by names, and params.

use serde_json::{Value, json};

/// The selectors of one document.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    /// `ValidatingAdmissionPolicyBinding a: spec`.
    pub(super) origin: String,
    /// `ValidatingAdmissionPolicyBinding a: spec.matchResources`.
    pub(super) resources: String,
    pub(super) objects: Vec<Requirement>,
    pub(super) namespaces: Vec<Requirement>,
    /// Names that rules exclude.
    pub(super) left_out: Vec<String>,
    /// Whether params come from the request's namespace, and may be missing.
    pub(super) params_of_namespace: bool,
    /// Whether params may be missing.
    pub(super) params_may_miss: bool,
}

/// A requirement on one label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Requirement {
    pub(super) key: String,
    operator: String,
    values: Vec<String>,
}

impl Requirement {
    /// Returns a label value that fails the requirement; `None` if removing the label fails it.
    pub(super) fn missed(&self) -> Option<String> {
        match self.operator.as_str() {
            "NotIn" => self.values.first().cloned(),
            "DoesNotExist" => Some("x".to_owned()),
            _ => None,
        }
    }
}

/// Reads the selectors of a policy and of each of its bindings.
pub(super) fn of(policy: &Value, bindings: &[&Value]) -> Vec<Selector> {
    let named = |document: &Value| {
        let text =
            |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        format!("{} {}", text("/kind"), text("/metadata/name"))
    };
    let own = policy.pointer("/spec/matchConstraints").map(|constraints| Selector {
        origin: format!("{}: spec", named(policy)),
        resources: format!("{}: spec.matchConstraints", named(policy)),
        ..selector(constraints)
    });
    let of_bindings = bindings.iter().map(|binding| {
        let resources = binding.pointer("/spec/matchResources").map(selector).unwrap_or_default();
        let param = binding.pointer("/spec/paramRef");
        let is_absent = |field: &str| {
            param.is_some_and(|param| param.get(field).and_then(Value::as_str).is_none_or(str::is_empty))
        };
        let may_miss = param.and_then(|param| param.get("parameterNotFoundAction")) == Some(&json!("Allow"));
        Selector {
            origin: format!("{}: spec", named(binding)),
            resources: format!("{}: spec.matchResources", named(binding)),
            params_may_miss: may_miss,
            params_of_namespace: may_miss && is_absent("namespace"),
            ..resources
        }
    });
    own.into_iter().chain(of_bindings).collect()
}

fn selector(resources: &Value) -> Selector {
    let excludes = resources.get("excludeResourceRules").and_then(Value::as_array);
    let names =
        excludes.into_iter().flatten().filter_map(|rule| rule.get("resourceNames")?.as_array()).flatten();
    Selector {
        objects: requirements(resources.get("objectSelector")),
        namespaces: requirements(resources.get("namespaceSelector")),
        left_out: names.filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        ..Selector::default()
    }
}

fn requirements(selector: Option<&Value>) -> Vec<Requirement> {
    let labels = selector.and_then(|selector| selector.get("matchLabels")).and_then(Value::as_object);
    let equal = labels.into_iter().flatten().map(|(key, value)| Requirement {
        key: key.clone(),
        operator: "In".to_owned(),
        values: value.as_str().map(ToOwned::to_owned).into_iter().collect(),
    });
    let listed = selector.and_then(|selector| selector.get("matchExpressions")).and_then(Value::as_array);
    let listed = listed.into_iter().flatten().map(|item| {
        let text = |field: &str| item.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let values = item.get("values").and_then(Value::as_array).into_iter().flatten();
        Requirement {
            key: text("key"),
            operator: text("operator"),
            values: values.filter_map(Value::as_str).map(ToOwned::to_owned).collect(),
        }
    });
    equal.chain(listed).collect()
}
