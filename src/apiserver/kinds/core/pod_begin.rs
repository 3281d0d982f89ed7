//! Prepares a new pod before validation (`PrepareForCreate` in pkg/registry/core/pod/strategy.go).

use admit_apimachinery::findings::FieldErrors;
use serde_json::{Map, Value, json};

use super::pod_status::quality;
use crate::clock::Clock;
use crate::kinds::field::Field;
use crate::kinds::shared::pod_spec::annotations::APP_ARMOR;
use crate::kinds::shared::pod_spec::security::app_armor_profile;
use crate::kinds::shared::pod_spec::warnings::APP_ARMOR_IS_A_FIELD;
use crate::object;

/// Sets the initial status, which stays until a client writes another: this server has no scheduler and no kubelet.
pub(super) fn begin(pod: &mut Value) {
    let quality = quality(pod);
    pod["status"] = json!({"phase": "Pending", "qosClass": quality});
    let is_gated =
        pod.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
    if is_gated {
        pod["status"]["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "lastProbeTime": null, "lastTransitionTime": null,
            "reason": "SchedulingGated", "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    merge_label_keys(pod);
    for (container, profile) in profiles(pod) {
        if let (Some(profile), Some(container)) = (profile.to_be_set, pod.pointer_mut(&container)) {
            object::set_field(&mut container["securityContext"], "appArmorProfile", Some(profile));
        }
    }
}

/// Sets the transition time of a new pod's conditions.
pub(super) fn stamp(pod: &mut Value, clock: &Clock) {
    let conditions = pod.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        object::set_field(condition, "lastTransitionTime", Some(clock.stamp().into()));
    }
}

/// Returns warnings about AppArmor annotations, which are deprecated in favour of a field that `begin` sets.
pub(super) fn warnings(pod: &Value) -> Vec<String> {
    let told = profiles(pod).into_iter().filter(|(_, profile)| profile.is_told);
    told.map(|(_, profile)| format!("metadata.annotations[{}]: {APP_ARMOR_IS_A_FIELD}", profile.key))
        .collect()
}

/// Adds the label keys of affinity and topology spread terms to their selectors, with the values of the pod's labels.
fn merge_label_keys(pod: &mut Value) {
    let labels = object::meta(pod, "labels").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(spec) = pod.get_mut("spec") else { return };
    let each = |list: Option<&mut Value>, part: &str, merge: &mut dyn FnMut(&mut Value)| {
        for item in list.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(term) = item.pointer_mut(part) {
                merge(term);
            }
        }
    };
    let mut merge = |term: &mut Value| {
        merge_keys(term, "matchLabelKeys", "In", &labels);
        merge_keys(term, "mismatchLabelKeys", "NotIn", &labels);
    };
    for affinity in ["podAffinity", "podAntiAffinity"] {
        let Some(terms) = spec.pointer_mut(&format!("/affinity/{affinity}")) else { continue };
        each(
            terms.get_mut("preferredDuringSchedulingIgnoredDuringExecution"),
            "/podAffinityTerm",
            &mut merge,
        );
        each(terms.get_mut("requiredDuringSchedulingIgnoredDuringExecution"), "", &mut merge);
    }
    each(spec.get_mut("topologySpreadConstraints"), "", &mut merge);
}

fn merge_keys(term: &mut Value, keys: &str, operator: &str, labels: &Map<String, Value>) {
    let keys = term.get(keys).and_then(Value::as_array).cloned().unwrap_or_default();
    // An absent selector selects nothing, so there is nothing to merge.
    let Some(Value::Object(selector)) = term.get_mut("labelSelector") else { return };
    for key in keys.iter().filter_map(Value::as_str) {
        let Some(value) = labels.get(key) else { continue };
        let requirement = json!({"key": key, "operator": operator, "values": [value]});
        match selector.entry("matchExpressions").or_insert_with(|| json!([])) {
            Value::Array(requirements) => requirements.push(requirement),
            other => *other = json!([requirement]),
        }
    }
}

/// The AppArmor profile in an annotation of a container.
struct Profile {
    key: String,
    /// Whether a warning mentions the field.
    is_told: bool,
    to_be_set: Option<Value>,
}

