//! Defines the strategy of DeviceClasses. Read from pkg/apis/resource/validation and pkg/registry/resource/deviceclass of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::Value;

use super::texts::{configuration, selectors};
use crate::kinds::field::Field;
use crate::kinds::shared::resource_names;
use crate::kinds::{Habit, Naming, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "DeviceClass",
    habits: &[Habit::AnswersDeleted, Habit::ObjectAgain],
    prepare_create: Some(prepare_create),
    prepare_update: Some(prepare_update),
    name: Some(Naming::Own(name)),
    validate: Some(validate),
    validate_update: Some(validate_update),
    ..Strategy::PLAIN
};

const MOST_CONFIGURATIONS: usize = 32;

fn prepare_create(class: &mut Value) {
    object::set_meta(class, "generation", Some(1.into()));
}

fn prepare_update(class: &mut Value, old: &Value) {
    if class.get("spec") != old.get("spec") {
        let generation = object::generation(old).saturating_add(1);
        object::set_meta(class, "generation", Some(generation.into()));
    }
}

/// Validates a name as a subdomain, with a limit in bytes. A prefix is validated with the generated name.
fn name(_: &Value, name: &str, is_prefix: bool) -> Vec<String> {
    if is_prefix {
        return Vec::new();
    }
    let problems = NameRule::Subdomain.problems(name, false);
    problems.into_iter().map(|problem| problem.replace("253 characters", "253 bytes")).collect()
}

fn validate(class: &Value, errors: &mut FieldErrors) {
    specification(class, (false, false), errors);
}

/// Unchanged selectors and configurations are validated less strictly.
fn validate_update(class: &Value, old: &Value, errors: &mut FieldErrors) {
    let [spec, old] = [class, old].map(|class| Field::root(class).get("spec"));
    let same = |field: &'static str| spec.get(field).value() == old.get(field).value();
    specification(class, (same("selectors"), same("config")), errors);
}

fn specification(class: &Value, (same_selectors, same_config): (bool, bool), errors: &mut FieldErrors) {
    let spec = Field::root(class).get("spec");
    selectors(&spec.get("selectors"), same_selectors, errors);
    let configurations = spec.get("config");
    if configurations.len() > MOST_CONFIGURATIONS {
        errors.add(|| configurations.too_many(32));
    } else {
        configurations.items().for_each(|own| configuration(&own, same_config, errors));
    }
    let resource = spec.get("extendedResourceName");
    if resource.is_set() && !resource_names::is_extended(resource.text()) {
        errors.add(|| resource.invalid("must be a valid extended resource name"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_that_were_there_stay() {
        let class = |name: &str| json!({"spec": {"selectors": [{"cel": {"expression": "odd("}}], "extendedResourceName": name}});
        let mut errors = FieldErrors::default();
        validate_update(&class("cpu"), &class("example.com/gpu"), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            ["spec.extendedResourceName: Invalid value: \"cpu\": must be a valid extended resource name"]
        );
    }
}
