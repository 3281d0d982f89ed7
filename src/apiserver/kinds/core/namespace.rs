//! Defines the strategy of Namespaces. Read from pkg/apis/core/validation, pkg/apis/core/v1/defaults.go and pkg/registry/core/namespace of
//! Kubernetes 1.36.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::labels;
use admit_apimachinery::names::NameRule;
use serde_json::{Value, json};

use crate::kinds::field::Field;
use crate::kinds::shared::defaults::set_phase;
use crate::kinds::shared::texts::{NOT_QUALIFIED, is_bare};
use crate::kinds::{Habit, Naming, Strategy};
use crate::object;

pub(super) const STRATEGY: Strategy = Strategy {
    kind: "Namespace",
    habits: &[
        Habit::AnswersDeleted,
        Habit::PublishedAsTold,
        Habit::Graceful,
        Habit::HidesGrace,
        Habit::ObjectAgain,
    ],
    default: Some(default),
    prepare_create: Some(prepare_create),
    prepare_update: Some(|namespace, old| {
        name_label(namespace);
        // Only `/finalize` changes the finalizers of the specification.
        object::set_field(namespace, "spec", old.get("spec").cloned());
    }),
    prepare_status: Some(|namespace, _, _| name_label(namespace)),
    prepare_finalize: Some(name_label),
    mark_deleted: Some(|namespace, _| namespace["status"]["phase"] = "Terminating".into()),
    is_held: Some(has_finalizers),
    name: Some(Naming::Rule(NameRule::Label)),
    validate: Some(validate),
    validate_status: Some(validate_status),
    validate_below: Some(|_, namespace, _, errors| finalizers(namespace, errors)),
    ..Strategy::PLAIN
};

const NAME_LABEL: &str = "kubernetes.io/metadata.name";

fn default(_: &str, namespace: &mut Value) {
    name_label(namespace);
    set_phase(namespace, "Active");
}

/// Sets the label with the namespace's name, for selectors. A name that is generated later gets its label then.
fn name_label(namespace: &mut Value) {
    let name = object::name(namespace).to_owned();
    if !name.is_empty() {
        object::member_mut(object::meta_mut(namespace), "labels").insert(NAME_LABEL.to_owned(), name.into());
    }
}

fn prepare_create(namespace: &mut Value) {
    name_label(namespace);
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    let mut finalizers = finalizers.cloned().unwrap_or_default();
    if !finalizers.iter().any(|finalizer| finalizer == "kubernetes") {
        finalizers.push("kubernetes".into());
    }
    namespace["spec"]["finalizers"] = finalizers.into();
    namespace["status"] = json!({"phase": "Active"});
}

/// Validates the finalizers of the specification on a write of `/finalize`.
fn finalizers(namespace: &Value, errors: &mut FieldErrors) {
    for finalizer in Field::root(namespace).get("spec").get("finalizers").items() {
        finalizer.problems(labels::key(finalizer.text()), errors);
        if is_bare(finalizer.text()) {
            errors.add(|| finalizer.invalid(NOT_QUALIFIED));
        }
    }
}

/// Whether the specification has finalizers.
fn has_finalizers(namespace: &Value) -> bool {
    let finalizers = namespace.pointer("/spec/finalizers").and_then(Value::as_array);
    finalizers.is_some_and(|finalizers| !finalizers.is_empty())
}

/// Validates the finalizers of the specification, which exist beside those of the metadata.
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
