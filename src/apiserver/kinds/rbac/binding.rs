//! Defines the strategies of RoleBindings and ClusterRoleBindings, whose `roleRef` is immutable.

use admit_apimachinery::findings::FieldErrors;
use admit_apimachinery::names::NameRule;
use serde_json::{Value, json};

use crate::kinds::field::Field;
use crate::kinds::{Habit, Strategy};
use crate::object;

pub(super) const ROLE_BINDING: Strategy = Strategy {
    kind: "RoleBinding",
    habits: &[Habit::CreatedByUpdate, Habit::ObjectAgain],
    name: Some(super::NAMING),
    default: Some(default),
    validate: Some(|object, errors| validate(object, &["Role", "ClusterRole"], true, errors)),
    validate_update: Some(|object, old, errors| {
        validate(object, &["Role", "ClusterRole"], true, errors);
        changed(object, old, errors);
    }),
    ..Strategy::PLAIN
};

pub(super) const CLUSTER_ROLE_BINDING: Strategy = Strategy {
    kind: "ClusterRoleBinding",
    habits: &[Habit::CreatedByUpdate, Habit::ObjectAgain],
    name: Some(super::NAMING),
    default: Some(default),
    validate: Some(|object, errors| validate(object, &["ClusterRole"], false, errors)),
    validate_update: Some(|object, old, errors| {
        validate(object, &["ClusterRole"], false, errors);
        changed(object, old, errors);
    }),
    ..Strategy::PLAIN
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Sets the API group of the role, and of users and groups; that of service accounts is the core group.
fn default(_version: &str, binding: &mut Value) {
    let set_group = |owner: &mut Value| {
        if owner.get("apiGroup").and_then(Value::as_str).is_none_or(str::is_empty) {
            object::set_field(owner, "apiGroup", Some(GROUP.into()));
        }
    };
    if let Some(role) = binding.get_mut("roleRef") {
        set_group(role);
    }
    let subjects = binding.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten();
    for subject in subjects {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            set_group(subject);
        }
    }
}

fn validate(object: &Value, kinds: &[&str], is_namespaced: bool, errors: &mut FieldErrors) {
    let binding = Field::root(object);
    let [group, kind, name] = ["apiGroup", "kind", "name"].map(|name| binding.get("roleRef").get(name));
    // The default is not stored in a reference that is absent.
    if !group.text().is_empty() && group.text() != GROUP {
        errors.add(|| group.not_supported(&[GROUP]));
    }
    if !kinds.contains(&kind.text()) {
        errors.add(|| kind.not_supported(kinds));
    }
    if name.text().is_empty() {
        errors.add(|| name.required(""));
    } else {
        name.named(NameRule::PathSegment, errors);
    }
    for subject in binding.get("subjects").items() {
        self::subject(&subject, is_namespaced, errors);
    }
}

fn subject(subject: &Field<'_>, is_namespaced: bool, errors: &mut FieldErrors) {
    let [name, kind, group, namespace] =
        ["name", "kind", "apiGroup", "namespace"].map(|name| subject.get(name));
    if name.text().is_empty() {
        errors.add(|| name.required(""));
    }
    match kind.text() {
        "ServiceAccount" => {
            if !name.text().is_empty() {
                name.named(NameRule::Subdomain, errors);
            }
            if !group.text().is_empty() {
                errors.add(|| group.not_supported(&[""]));
            }
            if !is_namespaced && namespace.text().is_empty() {
                errors.add(|| namespace.required(""));
            }
        }
        "User" | "Group" if group.text() != GROUP => errors.add(|| group.not_supported(&[GROUP])),
        "User" | "Group" => {}
        _ => errors.add(|| kind.not_supported(&["ServiceAccount", "User", "Group"])),
    }
}

fn changed(object: &Value, old: &Value, errors: &mut FieldErrors) {
    let in_go = |object| {
        let role = Field::root(object).get("roleRef");
        let group = Some(role.get("apiGroup").text()).filter(|group| !group.is_empty()).unwrap_or(GROUP);
        json!({"APIGroup": group, "Kind": role.get("kind").text(), "Name": role.get("name").text()})
    };
    let new = in_go(object);
    if new != in_go(old) {
        errors.add(|| Field::root(object).get("roleRef").invalid_as(new, "cannot change roleRef"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::tests::told;

    #[test]
    fn bindings_name_a_role_for_good() {
        let bound = |name: &str| {
            json!({"roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "User", "apiGroup": GROUP, "name": "u"}, {"kind": "Pod", "name": "p"}]})
        };
        assert_eq!(
            told(&CLUSTER_ROLE_BINDING, &bound("b"), Some(&bound("a"))),
            [
                "subjects[1].kind: Unsupported value: \"Pod\": supported values: \"ServiceAccount\", \"User\", \"Group\"",
                "roleRef: Invalid value: {\"APIGroup\":\"rbac.authorization.k8s.io\",\"Kind\":\"ClusterRole\",\
                 \"Name\":\"b\"}: cannot change roleRef"
            ]
        );
    }

    #[test]
    fn accounts_are_of_a_namespace() {
        let mut binding = json!({"roleRef": {"kind": "ClusterRole", "name": "a"}, "subjects": [
            {"kind": "ServiceAccount", "name": "A", "apiGroup": "x"}, {"kind": "Group", "name": "g"}
        ]});
        default("v1", &mut binding);
        let wrong = told(&CLUSTER_ROLE_BINDING, &binding, None);
        assert!(
            wrong[0].starts_with("subjects[0].name: Invalid value: \"A\": a lowercase RFC 1123 subdomain")
        );
        assert_eq!(
            wrong[1..],
            [
                "subjects[0].apiGroup: Unsupported value: \"x\": supported values: \"\"",
                "subjects[0].namespace: Required value"
            ]
        );
    }
}
