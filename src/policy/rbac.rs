//! Role-based access from documents: what `authorizer` expressions are answered where no cluster is asked.
//!
//! A subject may do what a rule of a role allows that a binding gives it: a ClusterRoleBinding everywhere, a RoleBinding
//! in its own namespace. Selectors of a request do not narrow what a rule allows, as in the cluster.

use std::sync::Arc;

use serde_json::Value;

use crate::host::{Access, AccessAttributes};
use crate::request::UserInfo;

/// The group of those who may do everything, whatever the roles say.
const MASTERS: &str = "system:masters";

/// Roles and bindings.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccessRules {
    roles: Vec<Arc<Value>>,
    bindings: Vec<Arc<Value>>,
}

impl AccessRules {
    /// Whether objects of this API are roles or bindings.
    pub(crate) fn speak_of(group: &str, kind: &str) -> bool {
        group == "rbac.authorization.k8s.io"
            && matches!(kind, "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding")
    }

    pub(crate) fn insert(&mut self, object: Arc<Value>) {
        let kind = text(&object, "/kind");
        let all = if kind.ends_with("Binding") { &mut self.bindings } else { &mut self.roles };
        let key = |object: &Value| {
            ["/kind", "/metadata/namespace", "/metadata/name"].map(|pointer| text(object, pointer).to_owned())
        };
        all.retain(|known| key(known) != key(&object));
        all.push(object);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    pub(crate) fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access {
        if user.groups.iter().any(|group| group == MASTERS) {
            return Access { allowed: true, reason: String::new() };
        }
        let allowing = self.bindings.iter().find_map(|binding| {
            let subject = subject(binding, user)?;
            let allows = reaches(binding, attributes)
                && self.rules(binding).iter().any(|rule| allows(rule, attributes));
            allows.then(|| reason(binding, &subject))
        });
        Access { allowed: allowing.is_some(), reason: allowing.unwrap_or_default() }
    }

    /// The rules of the role that `binding` gives.
    fn rules(&self, binding: &Value) -> &[Value] {
        let (kind, name) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        let namespace = if kind == "Role" { text(binding, "/metadata/namespace") } else { "" };
        let role = self.roles.iter().find(|role| {
            text(role, "/kind") == kind
                && text(role, "/metadata/name") == name
                && (kind == "ClusterRole" || text(role, "/metadata/namespace") == namespace)
        });
        role.map(|role| list(role, "rules")).unwrap_or_default()
    }
}

/// How the first subject of `binding` that is `user` is named in reasons.
fn subject(binding: &Value, user: &UserInfo) -> Option<String> {
    list(binding, "subjects").iter().find_map(|subject| {
        let (kind, name) = (text(subject, "/kind"), text(subject, "/name"));
        let named = match kind {
            "User" => name == user.username,
            "Group" => user.groups.iter().any(|group| group == name),
            "ServiceAccount" => {
                // A RoleBinding's subject without a namespace is of the binding's own.
                let own = text(binding, "/metadata/namespace");
                let namespace = Some(text(subject, "/namespace")).filter(|ns| !ns.is_empty()).unwrap_or(own);
                user.username == format!("system:serviceaccount:{namespace}:{name}")
            }
            _ => false,
        };
        named.then(|| format!("{kind} \"{name}\""))
    })
}

fn reaches(binding: &Value, attributes: &AccessAttributes) -> bool {
    match (text(binding, "/kind"), attributes) {
        ("ClusterRoleBinding", _) => true,
        (_, AccessAttributes::Resource { namespace, .. }) => {
            text(binding, "/metadata/namespace") == namespace && !namespace.is_empty()
        }
        (_, AccessAttributes::Path { .. }) => false,
    }
}

fn allows(rule: &Value, attributes: &AccessAttributes) -> bool {
    let has = |key: &str, wanted: &dyn Fn(&str) -> bool| {
        list(rule, key).iter().filter_map(Value::as_str).any(|item| item == "*" || wanted(item))
    };
    match attributes {
        AccessAttributes::Path { verb, path } => {
            let matches = |pattern: &str| match pattern.strip_suffix('*') {
                Some(prefix) => path.starts_with(prefix),
                None => pattern == path,
            };
            has("verbs", &|item| item == verb) && has("nonResourceURLs", &matches)
        }
        AccessAttributes::Resource { verb, group, resource, subresource, name, .. } => {
            let of_resource = |item: &str| match item.split_once('/') {
                None => subresource.is_empty() && item == resource,
                Some((front, end)) => end == subresource && (front == "*" || front == resource),
            };
            let names = list(rule, "resourceNames");
            has("verbs", &|item| item == verb)
                && has("apiGroups", &|item| item == group)
                && has("resources", &of_resource)
                && (names.is_empty() || names.iter().any(|item| item.as_str() == Some(name)))
        }
    }
}

/// As the cluster's authorizer says it.
fn reason(binding: &Value, subject: &str) -> String {
    let (kind, name) = (text(binding, "/kind"), text(binding, "/metadata/name"));
    let shown = match text(binding, "/metadata/namespace") {
        "" => name.to_owned(),
        namespace => format!("{name}/{namespace}"),
    };
    let (role_kind, role) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
    format!("RBAC: allowed by {kind} \"{shown}\" of {role_kind} \"{role}\" to {subject}")
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rules() -> AccessRules {
        let role = |kind: &str, namespace: &str, rule: Value| json!({"kind": kind, "metadata": {"name": "r", "namespace": namespace}, "rules": [rule]});
        let binding = |kind: &str, role: &str, namespace: &str, subject: Value| {
            json!({"kind": kind, "metadata": {"name": "b", "namespace": namespace},
                   "roleRef": {"kind": role, "name": "r"}, "subjects": [subject]})
        };
        let mut rules = AccessRules::default();
        let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods", "*/log"], "resourceNames": ["p"]});
        for object in [
            role("Role", "a", pods),
            role("ClusterRole", "", json!({"verbs": ["*"], "nonResourceURLs": ["/healthz*"]})),
            binding("RoleBinding", "Role", "a", json!({"kind": "ServiceAccount", "name": "s"})),
            binding("ClusterRoleBinding", "ClusterRole", "", json!({"kind": "Group", "name": "g"})),
        ] {
            rules.insert(Arc::new(object));
        }
        rules
    }

    fn user(name: &str, group: &str) -> UserInfo {
        UserInfo { username: name.to_owned(), groups: vec![group.to_owned()], ..UserInfo::default() }
    }

    #[test]
    fn a_role_reaches_as_far_as_its_binding() {
        let account = "system:serviceaccount:a:s";
        let cases = [
            (account, "a", "pods", "", "p", true),
            (account, "a", "nodes", "log", "p", true),
            (account, "a", "pods", "exec", "p", false),
            (account, "a", "pods", "", "q", false),
            (account, "b", "pods", "", "p", false),
            ("system:serviceaccount:b:s", "a", "pods", "", "p", false),
        ];
        for (who, namespace, resource, subresource, name, allowed) in cases {
            let attributes = AccessAttributes::Resource {
                verb: "get".to_owned(),
                group: String::new(),
                version: "*".to_owned(),
                resource: resource.to_owned(),
                subresource: subresource.to_owned(),
                namespace: namespace.to_owned(),
                name: name.to_owned(),
                field_selector: String::new(),
                label_selector: String::new(),
            };
            let access = rules().authorize(&user(who, "none"), &attributes);
            assert_eq!(access.allowed, allowed, "{who} {attributes:?}");
            let reason = "RBAC: allowed by RoleBinding \"b/a\" of Role \"r\" to ServiceAccount \"s\"";
            assert_eq!(access.reason, if allowed { reason } else { "" });
        }
        for (group, path, allowed) in [
            ("g", "/healthz/ping", true),
            ("g", "/metrics", false),
            ("h", "/healthz", false),
            (MASTERS, "/x", true),
        ] {
            let attributes = AccessAttributes::Path { verb: "get".to_owned(), path: path.to_owned() };
            assert_eq!(rules().authorize(&user("u", group), &attributes).allowed, allowed, "{group} {path}");
        }
    }
}
