//! Defines the strategy of PriorityClasses. Read from pkg/apis/scheduling/validation and
//! pkg/registry/scheduling/priorityclass of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_absent;
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "PriorityClass",
    default: Some(default),
    prepare_create: Some(prepare_create),
    validate: Some(validate),
    validate_update: Some(validate_update),
    ..Strategy::PLAIN
};

/// The highest priority of user-defined classes.
const HIGHEST: i64 = 1_000_000_000;
/// The system classes, and their priorities.
const SYSTEM: [(&str, i64); 2] =
    [("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

fn default(_: &str, class: &mut Value) {
    set_absent(class, &[("preemptionPolicy", "PreemptLowerPriority".into())]);
}

/// The generation stays 1, since the value of a class is immutable.
fn prepare_create(class: &mut Value) {
    object::set_meta(class, "generation", Some(1.into()));
}

fn validate(class: &Value, errors: &mut FieldErrors) {
    let (name, root) = (object::name(class), Field::root(class));
    let value = root.get("value");
    if name.starts_with("system-") {
        if let Some(problem) = system_problem(name, &root) {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            );
            errors.add(|| root.get("metadata").get("name").forbidden(why));
        }
    } else if value.integer().is_some_and(|value| value > HIGHEST) {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        errors.add(|| value.forbidden(why));
    }
    let policy = root.get("preemptionPolicy");
    if policy.is_empty() {
        errors.add(|| policy.required(""));
    }
    policy.one_of(&["PreemptLowerPriority", "Never"], errors);
}

/// Returns why a class with a system name is not the system class of that name; None if it is.
fn system_problem(name: &str, class: &Field<'_>) -> Option<String> {
    let Some((_, value)) = SYSTEM.iter().find(|(own, _)| *own == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.get("value").integer().unwrap_or_default() != *value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    class.get("globalDefault").flag().then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

fn validate_update(class: &Value, old: &Value, errors: &mut FieldErrors) {
    let (class, old) = (Field::root(class), Field::root(old));
    let value = class.get("value");
    if value.integer().unwrap_or_default() != old.get("value").integer().unwrap_or_default() {
        errors.add(|| value.forbidden("may not be changed in an update."));
    }
    class.get("preemptionPolicy").immutable(&old.get("preemptionPolicy"), errors);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_system_keeps_its_names_and_numbers() {
        let class =
            json!({"metadata": {"name": "system-x"}, "value": 2_000_000_000, "preemptionPolicy": "Never"});
        let mut errors = FieldErrors::default();
        validate(&class, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. \
                 error: system-x is not a known system priority class",
            ]
        );
    }
}
