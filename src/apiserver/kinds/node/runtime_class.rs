//! Defines the strategy of RuntimeClasses: container runtimes. Read from pkg/apis/node/validation, pkg/api/node and
//! pkg/registry/node/runtimeclass of Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::kinds::field::Field;
use crate::kinds::shared::label_selector::label_pairs;
use crate::kinds::shared::node_selector::old_label;
use crate::kinds::shared::texts::dns_label;
use crate::kinds::shared::{amount, resource_names, taints};
use crate::kinds::{Habit, Strategy};

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "RuntimeClass",
    habits: &[Habit::CreatedByUpdate, Habit::NeedsVersion, Habit::ObjectAgain],
    validate: Some(validate),
    validate_update: Some(validate_update),
    warnings: Some(warnings),
    ..Strategy::PLAIN
};

fn validate(class: &Value, errors: &mut FieldErrors) {
    let class = Field::root(class);
    let handler = class.get("handler");
    if handler.is_empty() {
        errors.add(|| handler.required(""));
    } else {
        dns_label(&handler, errors);
    }
    overhead(&class.get("overhead"), errors);
    let scheduling = class.get("scheduling");
    label_pairs(&scheduling.get("nodeSelector"), errors);
    taints::distinct_tolerations(&scheduling.get("tolerations"), errors);
}

/// Validates the overhead of a pod, as if it were a container's limits.
fn overhead(overhead: &Field<'_>, errors: &mut FieldErrors) {
    let (mut huge, mut other) = (false, false);
    for (resource, own) in overhead.get("podFixed").entries() {
        let place = overhead.get("limits").key(resource).with(own.value());
        resource_names::of_container(resource, &place, errors);
        amount::of_resource(resource, &place, errors);
        huge |= resource_names::is_huge_page(resource);
        other |= ["cpu", "memory"].contains(&resource);
    }
    if huge && !other {
        errors.add(|| overhead.forbidden("HugePages require cpu or memory"));
    }
}

fn validate_update(class: &Value, old: &Value, errors: &mut FieldErrors) {
    validate(class, errors);
    Field::root(class).get("handler").immutable(&Field::root(old).get("handler"), errors);
}

fn warnings(class: &Value, _: Option<&Value>) -> Vec<String> {
    let selector = Field::root(class).get("scheduling").get("nodeSelector");
    selector.entries().filter_map(|(key, _)| Some(format!("{selector}: {}", old_label(key)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn overhead_is_more_than_pages() {
        let class = json!({"handler": "h", "overhead": {"podFixed": {"hugepages-2Mi": "2Mi"}},
            "scheduling": {"nodeSelector": {"beta.kubernetes.io/os": "linux"}}});
        let mut errors = FieldErrors::default();
        validate(&class, &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(texts, ["overhead: Forbidden: HugePages require cpu or memory"]);
        assert_eq!(
            warnings(&class, None),
            ["scheduling.nodeSelector: deprecated since v1.14; use \"kubernetes.io/os\" instead"]
        );
    }
}
