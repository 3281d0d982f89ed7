//! PriorityClasses. Read from pkg/apis/scheduling/validation and pkg/registry/scheduling/priorityclass of Kubernetes
//! 1.36.

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

/// The highest priority that users may give.
const HIGHEST: i64 = 1_000_000_000;

fn default(_: &str, class: &mut Value) {
    set_absent(class, &[("preemptionPolicy", "PreemptLowerPriority".into())]);
}

/// The generation is that of the creation: what counts does not change.
fn prepare_create(class: &mut Value) {
    object::set_meta(class, "generation", Some(1.into()));
}

fn validate(class: &Value, errors: &mut FieldErrors) {
    let (name, root) = (object::name(class), Field::root(class));
    if !matches!(name, "system-node-critical" | "system-cluster-critical") {
        if name.starts_with("system-") {
            let why = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a \
                 known system priority class"
            );
            errors.add(|| root.get("metadata").get("name").forbidden(why));
        }
        let value = root.get("value");
        if value.integer().is_some_and(|value| value > HIGHEST) {
            let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
            errors.add(|| value.forbidden(why));
        }
    }
    let policy = root.get("preemptionPolicy");
    if policy.is_empty() {
        errors.add(|| policy.required(""));
    }
    policy.one_of(&["PreemptLowerPriority", "Never"], errors);
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
                "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
            ]
        );
    }
}
