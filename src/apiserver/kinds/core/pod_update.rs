//! Validates updates of pods (`ValidatePodUpdate`). Images, deadlines, additional tolerations, and the node selection of a gated
//! pod may change. Any other change is refused, and the error shows the difference.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use admit_apimachinery::diff;
use admit_apimachinery::findings::FieldErrors;
use serde_json::Value;

use crate::builtin::{internal, tables};
use crate::kinds::field::Field;
use crate::kinds::shared::{inside, pod_spec};
use crate::object;

const SPEC: &str = "io.k8s.api.core.v1.PodSpec";

const LISTS: [&str; 2] = ["containers", "initContainers"];

const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set \
    to 1 if it was previously negative)";

/// Validates the change of a pod's specification.
pub(super) fn validate(pod: &Value, old: &Value, errors: &mut FieldErrors) {
    let (root, before) = (Field::root(pod), Field::root(old));
    let (new, old) = (root.get("spec"), before.get("spec"));
    for list in LISTS {
        let (containers, before) = (new.get(list), old.get(list));
        if containers.len() != before.len() {
            return errors.add(|| containers.forbidden("pod updates may not add or remove containers"));
        }
        images(&containers, errors);
    }
    if deadline(&new.get("activeDeadlineSeconds"), &old.get("activeDeadlineSeconds"), errors).is_break() {
        return;
    }
    tolerations(&new.get("tolerations"), &old.get("tolerations"), errors);
    scheduling_gates(&new.get("schedulingGates"), &old.get("schedulingGates"), errors);
    if inside::alike(SPEC, new.value(), old.value()) {
        return;
    }
    let mut placed = None;
    if !old.get("schedulingGates").is_empty() {
        node_labels(&new.get("nodeSelector"), &old.get("nodeSelector"), errors);
        node_affinity(&new, &old, errors);
        placed = Some(with_node_affinity_of(old.value(), new.value()));
    }
    let rest = placed.as_ref().unwrap_or(new.value());
    if !is_same_but_changeable(rest, old.value())
        && !inside::alike(SPEC, &without_changeable(rest, old.value()), old.value())
    {
        errors.add(|| {
            let difference = difference(old.value(), &new.with(rest).as_sent());
            new.forbidden(format!("pod updates may not change fields other than {CHANGEABLE}\n{difference}"))
        });
    }
}

fn images(containers: &Field<'_>, errors: &mut FieldErrors) {
    for container in containers.items() {
        let image = container.get("image");
        if image.is_empty() {
            errors.add(|| image.required(""));
        }
        pod_spec::image_is_trimmed(&container, errors);
    }
}

/// A deadline may be set, or reduced. After an error nothing else is checked.
fn deadline(new: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) -> ControlFlow<()> {
    match (new.integer(), old.integer()) {
        (Some(seconds), _) if !(0..=i64::from(i32::MAX)).contains(&seconds) => {
            new.in_range(0, i64::from(i32::MAX), errors);
            ControlFlow::Break(())
        }
        (Some(seconds), Some(before)) if seconds > before => {
            errors.add(|| new.invalid("must be less than or equal to previous value"));
            ControlFlow::Break(())
        }
        (None, Some(_)) => {
            errors
                .add(|| new.invalid_as(Value::Null, "must not update from a positive integer to nil value"));
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Continue(()),
    }
}

/// Tolerations may be added, and their seconds changed.
fn tolerations(new: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let untimed = |toleration: Field<'_>| {
        let mut untimed = toleration.value().clone();
        object::set_field(&mut untimed, "tolerationSeconds", None);
        untimed
    };
    let kept: HashSet<Value> = new.items().map(untimed).collect();
    if old.items().any(|toleration| !kept.contains(&untimed(toleration))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        return errors.add(|| new.forbidden(why));
    }
    pod_spec::tolerations(new, errors);
}

/// Scheduling gates may be removed, but not added.
fn scheduling_gates(new: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let before: HashSet<&str> = old.items().map(|gate| gate.get("name").text()).collect();
    // Of gates with the same name, the last is reported.
    let places: BTreeMap<&str, usize> =
        new.items().enumerate().map(|(at, gate)| (gate.get("name").text(), at)).collect();
    for (name, at) in places.into_iter().filter(|(name, _)| !before.contains(name)) {
        let gate = new.index(at).get("name");
        errors.add(|| {
            gate.forbidden(format!("only deletion is allowed, but found new scheduling gate '{name}'"))
        });
    }
}

