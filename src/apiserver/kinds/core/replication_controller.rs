//! Defines the strategy of ReplicationControllers. Declarative tags validate part of them, so that the limit of the name is in bytes.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::{self, NameRule};
use serde_json::{Map, Value};

use crate::kinds::field::Field;
use crate::kinds::shared::defaults::template_labels;
use crate::kinds::shared::{pod_spec, pod_template, replicas, workload};
use crate::kinds::{Habit, Naming, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "ReplicationController",
    habits: &[Habit::AnswersDeleted, Habit::PublishedAsTold, Habit::OrphansByDefault],
    name: Some(Naming::Own(name_problems)),
    default: Some(|_, object| default(object)),
    validate: Some(validate),
    validate_update: Some(validate_update),
    validate_status: Some(validate_status),
    warnings: Some(|object, old| workload::named_warnings(object, old, &["spec", "template"])),
    ..Strategy::PLAIN
};

/// Sets defaults: selector and labels are the labels of the template.
fn default(controller: &mut Value) {
    let labels = controller.pointer("/spec/template/metadata/labels").and_then(Value::as_object);
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()).cloned() {
        let spec = &mut controller["spec"];
        if spec.get("selector").and_then(Value::as_object).is_none_or(Map::is_empty) {
            object::set_field(spec, "selector", Some(labels.into()));
        }
        template_labels(controller, "/spec/template/metadata/labels");
    }
    if let Some(spec) = controller.pointer_mut("/spec/template/spec") {
        pod_spec::defaults::fill(spec);
    }
}

/// Most bytes of a name.
const LONGEST: usize = 253;

/// A name prefix is validated with the generated name.
fn name_problems(_: &Value, name: &str, prefix: bool) -> Vec<String> {
    if prefix {
        return Vec::new();
    }
    if name.len() > LONGEST {
        let mut problems = vec![format!("must be no more than {LONGEST} bytes")];
        problems.extend(names::dns1123_subdomain(name).into_iter().skip(1));
        return problems;
    }
    NameRule::Subdomain.problems(name, false)
}

fn validate(object: &Value, errors: &mut FieldErrors) {
    whole(object, None, errors);
}

fn validate_update(object: &Value, old: &Value, errors: &mut FieldErrors) {
    whole(object, Some(old), errors);
}

fn whole(object: &Value, old: Option<&Value>, errors: &mut FieldErrors) {
    let spec = Field::root(object).get("spec");
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    replicas::not_negative(&spec, &["minReadySeconds"], errors);
    if selector.is_empty() {
        errors.add(|| selector.required(""));
    }
    spec.get("replicas").not_negative(errors);
    if !template.is_set() {
        return errors.add(|| template.required(""));
    }
    let given = workload::labels_of(&template);
    let chosen = selector.entries().all(|(key, wanted)| given.value().get(key) == Some(wanted.value()));
    if !chosen {
        errors.add(|| workload::not_chosen(&template));
    }
    pod_template::validate(&template, workload::part(old, "/spec/template"), errors);
    workload::runs_always(&template, "ReplicationController", errors);
}

fn validate_status(object: &Value, _: &Value, errors: &mut FieldErrors) {
    replicas::kept(&Field::root(object).get("status"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_and_a_selector_are_needed() {
        let mut errors = FieldErrors::default();
        validate(&json!({"spec": {"replicas": -1}}), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "spec.selector: Required value",
                "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                "spec.template: Required value",
            ]
        );
    }

    #[test]
    fn long_names_are_counted_in_bytes() {
        assert_eq!(name_problems(&json!({}), &"x".repeat(254), false), ["must be no more than 253 bytes"]);
        assert_eq!(name_problems(&json!({}), "rc", false), Vec::<String>::new());
    }
}
