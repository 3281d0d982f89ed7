//! Defines the strategy of IngressClasses: the controller of Ingresses, and its parameters.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::reference;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "IngressClass",
    habits: &[Habit::ObjectAgain],
    default: Some(default),
    validate: Some(validate),
    validate_update: Some(update),
    ..Strategy::PLAIN
};

const LONGEST_CONTROLLER: usize = 250;
const SCOPES: [&str; 2] = ["Cluster", "Namespace"];

fn default(_version: &str, object: &mut Value) {
    if let Some(parameters) = object.pointer_mut("/spec/parameters").filter(|given| given.is_object())
        && parameters.get("scope").is_none_or(Value::is_null)
    {
        object::set_field(parameters, "scope", Some("Cluster".into()));
    }
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let controller = spec.get("controller");
    if controller.text().is_empty() {
        errors.add(|| controller.required(""));
    } else {
        if controller.text().len() > LONGEST_CONTROLLER {
            errors.add(|| controller.too_long(250));
        }
        controller.domain_prefixed_path(errors);
    }
    let parameters = spec.get("parameters");
    if parameters.is_set() {
        reference::typed(&parameters, errors);
        scope(&parameters, errors);
    }
}

fn scope(parameters: &Field<'_>, errors: &mut FieldErrors) {
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    match scope.text() {
        _ if !scope.is_set() => errors.add(|| scope.required("")),
        "Namespace" if !namespace.is_set() => {
            errors.add(|| namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        "Namespace" => namespace.named(NameRule::Label, errors),
        "Cluster" if namespace.is_set() => {
            errors.add(|| namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        "Cluster" => {}
        _ => errors.add(|| scope.not_supported(&SCOPES)),
    }
}

fn update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let controller = |object| Field::root(object).get("spec").get("controller");
    controller(object).immutable(&controller(old), errors);
    validate(object, errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn controllers_are_paths_of_a_domain() {
        let class = |controller: &str| json!({"spec": {"controller": controller}});
        assert!(told(&STRATEGY, &class("a.b/c/d"), None).is_empty());
        assert_eq!(
            told(&STRATEGY, &class("a.b/c d"), None),
            ["spec.controller: Invalid value: \"c d\": Invalid path (regex used for validation is \
                 '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"]
        );
        assert_eq!(
            told(&STRATEGY, &class("a.b/d"), Some(&class("a.b/c"))),
            ["spec.controller: Invalid value: \"a.b/d\": field is immutable"]
        );
    }
}
