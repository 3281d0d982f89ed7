//! Evaluates role-based access control (RBAC) from documents: what a user may do, by which binding, and which rules grant it.
//!
//! A subject may do what a rule of a bound role allows: by a ClusterRoleBinding everywhere, by a RoleBinding in its own namespace. As
//! in the cluster, field and label selectors of a request are ignored. A ClusterRole with an aggregation rule and no rules of its own
//! has those of the roles that it selects.

mod bindings;
mod cover;
mod roles;
mod rule;

use std::sync::Arc;

use admit_apimachinery::field_error::together;
use admit_apimachinery::pointer::text;
use serde_json::Value;

use self::bindings::{Binding, Bindings};
use self::roles::Roles;
use crate::request::UserInfo;
use crate::request::host::{Access, AccessAttributes};

pub use self::cover::{Missing, missing};
pub use self::rule::Rule;

/// The group whose members may do everything, whatever the roles say.
const MASTERS: &str = "system:masters";

/// Roles and bindings, reduced to what determines access. Each can be changed separately, at a cost independent of the number of the
/// others.
///
/// ```
/// use admit_policy::rbac::AccessRules;
/// use admit_policy::{AccessAttributes, UserInfo};
/// use serde_json::json;
///
/// let mut rules = AccessRules::default();
/// rules.insert(&json!({
///     "apiVersion": "rbac.authorization.k8s.io/v1",
///     "kind": "ClusterRole",
///     "metadata": {"name": "health"},
///     "rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}],
/// }));
/// rules.insert(&json!({
///     "apiVersion": "rbac.authorization.k8s.io/v1",
///     "kind": "ClusterRoleBinding",
///     "metadata": {"name": "ann"},
///     "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "health"},
///     "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
/// }));
/// let ann = UserInfo { username: "ann".to_owned(), ..UserInfo::default() };
/// let path = |path: &str| AccessAttributes::Path { verb: "get".to_owned(), path: path.to_owned() };
/// assert!(rules.authorize(&ann, &path("/healthz")).allowed);
/// assert!(!rules.authorize(&ann, &path("/metrics")).allowed);
/// assert!(rules.effort(&ann, None) > 0);
/// assert_eq!(rules.granted(&ann, "").rules.len(), 1);
///
/// let binding = json!({"roleRef": {"kind": "ClusterRole", "name": "health"}});
/// assert!(rules.role(&binding).is_ok_and(|rules| rules.len() == 1));
/// assert!(AccessRules::speak_of("rbac.authorization.k8s.io", "Role"));
/// rules.remove("ClusterRoleBinding", "", "ann");
/// assert!(!rules.is_empty() && !rules.authorize(&ann, &path("/healthz")).allowed);
/// ```
#[derive(Clone, Debug, Default)]
pub struct AccessRules {
    roles: Roles,
    bindings: Bindings,
}

/// The rules that a user has in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Granted {
    pub rules: Vec<Rule>,
    /// Roles that bindings name and that are not there.
    pub problems: Vec<NoRole>,
}

/// A role that a binding names and that is not there, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}.rbac.authorization.k8s.io \"{name}\" not found", .kind.to_ascii_lowercase())]
pub struct NoRole {
    /// `Role` or `ClusterRole`.
    pub kind: String,
    pub name: String,
}

impl AccessRules {
    /// Whether objects of this API are roles or bindings.
    #[must_use]
    pub fn speak_of(group: &str, kind: &str) -> bool {
        group == "rbac.authorization.k8s.io"
            && matches!(kind, "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding")
    }

    /// Adds a role or a binding, in place of the one of its name.
    pub fn insert(&mut self, object: &Value) {
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        match text(object, "/kind") {
            "RoleBinding" => self.bindings.insert(namespace, name, Binding::read(object, namespace)),
            "ClusterRoleBinding" => self.bindings.insert("", name, Binding::read(object, "")),
            "Role" => self.roles.insert(namespace, name, object),
            _ => self.roles.insert("", name, object),
        }
    }

    /// Removes the role or binding with this name, if it exists. The namespace is empty for cluster-scoped ones.
    pub fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        if kind.ends_with("Binding") {
            self.bindings.remove(namespace, name);
        } else {
            self.roles.remove(namespace, name);
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.bindings.is_empty()
    }

    /// Decides whether `user` is authorized. The reason names the binding that allows it, or the roles that could not be resolved.
    #[must_use]
    pub fn authorize(&self, user: &UserInfo, attributes: &AccessAttributes) -> Access {
        if is_master(user) {
            return Access { allowed: true, reason: String::new() };
        }
        let mut problems: Vec<NoRole> = Vec::new();
        for bound in self.bindings.of(user, namespace(attributes)) {
            match self.bound_rules(bound.binding) {
                Ok(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    return Access { allowed: true, reason: bound.reason() };
                }
                Ok(_) => {}
                Err(problem) => problems.push(problem),
            }
        }
        let reason = if problems.is_empty() {
            String::new()
        } else {
            format!("RBAC: {}", together(problems.iter().map(NoRole::to_string)))
        };
        Access { allowed: false, reason }
    }

    /// Returns how many rules [`Self::authorize`] may have to evaluate for these attributes; without them, for any.
    #[must_use]
    pub fn effort(&self, user: &UserInfo, attributes: Option<&AccessAttributes>) -> usize {
        if is_master(user) {
            return 0;
        }
        let bound = match attributes {
            Some(attributes) => self.bindings.of(user, namespace(attributes)),
            None => self.bindings.anywhere(user),
        };
        bound
            .into_iter()
            .map(|bound| self.bound_rules(bound.binding).map_or(1, |rules| rules.len().max(1)))
            .sum()
    }

