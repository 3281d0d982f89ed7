//! Role-based access from documents: what a user may do, by which binding, and which rules grant it.
//!
//! A subject may do what a rule of a role allows that a binding gives it: a ClusterRoleBinding everywhere, a RoleBinding
//! in its own namespace. Selectors of a request do not narrow what a rule allows, as in the cluster. A ClusterRole that
//! gathers others and has no rules of its own has theirs.

mod cover;
mod rule;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use crate::error::together;
use crate::host::{Access, AccessAttributes};
use crate::matching::LabelSelector;
use crate::request::UserInfo;

pub use self::cover::{Missing, missing};
pub use self::rule::Rule;

/// The group of those who may do everything, whatever the roles say.
const MASTERS: &str = "system:masters";

/// ClusterRoles may gather ClusterRoles that gather others; deeper than this is a circle.
const GATHERING_DEPTH: usize = 4;

/// Roles and bindings.
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    roles: BTreeMap<Key, Role>,
    bindings: BTreeMap<Key, Arc<Value>>,
}

/// A role, and its own rules: they are asked far more often than they change.
#[derive(Clone, Debug)]
struct Role {
    object: Arc<Value>,
    rules: Arc<[Rule]>,
}

/// Kind, namespace and name.
type Key = (String, String, String);

fn key(kind: &str, namespace: &str, name: &str) -> Key {
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

/// The rules that a user has in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    pub rules: Vec<Rule>,
    /// Roles that bindings name and that are not there.
    pub problems: Vec<String>,
}

impl AccessRules {
    /// Whether objects of this API are roles or bindings.
    #[must_use]
    pub fn speak_of(group: &str, kind: &str) -> bool {
        group == "rbac.authorization.k8s.io"
            && matches!(kind, "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding")
    }

    /// Adds a role or a binding, in place of the one of its name.
    pub fn insert(&mut self, object: Arc<Value>) {
        let kind = text(&object, "/kind");
        let namespace = if kind.starts_with("Cluster") { "" } else { text(&object, "/metadata/namespace") };
        let key = key(kind, namespace, text(&object, "/metadata/name"));
        if kind.ends_with("Binding") {
            self.bindings.insert(key, object);
        } else {
            let rules = list(&object, "rules").iter().map(Rule::read).collect();
            self.roles.insert(key, Role { object, rules });
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    /// Whether `user` may do it. The reason names the binding that allows it, or the roles that could not be asked.
    #[must_use]
    pub fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access {
        if user.groups.iter().any(|group| group == MASTERS) {
            return Access { allowed: true, reason: String::new() };
        }
        let namespace = match attributes {
            AccessAttributes::Resource { namespace, .. } => namespace.as_str(),
            AccessAttributes::Path { .. } => "",
        };
        let mut problems = Vec::new();
        for (binding, subject) in self.bound(user, namespace) {
            match self.role(binding) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Access { allowed: true, reason: reason(binding, &subject) };
                }
                Ok(_) => {}
                Err(problem) => problems.push(problem),
            }
        }
        let reason = if problems.is_empty() {
            String::new()
        } else {
            format!("RBAC: {}", together(problems.into_iter()))
        };
        Access { allowed: false, reason }
    }

    /// All rules that `user` has in `namespace`, or in the cluster where that is empty.
    #[must_use]
    pub fn granted(&self, user: &UserInfo, namespace: &str) -> Granted {
        let mut granted = Granted::default();
        for (binding, _) in self.bound(user, namespace) {
            match self.role(binding) {
                Ok(rules) => granted.rules.extend(rules.iter().cloned()),
                Err(problem) => granted.problems.push(problem),
            }
        }
        granted
    }

    /// The rules of the role that `binding` refers to.
    ///
    /// # Errors
    /// There is no such role.
    pub fn role(&self, binding: &Value) -> Result<Arc<[Rule]>, String> {
        let (kind, name) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
        let namespace = if kind == "Role" { text(binding, "/metadata/namespace") } else { "" };
        match self.roles.get(&key(kind, namespace, name)) {
            Some(role) if !role.gathers() => Ok(Arc::clone(&role.rules)),
            Some(role) => {
                let mut rules = Vec::new();
                self.gather(role, GATHERING_DEPTH, &mut HashSet::new(), &mut rules);
                Ok(rules.into())
            }
            None => {
                Err(format!("{}.rbac.authorization.k8s.io \"{name}\" not found", kind.to_ascii_lowercase()))
            }
        }
    }

