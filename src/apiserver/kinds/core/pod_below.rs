//! Validates changes through pod subresources: ephemeral containers, which can only be added, and the resources of running
//! containers (`ValidatePodEphemeralContainersUpdate` and `ValidatePodResize`).

use std::collections::HashMap;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::go;
use serde_json::{Map, Value};

use super::pod_status;
use crate::kinds::field::Field;
use crate::kinds::shared::inside;
use crate::kinds::shared::pod_uses::is_mirror;
use crate::object;

const EPHEMERAL: &str = "io.k8s.api.core.v1.EphemeralContainer";
const CONTAINER: &str = "io.k8s.api.core.v1.Container";
const RESOURCES: &str = "io.k8s.api.core.v1.ResourceRequirements";
const SPEC: &str = "io.k8s.api.core.v1.PodSpec";

/// Validates a change of the ephemeral containers; the resulting pod is validated elsewhere.
pub(super) fn ephemeral_containers(pod: &Value, old: &Value, errors: &mut FieldErrors) {
    let list = Field::root(pod).get("spec").get("ephemeralContainers");
    let by_name: HashMap<&str, Field<'_>> =
        list.items().map(|container| (container.get("name").text(), container)).collect();
    for before in Field::root(old).get("spec").get("ephemeralContainers").items() {
        let name = before.get("name").text();
        let told =
            |what: &str| format!("existing ephemeral containers {} may not be {what}\n", go::quote(name));
        match by_name.get(name) {
            None => errors.add(|| list.forbidden(told("removed"))),
            Some(after) if !inside::alike(EPHEMERAL, after.value(), before.value()) => errors.add(|| {
                let [old, new] =
                    [&before, after].map(|container| inside::shown(EPHEMERAL, container.value()));
                list.forbidden(told("changed") + &inside::difference(&old, &new))
            }),
            Some(_) => {}
        }
    }
}

/// Returns an error if the pod does not support the subresource; it is then the only one reported.
pub(super) fn refused(old: &Value, resize: bool) -> Option<FieldError> {
    let why = match () {
        () if is_mirror(old) && resize => "static pods cannot be resized",
        () if is_mirror(old) => "static pods do not support ephemeral containers",
        () if resize && old.pointer("/spec/os/name").is_some_and(|name| name == "windows") => {
            "windows pods cannot be resized"
        }
        () => return None,
    };
    Some(FieldError::forbidden("", why))
}

const ONLY: &str = "only cpu and memory resources are mutable";

/// Validates a resize; the resulting pod is validated elsewhere.
pub(super) fn resize(pod: &Value, old: &Value, errors: &mut FieldErrors) {
    let (root, before) = (Field::root(pod), Field::root(old));
    let (spec, before) = (root.get("spec"), before.get("spec"));
    let found = errors.count();
    if pod_status::known_quality(old) != pod_status::quality(pod) {
        let quality = root.get("status").get("qosClass").text();
        errors.add(|| spec.invalid_as(quality, "Pod QOS Class may not change as a result of resizing"));
    }
    if !is_supported(old) {
        errors.add(|| spec.forbidden("Pod running on node without support for resize"));
    }
    let mut masked = spec.value().clone();
    if [&spec, &before].into_iter().any(has_resources) {
        of_pod(&spec, &before, &mut masked, errors);
    }
    let ordered = errors.count();
    LISTS.iter().for_each(|list| order(&spec.get(list), &before.get(list), list, errors));
    if errors.count() != ordered {
        return;
    }
    for list in ["initContainers", "containers"] {
        for (after, before) in spec.get(list).items().zip(before.get(list).items()) {
            let removed = ["resource requests cannot be removed", "resource limits cannot be removed"];
            kept(&after.get("resources"), &before.get("resources"), removed, errors);
        }
    }
    for list in LISTS {
        for (at, before) in before.get(list).items().enumerate() {
            let pointer = format!("/{list}/{at}");
            let Some(container) = masked.pointer_mut(&pointer) else { continue };
            let changed = !inside::alike(CONTAINER, container, before.value());
            object::set_field(container, "resources", Some(but_for_cpu(container.get("resources"), &before)));
            let after = spec.get(list).index(at);
            if !inside::alike(CONTAINER, container, before.value()) {
                errors.add(|| match list {
                    "initContainers" => after.forbidden(
                        "only cpu and memory resources for init or sidecar containers are mutable",
                    ),
                    _ => spec.forbidden(ONLY),
                });
            }
            if list == "initContainers" && changed && after.get("restartPolicy").text() != "Always" {
                for _ in after.get("resizePolicy").items().filter(restarts) {
                    errors.add(|| {
                        after.forbidden(
                            "non-sidecar init containers with a resize policy of RestartContainer cannot be resized",
                        )
                    });
                }
            }
        }
    }
    if errors.count() == found && !inside::alike(SPEC, &masked, before.value()) {
        errors.add(|| spec.forbidden(ONLY));
    }
}

const LISTS: [&str; 2] = ["containers", "initContainers"];

fn restarts(policy: &Field<'_>) -> bool {
    policy.get("restartPolicy").text() == "RestartContainer"
}

/// Whether the node supports resizing, which it shows by resources in the status of a running container.
fn is_supported(pod: &Value) -> bool {
    let status = Field::root(pod).get("status");
    let running =
        status.get("containerStatuses").items().find(|one| one.get("state").get("running").is_set());
    running.is_none_or(|one| one.get("resources").is_set())
}