/// The node selector of a gated pod may only be extended.
fn node_labels(new: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    if old.entries().any(|(key, label)| new.value().get(key) != Some(label.value())) {
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.add(|| new.invalid(why));
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// The node affinity of a gated pod may only become stricter: existing requirements must remain.
fn node_affinity(new: &Field<'_>, old: &Field<'_>, errors: &mut FieldErrors) {
    let of = |spec: &Field<'_>| spec.get("affinity").get("nodeAffinity").value().clone();
    let (new_value, old_value) = (of(new), of(old));
    if new_value == old_value || old_value.is_null() {
        return;
    }
    let place = new.get("affinity").get("nodeAffinity").get(REQUIRED).get("nodeSelectorTerms");
    let terms = |value: &Value| {
        value
            .get(REQUIRED)
            .and_then(|required| required.get("nodeSelectorTerms"))
            .and_then(Value::as_array)
            .cloned()
    };
    let Some(before) = terms(&old_value).filter(|terms| !terms.is_empty()) else { return };
    let after = terms(&new_value).unwrap_or_default();
    if after.len() != before.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return errors.add(|| place.invalid_as(Value::from(after), why));
    }
    for (at, (before, after)) in before.iter().zip(&after).enumerate() {
        let keeps = |list: &str| {
            let items = |term: &Value| term.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
            items(after).starts_with(&items(before))
        };
        if !keeps("matchExpressions") || !keeps("matchFields") {
            errors.add(|| {
                place
                    .index(at)
                    .invalid_as(after.clone(), "only additions are allowed (no mutations or deletions)")
            });
        }
    }
}

/// Returns the new specification with the node affinity of the old one.
fn with_node_affinity_of(old: &Value, new: &Value) -> Value {
    let mut placed = new.clone();
    let before = old.pointer("/affinity/nodeAffinity").cloned();
    if before.is_some() || new.get("affinity").is_some() {
        object::set_field(&mut placed["affinity"], "nodeAffinity", before);
    }
    let is_empty = placed.get("affinity").and_then(Value::as_object).is_some_and(serde_json::Map::is_empty);
    if is_empty && old.get("affinity").is_none() {
        object::set_field(&mut placed, "affinity", None);
    }
    placed
}

/// Returns the new specification with the old values of the fields that may change.
fn without_changeable(new: &Value, old: &Value) -> Value {
    let mut rest = new.clone();
    for list in LISTS {
        let images = items(old, list).iter().map(|container| container.get("image").cloned());
        let containers = rest.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, image) in containers.zip(images) {
            object::set_field(container, "image", image);
        }
    }
    for field in changeable(new, old) {
        object::set_field(&mut rest, field, old.get(field).cloned());
    }
    rest
}

/// Returns the fields that may change.
fn changeable(new: &Value, old: &Value) -> Vec<&'static str> {
    let grace = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    let mut fields = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(new) == Some(1) {
        fields.push("terminationGracePeriodSeconds");
    }
    // The node selector of a gated pod may still change.
    if !items(old, "schedulingGates").is_empty() {
        fields.push("nodeSelector");
    }
    fields
}

/// Whether only fields that may change differ, determined without a copy.
fn is_same_but_changeable(new: &Value, old: &Value) -> bool {
    let changeable = changeable(new, old);
    same_members(
        new,
        old,
        |name| !changeable.contains(&name),
        |name, one, other| {
            if !LISTS.contains(&name) {
                return one == other;
            }
            let same =
                |(one, other)| same_members(one, other, |name| name != "image", |_, one, other| one == other);
            // Both lists have the same length.
            items(new, name).iter().zip(items(old, name)).all(same)
        },
    )
}

/// Whether both have the same members, among those that count.
fn same_members(
    one: &Value,
    other: &Value,
    counts: impl Fn(&str) -> bool,
    same: impl Fn(&str, &Value, &Value) -> bool,
) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    let counted = |name: &String| counts(name);
    one.keys().filter(|name| counted(name)).count() == other.keys().filter(|name| counted(name)).count()
        && one
            .iter()
            .filter(|(name, _)| counted(name))
            .all(|(name, value)| other.get(name).is_some_and(|other| same(name, value, other)))
}

/// Specifications with more values get no diff: a volume of three values has thirty lines in the internal form.
const MOST_VALUES: usize = 10_000;

/// Returns a diff of the fields that may not change.
fn difference(old: &Value, new: &Value) -> String {
    if inside::is_long(old, MOST_VALUES) || inside::is_long(new, MOST_VALUES) {
        return String::new();
    }
    let new = &without_changeable(new, old);
    let Some(id) = tables().by_openapi_name(SPEC) else { return String::new() };
    let [old, new] = [old, new].map(|spec| inside::indented(&internal(tables(), id, spec)));
    diff::unified(&old, &new)
}

fn items<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(new: &Value, old: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        validate(&json!({"spec": new}), &json!({"spec": old}), &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn images_change_and_networks_do_not() {
        let toleration = |key: &str| json!({"key": key, "operator": "Exists"});
        let old = json!({"containers": [{"name": "c", "image": "a"}], "tolerations": [toleration("k")]});
        let new = json!({"containers": [{"name": "c", "image": "b"}],
            "tolerations": [toleration("k"), toleration("l")]});
        assert_eq!(changed(&new, &old), Vec::<String>::new());
        let mut network = old.clone();
        network["hostNetwork"] = true.into();
        let texts = changed(&network, &old);
        assert_eq!(texts.len(), 1);
        assert!(texts[0].contains("\n+  \"HostNetwork\": true,\n"), "{}", texts[0]);
        let fewer = changed(&json!({"containers": []}), &old);
        assert_eq!(fewer, ["spec.containers: Forbidden: pod updates may not add or remove containers"]);
    }

    #[test]
    fn gates_are_opened_only() {
        let old = json!({"schedulingGates": [{"name": "a"}], "nodeSelector": {"k": "v"}});
        let new = json!({"schedulingGates": [{"name": "a"}, {"name": "b"}], "nodeSelector": {}});
        assert_eq!(
            changed(&new, &old),
            [
                "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'",
                "spec.nodeSelector: Invalid value: {}: only additions to spec.nodeSelector are allowed (no mutations or \
                 deletions)",
            ]
        );
        let open = json!({"nodeSelector": {"k": "v", "l": "w"}});
        assert_eq!(changed(&open, &old), Vec::<String>::new());
    }
}
