//! The fields of a pod that may change: images, deadlines, additional tolerations. Any other change is refused, and
//! the difference is shown.

use std::collections::HashSet;

use admit_apimachinery::diff;
use serde_json::{Value, json};

use super::items;
use crate::builtin::{internal, tables};
use crate::object;
use crate::status::{Cause, Causes};

const LISTS: [&str; 2] = ["containers", "initContainers"];

const CHANGEABLE: &str = "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set \
    to 1 if it was previously negative)";

pub(super) fn changed(pod: &Value, old: &Value) -> Causes {
    let nothing = json!({});
    let spec = |pod| Value::get(pod, "spec").unwrap_or(&nothing);
    let (new, old) = (spec(pod), spec(old));
    if new == old {
        return Causes::default();
    }
    for list in LISTS {
        if items(new, list).len() != items(old, list).len() {
            let why = "pod updates may not add or remove containers";
            return Causes::from(Cause::forbidden(format!("spec.{list}"), why));
        }
    }
    let mut causes = Causes::default();
    causes.extend(deadline(new, old));
    causes.extend(tolerations(new, old));
    if !is_same_but_changeable(new, old) {
        let why =
            format!("pod updates may not change fields other than {CHANGEABLE}\n{}", difference(old, new));
        causes.push(Cause::forbidden("spec", &why));
    }
    causes
}

/// A deadline may be set, or come nearer.
fn deadline(new: &Value, old: &Value) -> Option<Cause> {
    let field = "spec.activeDeadlineSeconds";
    let seconds = |spec: &Value| spec.get("activeDeadlineSeconds").and_then(Value::as_i64);
    match (seconds(new), seconds(old)) {
        (Some(new), Some(old)) if new > old => {
            Some(Cause::invalid(field, &new.into(), "must be less than or equal to previous value"))
        }
        (None, Some(_)) => {
            Some(Cause::invalid(field, &Value::Null, "must not update from a positive integer to nil value"))
        }
        _ => None,
    }
}

/// Tolerations may be added, and their seconds changed.
fn tolerations(new: &Value, old: &Value) -> Option<Cause> {
    let untimed = |toleration: &Value| {
        let mut untimed = toleration.clone();
        object::set_field(&mut untimed, "tolerationSeconds", None);
        untimed
    };
    let kept: HashSet<Value> = items(new, "tolerations").iter().map(untimed).collect();
    let lost = items(old, "tolerations").iter().any(|toleration| !kept.contains(&untimed(toleration)));
    let why = "existing toleration can not be modified except its tolerationSeconds";
    lost.then(|| Cause::forbidden("spec.tolerations", why))
}

/// The new specification with what may change as it was.
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

/// The fields that may change.
fn changeable(new: &Value, old: &Value) -> Vec<&'static str> {
    let grace = |spec: &Value| spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
    let mut fields = vec!["activeDeadlineSeconds", "tolerations"];
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(new) == Some(1) {
        fields.push("terminationGracePeriodSeconds");
    }
    // A pod that is not to be scheduled yet may still be told where.
    if !items(old, "schedulingGates").is_empty() {
        fields.extend(["affinity", "nodeSelector", "schedulingGates"]);
    }
    fields
}

/// Whether nothing else has changed, found out without a copy.
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
            // There are as many of both.
            items(new, name).iter().zip(items(old, name)).all(same)
        },
    )
}

/// Whether both have the same members of those that count.
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

/// Whether the text of a specification is longer than those that are compared: each value has a line of its own, but for
/// few that the internal form leaves out.
fn is_long(spec: &Value) -> bool {
    fn counted(value: &Value, left: &mut usize) {
        *left = left.saturating_sub(1);
        match value {
            _ if *left == 0 => {}
            Value::Array(items) => items.iter().for_each(|item| counted(item, left)),
            Value::Object(members) => members.values().for_each(|member| counted(member, left)),
            _ => {}
        }
    }
    let mut left = 2 * diff::MOST_LINES;
    counted(spec, &mut left);
    left == 0
}

/// What has changed that may not change.
fn difference(old: &Value, new: &Value) -> String {
    if is_long(old) || is_long(new) {
        return String::new();
    }
    let new = &without_changeable(new, old);
    let Some(id) = tables().by_openapi_name("io.k8s.api.core.v1.PodSpec") else { return String::new() };
    let [old, new] = [old, new].map(|spec| indented(&internal(tables(), id, spec)));
    diff::unified(&old, &new)
}

/// JSON with one blank for each level.
fn indented(value: &Value) -> String {
    let pretty = format!("{value:#}");
    let halved = pretty.lines().map(|line| {
        let text = line.trim_start();
        format!("{}{text}", " ".repeat((line.len() - text.len()) / 2))
    });
    halved.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(spec: &Value) -> Value {
        json!({"spec": spec})
    }

    #[test]
    fn images_change_and_networks_do_not() {
        let old = json!({"containers": [{"name": "c", "image": "a"}], "tolerations": [{"key": "k"}]});
        let image =
            json!({"containers": [{"name": "c", "image": "b"}], "tolerations": [{"key": "k"}, {"key": "l"}]});
        assert!(changed(&pod(&image), &pod(&old)).is_empty());
        let mut network = old.clone();
        network["hostNetwork"] = true.into();
        let causes = changed(&pod(&network), &pod(&old));
        let [only] = &causes[..] else { panic!("one cause: {causes:?}") };
        assert!(only.message.contains("\n+  \"HostNetwork\": true,\n"), "{}", only.message);
        let fewer = json!({"containers": []});
        assert_eq!(changed(&pod(&fewer), &pod(&old))[0].field, "spec.containers");
    }
}