fn has_resources(spec: &Field<'_>) -> bool {
    SIDES.iter().any(|side| !spec.get("resources").get(side).is_empty())
}

const SIDES: [&str; 2] = ["requests", "limits"];

/// Validates pod-level resources, and resets what may change of them in `masked`.
fn of_pod(spec: &Field<'_>, before: &Field<'_>, masked: &mut Value, errors: &mut FieldErrors) {
    let (own, old) = (spec.get("resources"), before.get("resources"));
    if old.is_set() && !own.is_set() {
        return errors.add(|| own.forbidden("pod-level resources cannot be removed"));
    }
    if old.is_set() {
        let removed =
            ["pod-level resource requests cannot be removed", "pod-level resource limits cannot be removed"];
        kept(&own, &old, removed, errors);
    }
    let mut rest = but_for_cpu(Some(own.value()), before);
    object::set_field(&mut rest, "claims", own.value().get("claims").cloned());
    let nothing = !old.is_set() && inside::alike(RESOURCES, &rest, &Value::Null);
    object::set_field(masked, "resources", Some(rest).filter(|_| !nothing));
    let changed = masked.get("resources").unwrap_or(&Value::Null);
    if !inside::alike(RESOURCES, changed, old.value()) {
        errors.add(|| spec.forbidden(format!("{ONLY} at pod-level")));
    }
}

/// Requests and limits may not be removed; their amounts are not checked.
fn kept(new: &Field<'_>, old: &Field<'_>, told: [&str; 2], errors: &mut FieldErrors) {
    for (side, told) in SIDES.into_iter().zip(told) {
        let (new, old) = (new.get(side), old.get(side));
        if old.entries().any(|(name, _)| !new.key(name).is_set()) {
            errors.add(|| new.forbidden(told));
        }
    }
}

fn order(new: &Field<'_>, old: &Field<'_>, list: &str, errors: &mut FieldErrors) {
    if new.len() != old.len() {
        return errors.add(|| new.forbidden(format!("{list} may not be added or removed on resize")));
    }
    for name in new.items().zip(old.items()).filter_map(|(new, old)| {
        let name = new.get("name");
        (name.text() != old.get("name").text()).then_some(name)
    }) {
        errors.add(|| name.forbidden(format!("{list} may not be renamed or reordered on resize")));
    }
}

/// Returns the requests and limits with CPU and memory of the old object.
fn but_for_cpu(resources: Option<&Value>, old: &Field<'_>) -> Value {
    let mut made = Map::new();
    for side in SIDES {
        let mut amounts = resources.and_then(|own| own.get(side)?.as_object()).cloned().unwrap_or_default();
        for name in ["cpu", "memory"] {
            amounts.shift_remove(name);
            if let Some(before) = old.get("resources").get(side).value().get(name) {
                amounts.insert(name.to_owned(), before.clone());
            }
        }
        if !amounts.is_empty() {
            made.insert(side.to_owned(), Value::Object(amounts));
        }
    }
    Value::Object(made)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(containers: &Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"containers": containers}})
    }

    fn sized(cpu: &str, rest: &Value) -> Value {
        let mut container = json!({"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}});
        for (name, value) in rest.as_object().into_iter().flatten() {
            container[name] = value.clone();
        }
        json!([container])
    }

    fn resized(new: &Value, old: &Value) -> Vec<String> {
        let mut errors = FieldErrors::default();
        resize(new, old, &mut errors);
        errors.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn processors_and_memory_change_and_nothing_else() {
        let old = pod(&sized("1", &json!({})));
        assert_eq!(resized(&pod(&sized("2", &json!({}))), &old), Vec::<String>::new());
        assert_eq!(
            resized(&pod(&sized("1", &json!({"resizePolicy": [{}]}))), &old),
            [format!("spec: Forbidden: {ONLY}")]
        );
        let mut fewer = pod(&sized("1", &json!({})));
        fewer["spec"]["containers"][0]["resources"]["requests"] = json!({"cpu": "1"});
        assert_eq!(
            resized(&fewer, &old),
            ["spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"]
        );
        let none = pod(&json!([{"name": "c"}]));
        assert_eq!(
            resized(&none, &old)[0],
            "spec: Invalid value: \"\": Pod QOS Class may not change as a result of resizing"
        );
        let other = pod(&sized("1", &json!({"name": "d"})));
        assert_eq!(
            resized(&other, &old),
            ["spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"]
        );
    }

    #[test]
    fn containers_for_debugging_stay() {
        let pod = |list: &Value| json!({"spec": {"ephemeralContainers": list}});
        let old = pod(&json!([{"name": "a", "image": "i"}]));
        let told = |new: &Value| {
            let mut errors = FieldErrors::default();
            ephemeral_containers(new, &old, &mut errors);
            errors.into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            told(&pod(&json!([{"name": "a", "image": "i", "args": []}, {"name": "b"}]))),
            Vec::<String>::new()
        );
        assert_eq!(
            told(&pod(&json!([]))),
            ["spec.ephemeralContainers: Forbidden: existing ephemeral containers \"a\" may not be removed\n"]
        );
        let changed = told(&pod(&json!([{"name": "a", "image": "j"}])));
        assert!(changed[0].contains("\"a\" may not be changed\n@@ "), "{changed:?}");
        assert!(changed[0].contains("\n- \"Image\": \"i\",\n+ \"Image\": \"j\",\n"), "{changed:?}");
    }
}