    /// Adds the rules of a role that gathers others. Each role has its rules once, however many gather it.
    fn gather<'r>(
        &'r self,
        role: &'r Role,
        depth: usize,
        gathered: &mut HashSet<&'r str>,
        into: &mut Vec<Rule>,
    ) {
        let Some(deeper) = depth.checked_sub(1) else { return };
        let selectors = role.object.get("aggregationRule").map(|rule| list(rule, "clusterRoleSelectors"));
        let selectors: Vec<LabelSelector> =
            selectors.unwrap_or_default().iter().map(LabelSelector::read).collect();
        for ((kind, _, name), other) in &self.roles {
            let selected = |selector: &LabelSelector| selector.matches_labels_of(Some(&other.object));
            if kind != "ClusterRole" || !selectors.iter().any(selected) || !gathered.insert(name) {
                continue;
            }
            if other.gathers() {
                self.gather(other, deeper, gathered, into);
            } else {
                into.extend(other.rules.iter().cloned());
            }
        }
    }

    /// The bindings that give `user` something in `namespace`, those of the whole cluster first, and how each names it.
    fn bound<'r>(&'r self, user: &UserInfo, namespace: &str) -> Vec<(&'r Value, String)> {
        let reaching = |kind: &str, at: &str| {
            let from = self.bindings.range(key(kind, at, "")..);
            let here = from.take_while(|((of, namespace, _), _)| of == kind && namespace == at);
            here.filter_map(|(_, binding)| Some((&**binding, subject(binding, user)?))).collect::<Vec<_>>()
        };
        let mut bound = reaching("ClusterRoleBinding", "");
        if !namespace.is_empty() {
            bound.extend(reaching("RoleBinding", namespace));
        }
        bound
    }
}

impl Role {
    /// Whether it has the rules of others in place of its own.
    fn gathers(&self) -> bool {
        self.rules.is_empty() && self.object.get("aggregationRule").is_some()
    }
}

/// How the first subject of `binding` that is `user` is named in reasons.
fn subject(binding: &Value, user: &UserInfo) -> Option<String> {
    list(binding, "subjects").iter().find_map(|subject| {
        let (kind, name) = (text(subject, "/kind"), text(subject, "/name"));
        match kind {
            "User" if name == user.username => Some(format!("{kind} \"{name}\"")),
            "Group" if user.groups.iter().any(|group| group == name) => Some(format!("{kind} \"{name}\"")),
            "ServiceAccount" => {
                // A RoleBinding's subject without a namespace is of the binding's own.
                let own = text(binding, "/metadata/namespace");
                let namespace = Some(text(subject, "/namespace")).filter(|ns| !ns.is_empty()).unwrap_or(own);
                let account = user.username.strip_prefix("system:serviceaccount:");
                (account.and_then(|account| account.split_once(':')) == Some((namespace, name)))
                    .then(|| format!("{kind} \"{name}/{namespace}\""))
            }
            _ => None,
        }
    })
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
            let reason = "RBAC: allowed by RoleBinding \"b/a\" of Role \"r\" to ServiceAccount \"s/a\"";
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

    #[test]
    fn a_role_that_is_not_there_is_named_where_nothing_allows() {
        let mut rules = rules();
        let lost = json!({"kind": "ClusterRoleBinding", "metadata": {"name": "lost"},
            "roleRef": {"kind": "ClusterRole", "name": "gone"}, "subjects": [{"kind": "User", "name": "u"}]});
        rules.insert(Arc::new(lost));
        let path = AccessAttributes::Path { verb: "get".to_owned(), path: "/metrics".to_owned() };
        let problem = "clusterrole.rbac.authorization.k8s.io \"gone\" not found";
        let access = rules.authorize(&user("u", "h"), &path);
        assert_eq!(access, Access { allowed: false, reason: format!("RBAC: {problem}") });
        assert_eq!(rules.granted(&user("u", "g"), "").problems, [problem]);
        assert_eq!(rules.granted(&user("u", "g"), "").rules.len(), 1);
    }

    #[test]
    fn a_cluster_role_gathers_others_by_their_labels() {
        let role = |name: &str, labels: Value, rest: Value| {
            let mut role = json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": labels}});
            role.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
            Arc::new(role)
        };
        let gather = |label: &str| json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}});
        let mut rules = AccessRules::default();
        rules.insert(role("admin", json!({}), gather("to-admin")));
        rules.insert(role("edit", json!({"to-admin": "true"}), gather("to-edit")));
        let pods = json!({"rules": [{"verbs": ["create"], "apiGroups": [""], "resources": ["pods"]}]});
        rules.insert(role("pods", json!({"to-edit": "true"}), pods));
        let binding = json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "a"},
            "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": [{"kind": "User", "name": "u"}]});
        rules.insert(Arc::new(binding));
        let verbs: Vec<_> =
            rules.granted(&user("u", "h"), "a").rules.into_iter().map(|rule| rule.verbs).collect();
        assert_eq!(verbs, [["create"]]);
        assert_eq!(rules.granted(&user("u", "h"), "b"), Granted::default());
    }
}
