//! Kinds with few checks: required fields, immutable fields, and fields that exclude one another.

use serde_json::Value;

use self::Fixed::{Forbidden, Immutable};
use crate::status::{Cause, Causes};

const NULL: &Value = &Value::Null;
/// The highest priority that users may give.
const HIGHEST: i64 = 1_000_000_000;

/// What can be said of a kind in a table. Paths begin at the object.
struct Rules {
    /// Kind and group.
    id: &'static str,
    /// What has to be there, and what is said of it beside `Required value`.
    required: &'static [(&'static str, &'static str)],
    /// What may not change.
    fixed: &'static [(&'static str, Fixed)],
}

/// How Kubernetes calls a change that may not be.
#[derive(Clone, Copy)]
enum Fixed {
    /// An invalid value, since the field is immutable.
    Immutable,
    /// Forbidden, with these words.
    Forbidden(&'static str),
}

const RULES: [Rules; 8] = [
    Rules {
        id: "StorageClass.storage.k8s.io",
        required: &[("provisioner", "")],
        fixed: &[
            ("parameters", Forbidden("updates to parameters are forbidden.")),
            ("provisioner", Forbidden("updates to provisioner are forbidden.")),
            ("reclaimPolicy", Forbidden("updates to reclaimPolicy are forbidden.")),
            ("volumeBindingMode", Immutable),
        ],
    },
    Rules {
        id: "VolumeAttachment.storage.k8s.io",
        required: &[("spec.attacher", ""), ("spec.nodeName", "")],
        fixed: &[("spec", Immutable)],
    },
    Rules {
        id: "CSIStorageCapacity.storage.k8s.io",
        required: &[("storageClassName", "")],
        fixed: &[("storageClassName", Immutable)],
    },
    Rules {
        id: "VolumeAttributesClass.storage.k8s.io",
        required: &[("driverName", "")],
        fixed: &[("driverName", Immutable), ("parameters", Immutable)],
    },
    Rules {
        id: "PersistentVolume.",
        required: &[("spec.capacity", ""), ("spec.accessModes", "")],
        fixed: &[],
    },
    Rules {
        id: "PersistentVolumeClaim.",
        required: &[
            ("spec.accessModes", "at least 1 access mode is required"),
            ("spec.resources.requests.storage", ""),
        ],
        fixed: &[],
    },
    Rules { id: "RuntimeClass.node.k8s.io", required: &[], fixed: &[("handler", Immutable)] },
    Rules {
        id: "PriorityClass.scheduling.k8s.io",
        required: &[],
        fixed: &[("value", Forbidden("may not be changed in an update.")), ("preemptionPolicy", Immutable)],
    },
];

/// What is wrong with an object of `kind` in `group`, which replaces `old` if there is one.
pub(super) fn check(group: &str, kind: &str, object: &Value, old: Option<&Value>) -> Causes {
    let id = format!("{kind}.{group}");
    let rules = RULES.iter().find(|rules| rules.id == id);
    let (required, fixed) = rules.map_or((&[][..], &[][..]), |rules| (rules.required, rules.fixed));
    let missing = required.iter().filter(|(path, _)| is_empty(at(object, path)));
    let mut causes: Causes = missing.map(|(path, why)| Cause::required(*path, why)).collect();
    causes.extend(own(&id, object));
    if let Some(old) = old {
        let changed = fixed.iter().filter(|(path, _)| at(object, path) != at(old, path));
        causes.extend(changed.map(|(path, fixed)| match fixed {
            Forbidden(why) => Cause::forbidden(*path, why),
            Immutable => Cause::invalid(*path, at(object, path), "field is immutable"),
        }));
    }
    causes
}

/// What the table cannot say.
fn own(id: &str, object: &Value) -> Causes {
    let spec = object.get("spec").unwrap_or(NULL);
    match id {
        "PersistentVolume." => volume(spec),
        "PriorityClass.scheduling.k8s.io" => priority_class(object),
        _ => Causes::default(),
    }
}

fn volume(spec: &Value) -> Causes {
    /// What stands beside the source.
    const OTHERS: [&str; 9] = [
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "volumeMode",
        "nodeAffinity",
        "volumeAttributesClassName",
    ];
    let members = spec.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let sources: Vec<&str> = members.filter(|name| !OTHERS.contains(name)).collect();
    match sources.as_slice() {
        [] => Causes::from(Cause::required("spec", "must specify a volume type")),
        [_] => Causes::default(),
        [_, others @ ..] => {
            let why = "may not specify more than 1 volume type";
            others.iter().map(|source| Cause::forbidden(format!("spec.{source}"), why)).collect()
        }
    }
}

fn priority_class(object: &Value) -> Causes {
    let name = crate::object::name(object);
    let value = object.get("value").and_then(Value::as_i64).unwrap_or(0);
    let mut causes = Causes::default();
    if matches!(name, "system-node-critical" | "system-cluster-critical") {
        return causes;
    }
    if name.starts_with("system-") {
        let why = format!(
            "priority class names with 'system-' prefix are reserved for system use only. error: {name} is not a known \
             system priority class"
        );
        causes.push(Cause::forbidden("metadata.name", &why));
    }
    if value > HIGHEST {
        let why = format!("maximum allowed value of a user defined priority is {HIGHEST}");
        causes.push(Cause::forbidden("value", &why));
    }
    causes
}

fn at<'v>(object: &'v Value, path: &str) -> &'v Value {
    path.split('.').try_fold(object, |value, step| value.get(step)).unwrap_or(NULL)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn texts(id: (&str, &str), object: &Value, old: Option<&Value>) -> Vec<String> {
        check(id.0, id.1, object, old).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_missing_changed_or_too_much_is_told() {
        let class = ("storage.k8s.io", "StorageClass");
        assert_eq!(texts(class, &json!({}), None), ["provisioner: Required value"]);
        let (new, old) = (json!({"provisioner": "a", "volumeBindingMode": "x"}), json!({"provisioner": "b"}));
        assert_eq!(
            texts(class, &new, Some(&old)),
            [
                "provisioner: Forbidden: updates to provisioner are forbidden.",
                "volumeBindingMode: Invalid value: \"x\": field is immutable"
            ]
        );
        let priority = json!({"metadata": {"name": "system-x"}, "value": 2_000_000_000});
        assert_eq!(
            texts(("scheduling.k8s.io", "PriorityClass"), &priority, None)[1],
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"
        );
        let volume = json!({"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}});
        let missing = texts(("", "PersistentVolume"), &volume, None);
        assert_eq!(missing, ["spec: Required value: must specify a volume type"]);
    }
}