/// Returns the containers that have an annotation and no field, as JSON pointers.
fn profiles(pod: &Value) -> Vec<(String, Profile)> {
    let annotations = object::meta(pod, "annotations").and_then(Value::as_object);
    let (Some(annotations), false) = (annotations, pod.pointer("/spec/os/name") == Some(&"windows".into()))
    else {
        return Vec::new();
    };
    let of_pod = pod.pointer("/spec/securityContext/appArmorProfile").filter(|profile| !profile.is_null());
    let mut found = Vec::new();
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
        for (at, container) in containers.into_iter().flatten().enumerate() {
            let key = format!("{APP_ARMOR}{}", container["name"].as_str().unwrap_or_default());
            let Some(annotation) = annotations.get(&key).and_then(Value::as_str) else { continue };
            let field = container.pointer("/securityContext/appArmorProfile");
            if field.is_some_and(|profile| !profile.is_null()) {
                continue;
            }
            let meant = meant(annotation);
            let is_none = meant.is_none();
            // A profile that the pod has already is not set again.
            let to_be_set = meant.filter(|profile| Some(profile) != of_pod);
            let is_told = is_none || to_be_set.is_some();
            found.push((format!("/spec/{list}/{at}"), Profile { key, is_told, to_be_set }));
        }
    }
    found
}

/// Returns the value of the field for an annotation; None if there is none.
fn meant(annotation: &str) -> Option<Value> {
    let profile = match annotation {
        "unconfined" => json!({"type": "Unconfined"}),
        "runtime/default" => json!({"type": "RuntimeDefault"}),
        _ => {
            let name = annotation.strip_prefix("localhost/").filter(|name| !name.is_empty())?;
            json!({"type": "Localhost", "localhostProfile": name})
        }
    };
    let mut errors = FieldErrors::default();
    app_armor_profile(&Field::root(&profile), &mut errors);
    errors.is_empty().then_some(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(mut pod: Value) -> Value {
        begin(&mut pod);
        pod
    }

    #[test]
    fn gated_pods_are_not_scheduled_and_say_why() {
        let pod = begun(json!({"spec": {"schedulingGates": [{"name": "example.com/g"}], "containers": []}}));
        assert_eq!(pod["status"]["conditions"][0]["reason"], "SchedulingGated");
        let pod = begun(json!({"spec": {"schedulingGates": [], "containers": []}}));
        assert_eq!(pod["status"].get("conditions"), None);
    }

    #[test]
    fn keys_of_labels_are_merged_into_selectors() {
        let term = json!({"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone",
            "matchLabelKeys": ["rev", "gone"], "mismatchLabelKeys": ["team"]});
        let bare = json!({"topologyKey": "zone", "matchLabelKeys": ["rev"]});
        let pod = begun(json!({"metadata": {"labels": {"rev": "1", "team": "x"}}, "spec": {"containers": [],
        "topologySpreadConstraints": [{"labelSelector": {}, "matchLabelKeys": ["rev"]}, bare],
        "affinity": {"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}],
        }}}}));
        let rev = json!({"key": "rev", "operator": "In", "values": ["1"]});
        let both = json!([rev, {"key": "team", "operator": "NotIn", "values": ["x"]}]);
        let terms = &pod["spec"]["affinity"]["podAntiAffinity"];
        let required = &terms["requiredDuringSchedulingIgnoredDuringExecution"][0];
        assert_eq!(required["labelSelector"], json!({"matchLabels": {"a": "b"}, "matchExpressions": both}));
        let preferred = &terms["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"];
        assert_eq!(preferred["labelSelector"]["matchExpressions"], both);
        let spread = &pod["spec"]["topologySpreadConstraints"];
        assert_eq!(spread[0]["labelSelector"]["matchExpressions"], json!([rev]));
        assert_eq!(spread[1], bare);
    }

    #[test]
    fn annotations_of_app_armor_become_fields() {
        let annotated = |profile: &str, of_pod: Value| {
            let key = format!("{APP_ARMOR}c");
            json!({"metadata": {"annotations": {key: profile}}, "spec": {"containers": [{"name": "c"}],
                "securityContext": {"appArmorProfile": of_pod}}})
        };
        for (profile, of_pod, field, told) in [
            ("runtime/default", Value::Null, json!({"type": "RuntimeDefault"}), 1),
            ("localhost/p", Value::Null, json!({"type": "Localhost", "localhostProfile": "p"}), 1),
            ("runtime/default", json!({"type": "RuntimeDefault"}), Value::Null, 0),
            ("localhost/", Value::Null, Value::Null, 1),
            ("localhost/ p", Value::Null, Value::Null, 1),
            ("what", Value::Null, Value::Null, 1),
        ] {
            let pod = annotated(profile, of_pod);
            assert_eq!(warnings(&pod).len(), told, "{profile}");
            let pod = begun(pod);
            let set =
                pod.pointer("/spec/containers/0/securityContext/appArmorProfile").unwrap_or(&Value::Null);
            assert_eq!(*set, field, "{profile}");
        }
    }
}