    /// All rules that `user` has in `namespace`, or in the cluster where that is empty.
    #[must_use]
    pub fn granted(&self, user: &UserInfo, namespace: &str) -> Granted {
        let mut granted = Granted::default();
        for bound in self.bindings.of(user, namespace) {
            match self.bound_rules(bound.binding) {
                Ok(rules) => granted.rules.extend(rules.iter().cloned()),
                Err(problem) => granted.problems.push(problem),
            }
        }
        granted
    }

    /// The rules of the role that `binding`, a RoleBinding or ClusterRoleBinding, refers to.
    ///
    /// # Errors
    /// There is no such role.
    pub fn role(&self, binding: &Value) -> Result<Arc<[Rule]>, NoRole> {
        self.bound_rules(&Binding::read(binding, text(binding, "/metadata/namespace")))
    }

    fn bound_rules(&self, binding: &Binding) -> Result<Arc<[Rule]>, NoRole> {
        let (kind, name) = (&*binding.role_kind, &*binding.role);
        let namespace = if kind == "Role" { &*binding.namespace } else { "" };
        self.roles
            .rules(namespace, name)
            .ok_or_else(|| NoRole { kind: kind.to_owned(), name: name.to_owned() })
    }
}

fn is_master(user: &UserInfo) -> bool {
    user.groups.iter().any(|group| group == MASTERS)
}

/// Returns the namespace of the access; empty for cluster-wide access, and for paths.
fn namespace(attributes: &AccessAttributes) -> &str {
    match attributes {
        AccessAttributes::Resource { namespace, .. } => namespace,
        AccessAttributes::Path { .. } => "",
    }
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
            rules.insert(&object);
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
        rules.insert(&lost);
        let path = AccessAttributes::Path { verb: "get".to_owned(), path: "/metrics".to_owned() };
        let problem = "clusterrole.rbac.authorization.k8s.io \"gone\" not found";
        let access = rules.authorize(&user("u", "h"), &path);
        assert_eq!(access, Access { allowed: false, reason: format!("RBAC: {problem}") });
        assert_eq!(
            rules.granted(&user("u", "g"), "").problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
            [problem]
        );
        assert_eq!(rules.granted(&user("u", "g"), "").rules.len(), 1);
    }

    #[test]
    fn a_cluster_role_gathers_others_by_their_labels() {
        let role = |name: &str, labels: Value, rest: Value| {
            let mut role = json!({"kind": "ClusterRole", "metadata": {"name": name, "labels": labels}});
            role.as_object_mut().expect("an object").extend(rest.as_object().cloned().unwrap_or_default());
            role
        };
        let gather = |label: &str| json!({"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}});
        let mut rules = AccessRules::default();
        rules.insert(&role("admin", json!({}), gather("to-admin")));
        rules.insert(&role("edit", json!({"to-admin": "true"}), gather("to-edit")));
        let pods = json!({"rules": [{"verbs": ["create"], "apiGroups": [""], "resources": ["pods"]}]});
        rules.insert(&role("pods", json!({"to-edit": "true"}), pods));
        let binding = json!({"kind": "RoleBinding", "metadata": {"name": "b", "namespace": "a"},
            "roleRef": {"kind": "ClusterRole", "name": "admin"}, "subjects": [{"kind": "User", "name": "u"}]});
        rules.insert(&binding);
        let verbs: Vec<_> =
            rules.granted(&user("u", "h"), "a").rules.into_iter().map(|rule| rule.verbs).collect();
        assert_eq!(verbs, [["create"]]);
        assert_eq!(rules.granted(&user("u", "h"), "b"), Granted::default());
        // Aggregated rules must not be cached beyond a change of their sources.
        let nodes = json!({"rules": [{"verbs": ["list"], "apiGroups": [""], "resources": ["nodes"]}]});
        rules.insert(&role("pods", json!({"to-edit": "true"}), nodes));
        assert_eq!(rules.granted(&user("u", "h"), "a").rules[0].verbs, ["list"]);
        rules.remove("ClusterRole", "", "pods");
        assert_eq!(rules.granted(&user("u", "h"), "a"), Granted::default());
    }

    #[test]
    fn what_is_replaced_or_removed_binds_nobody() {
        let mut rules = rules();
        let path = AccessAttributes::Path { verb: "get".to_owned(), path: "/healthz".to_owned() };
        let binding = |name: &str, group: &str| {
            json!({"kind": "ClusterRoleBinding", "metadata": {"name": name},
                "roleRef": {"kind": "ClusterRole", "name": "r"},
                "subjects": [{"kind": "User", "name": "x"}, {"kind": "Group", "name": group}]})
        };
        assert_eq!(rules.effort(&user("u", "g"), Some(&path)), 1);
        rules.insert(&binding("b", "h"));
        assert_eq!(rules.effort(&user("u", "g"), Some(&path)), 0);
        assert_eq!((rules.effort(&user("u", "h"), Some(&path)), rules.effort(&user("u", "h"), None)), (1, 1));
        rules.insert(&binding("a", "h"));
        let reason = |name: &str| {
            format!("RBAC: allowed by ClusterRoleBinding \"{name}\" of ClusterRole \"r\" to Group \"h\"")
        };
        assert_eq!(rules.authorize(&user("u", "h"), &path).reason, reason("a"), "the first by name");
        // If several subjects match the user, the first one is named.
        assert!(rules.authorize(&user("x", "h"), &path).reason.ends_with("to User \"x\""));
        rules.remove("ClusterRoleBinding", "", "a");
        assert_eq!(rules.authorize(&user("u", "h"), &path).reason, reason("b"));
        rules.remove("ClusterRoleBinding", "", "b");
        assert!(!rules.authorize(&user("u", "h"), &path).allowed);
        assert_eq!(rules.effort(&user("u", "h"), Some(&path)), 0);
    }
}
