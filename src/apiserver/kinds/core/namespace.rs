//! Namespaces. Read from pkg/apis/core/validation, pkg/apis/core/v1/defaults.go and pkg/registry/core/namespace of
//! Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use serde_json::Value;

use crate::kinds::Strategy;
use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_phase;
use crate::kinds::shared::texts::{NOT_QUALIFIED, is_bare};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Namespace",
    default: Some(default),
    validate: Some(validate),
    validate_status: Some(validate_status),
    ..Strategy::PLAIN
};

fn default(_: &str, namespace: &mut Value) {
    set_phase(namespace, "Active");
}

/// Namespaces have finalizers of their own besides those of the metadata.
fn validate(namespace: &Value, errors: &mut FieldErrors) {
    let list = Field::root(namespace).get("spec").get("finalizers");
    for finalizer in list.items() {
        let name = list.with(finalizer.value());
        name.problems(labels::key(name.text()), errors);
        if is_bare(name.text()) {
            errors.add(|| name.invalid(NOT_QUALIFIED));
        }
    }
}

fn validate_status(namespace: &Value, _: &Value, errors: &mut FieldErrors) {
    let status = Field::root(namespace).get("status");
    let phase = status.get("Phase").with(status.get("phase").value());
    let (expected, when) = if object::is_terminating(namespace) {
        ("Terminating", "is not empty")
    } else {
        ("Active", "is empty")
    };
    if phase.text() != expected {
        errors.add(|| phase.invalid(format!("may only be '{expected}' if `deletionTimestamp` {when}")));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_phase_follows_the_deletion() {
        let mut errors = FieldErrors::default();
        let going =
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Active"}});
        validate_status(&going, &going, &mut errors);
        validate(&json!({"spec": {"finalizers": ["kubernetes", "bare"]}}), &mut errors);
        let texts: Vec<String> = errors.into_iter().map(|error| error.to_string()).collect();
        assert_eq!(
            texts,
            [
                "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty",
                "spec.finalizers: Invalid value: \"bare\": name is neither a standard finalizer name nor is it fully \
                 qualified",
            ]
        );
    }
}
