//! Validates what workloads have in common: pod template and selector.

use std::collections::HashSet;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::{Value, json};

use super::{pod_spec, selection};
use crate::kinds::field::Field;
use crate::object;

/// Returns warnings about the pod template at `template`, if the specification is new or changed.
pub(crate) fn warnings(object: &Value, old: Option<&Value>, template: &[&'static str]) -> Vec<String> {
    if is_as_before(object, old) {
        return Vec::new();
    }
    let template = template.iter().fold(Field::root(object), |field, step| field.get(step));
    pod_spec::warnings::of(&template, false)
}

/// Like [`warnings`], with a warning about the object's name, from which names of pods and hosts are made.
pub(crate) fn named_warnings(object: &Value, old: Option<&Value>, template: &[&'static str]) -> Vec<String> {
    name_warning(object, old).into_iter().chain(warnings(object, old, template)).collect()
}

/// Returns a warning about the name of a new object from which names of pods and hosts are made.
pub(crate) fn name_warning(object: &Value, old: Option<&Value>) -> Option<String> {
    let problems = match old {
        None => NameRule::Label.problems(object::name(object), false),
        Some(_) => Vec::new(),
    };
    (!problems.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label \
             is recommended: [{}]",
            problems.join(", ")
        )
    })
}

/// Whether the specification is unchanged.
pub(crate) fn is_as_before(object: &Value, old: Option<&Value>) -> bool {
    old.is_some_and(|old| old.get("spec") == object.get("spec"))
}

/// Returns the part of an old object at a JSON pointer, if there is one.
pub(crate) fn part<'o>(old: Option<&'o Value>, pointer: &str) -> Option<&'o Value> {
    old.and_then(|old| old.pointer(pointer))
}

/// Returns the labels of a template; null if it has none.
pub(crate) fn labels_of<'o>(template: &Field<'o>) -> Field<'o> {
    template.get("metadata").get("labels")
}

/// Pods of such workloads must always restart, and have no deadline.
pub(crate) fn runs_always(template: &Field<'_>, kind: &str, errors: &mut FieldErrors) {
    let spec = template.get("spec");
    let policy = spec.get("restartPolicy");
    if policy.text() != "Always" {
        errors.add(|| policy.not_supported(&["Always"]));
    }
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.is_set() {
        errors.add(|| deadline.forbidden(format!("activeDeadlineSeconds in {kind} is not Supported")));
    }
}

/// The selector must match the labels of the template.
pub(crate) fn is_chosen(selector: &Field<'_>, template: &Field<'_>, errors: &mut FieldErrors) {
    if !selection::chooses(selector, labels_of(template).value()) {
        errors.add(|| not_chosen(template));
    }
}

/// Returns the error for a template whose labels are not matched.
pub(crate) fn not_chosen(template: &Field<'_>) -> FieldError {
    let given = labels_of(template);
    given.invalid_as(&*given.as_sent(), "`selector` does not match template `labels`")
}

/// Returns the template with volumes for the claims of a StatefulSet, which come first and replace volumes of
/// the same name. Claims of the same name share one volume.
pub(crate) fn with_claims(template: &Value, claims: &Field<'_>) -> Value {
    let name = |of: &Value| of.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut taken = HashSet::new();
    let names = claims.items().map(|claim| claim.get("metadata").get("name").text());
    let names: Vec<&str> = names.filter(|name| taken.insert(*name)).collect();
    let own = template.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let kept = own.filter(|volume| !taken.contains(name(volume).as_str())).cloned();
    let made = names.iter().map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
    let mut whole = template.clone();
    whole["spec"]["volumes"] = made.chain(kept).collect();
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claims_are_volumes_of_the_template() {
        let volumes = json!([{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]);
        let claims = json!([{"metadata": {"name": "a"}}, {"metadata": {"name": "a"}}]);
        let whole = with_claims(&json!({"spec": {"volumes": volumes}}), &Field::root(&claims));
        let claim = json!({"name": "a", "persistentVolumeClaim": {"claimName": "a"}});
        assert_eq!(whole["spec"]["volumes"], json!([claim, {"name": "b", "emptyDir": {}}]));
    }
}
