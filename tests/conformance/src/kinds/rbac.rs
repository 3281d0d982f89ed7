//! Evaluates the access rules of the recordings: members of `testers` may do everything, others what roles allow.

use admit_policy::{Access, AccessAttributes, HostError, UserInfo};
use serde_json::Value;

/// Whether the roles among `documents` allow what is asked.
pub(crate) fn authorize(
    documents: &[Value],
    user: &UserInfo,
    attributes: &AccessAttributes,
) -> Result<Access, HostError> {
    let allowed = user.groups.iter().any(|group| group == "testers" || group == "system:masters")
        || documents.iter().filter(|document| binds(document, user)).any(|binding| {
            in_namespace(binding, attributes)
                && rules_of(documents, binding).iter().any(|rule| allows(rule, attributes))
        });
    Ok(Access { allowed, reason: String::new() })
}

fn binds(document: &Value, user: &UserInfo) -> bool {
    let is_binding = matches!(text(document, "kind"), "RoleBinding" | "ClusterRoleBinding");
    is_binding
        && list(document, "subjects").iter().any(|subject| match text(subject, "kind") {
            "User" => text(subject, "name") == user.username,
            "Group" => user.groups.iter().any(|group| group == text(subject, "name")),
            "ServiceAccount" => {
                user.username
                    == format!(
                        "system:serviceaccount:{}:{}",
                        text(subject, "namespace"),
                        text(subject, "name")
                    )
            }
            _ => false,
        })
}

fn in_namespace(binding: &Value, attributes: &AccessAttributes) -> bool {
    let own = binding.pointer("/metadata/namespace").and_then(Value::as_str);
    match (text(binding, "kind"), attributes) {
        ("ClusterRoleBinding", _) => true,
        (_, AccessAttributes::Resource { namespace, .. }) => own == Some(namespace),
        (_, AccessAttributes::Path { .. }) => false,
    }
}

fn rules_of<'a>(documents: &'a [Value], binding: &Value) -> &'a [Value] {
    let reference = binding.get("roleRef").unwrap_or(&Value::Null);
    let role = documents.iter().find(|document| {
        text(document, "kind") == text(reference, "kind")
            && document.pointer("/metadata/name").and_then(Value::as_str) == Some(text(reference, "name"))
    });
    role.map(|role| list(role, "rules")).unwrap_or_default()
}

fn allows(rule: &Value, attributes: &AccessAttributes) -> bool {
    let has = |key: &str, wanted: &str| {
        list(rule, key).iter().filter_map(Value::as_str).any(|item| item == "*" || item == wanted)
    };
    match attributes {
        AccessAttributes::Path { verb, path } => {
            let matches = |pattern: &str| match pattern.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => pattern == path,
            };
            has("verbs", verb) && list(rule, "nonResourceURLs").iter().filter_map(Value::as_str).any(matches)
        }
        AccessAttributes::Resource { verb, group, resource, subresource, name, .. } => {
            let full =
                if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
            let names = list(rule, "resourceNames");
            has("verbs", verb)
                && has("apiGroups", group)
                && has("resources", &full)
                && (names.is_empty() || names.iter().any(|item| item.as_str() == Some(name)))
        }
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
