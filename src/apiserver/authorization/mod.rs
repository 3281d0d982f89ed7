//! Authorizes requests, and answers access reviews and CEL expressions: from stored roles and bindings
//! ([RBAC](AuthorizationMode::Rbac)), and for kubelets from the objects of their nodes ([Node](AuthorizationMode::Node)).
//!
//! | part | decides |
//! |---|---|
//! | `escalation` | who may grant what to others |
//! | `node` | what the kubelet of a node may do |
//! | this file | the order in which modes are asked, and the message of a refusal |
//!
//! Input: a user and what it wants to do. Output: whether it may, and the message if it may not. Authentication has
//! happened before.

mod escalation;
mod node;

use std::sync::{Arc, PoisonError, RwLock};

use admit_apimachinery::go;
use admit_apimachinery::status::Reason;
use admit_policy::rbac::AccessRules;
use admit_policy::{Access, AccessAttributes, UserInfo};
use serde_json::json;

use self::node::Nodes;
use crate::identity::{Identity, MASTERS, node_of};
use crate::objects::Objects;
use crate::status::Refusal;
use crate::store::{Kept, Key};

/// The storage keys of roles and bindings, and their kinds.
const STORED: [(&str, &str); 4] = [
    ("clusterroles", "ClusterRole"),
    ("clusterrolebindings", "ClusterRoleBinding"),
    ("roles", "Role"),
    ("rolebindings", "RoleBinding"),
];

/// Roles and bindings: read once as a whole, and then each one that changes.
#[derive(Debug, Default)]
pub(crate) struct Authorization {
    /// The modes, of which the first that allows decides; RBAC if there is none.
    modes: Vec<AuthorizationMode>,
    rules: RwLock<Option<Arc<AccessRules>>>,
    nodes: Nodes,
}

/// A way to authorize, as in kube-apiserver's `--authorization-mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// Allows what stored roles and bindings grant.
    #[default]
    Rbac,
    /// Allows everything to everybody.
    AlwaysAllow,
    /// Allows kubelets what their nodes need: to read what their pods use, and to maintain their own objects.
    Node,
}

/// A name that no stored role can have.
const EVERYTHING: &str = "/";

/// Returns rules that allow everything to everybody, beside the stored ones.
fn everything() -> AccessRules {
    let mut rules = AccessRules::default();
    let all = json!(["*"]);
    let metadata = json!({"name": EVERYTHING});
    rules.insert(&json!({"kind": "ClusterRole", "metadata": metadata, "rules": [
        {"apiGroups": all, "resources": all, "verbs": all}, {"nonResourceURLs": all, "verbs": all}
    ]}));
    let subject =
        |name: &str| json!({"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name});
    rules.insert(&json!({"kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": EVERYTHING},
        "subjects": [subject("system:authenticated"), subject("system:unauthenticated")]}));
    rules
}

impl Authorization {
    pub(crate) fn new(modes: Vec<AuthorizationMode>) -> Self {
        Self { modes, ..Self::default() }
    }

    /// Copies the state for another cluster; the rules are read anew unless they are `current`.
    pub(crate) fn fork(&self, current: bool) -> Self {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        Self {
            modes: self.modes.clone(),
            rules: RwLock::new(rules.clone().filter(|_| current)),
            nodes: Nodes::default(),
        }
    }

    /// Drops the rules, which are read again when needed.
    pub(crate) fn forget(&self) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.nodes.forget();
    }

    /// Updates the rules after a write or removal at this key.
    pub(crate) fn written(&self, objects: &dyn Objects, key: &Key) {
        self.nodes.written(objects, key);
        let Some((_, kind)) = STORED.iter().find(|(stored, _)| **stored == *key.resource) else { return };
        let mut known = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let Some(rules) = known.as_mut().map(Arc::make_mut) else { return };
        // Read under the lock, so that of concurrent changes the last one stays.
        match objects.latest_object(key) {
            Some(stored) => rules.insert(&stored.object),
            None => rules.remove(kind, &key.namespace, &key.name),
        }
    }

    /// Returns the rules of the stored roles and bindings.
    pub(crate) fn rules(&self, objects: &dyn Objects) -> Arc<AccessRules> {
        if let Some(rules) = &*self.rules.read().unwrap_or_else(PoisonError::into_inner) {
            return Arc::clone(rules);
        }
        // The lock is held while reading, so that a concurrent change is not overwritten by an older state.
        let mut known = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let is_open = self.modes.contains(&AuthorizationMode::AlwaysAllow);
        let mut rules = if is_open { everything() } else { AccessRules::default() };
        for (key, _) in STORED {
            let mut insert = |kept: &Kept| rules.insert(&kept.object.values());
            if let Err(error) = objects.each_object(key, None, &mut insert) {
                tracing::error!(%error, key, "roles and bindings cannot be listed");
            }
        }
        let rules = Arc::new(rules);
        *known = Some(Arc::clone(&rules));
        rules
    }

    /// Returns whether `user` may do what `attributes` describe, and why. In a review the user may be in no known group.
    pub(crate) fn access(
        &self,
        objects: &dyn Objects,
        user: &UserInfo,
        attributes: &AccessAttributes,
    ) -> Access {
        let allowed = || Access { allowed: true, reason: String::new() };
        if user.groups.iter().any(|group| group == MASTERS) {
            return allowed();
        }
        let default = [AuthorizationMode::default()];
        let modes = if self.modes.is_empty() { &default } else { self.modes.as_slice() };
        let mut reasons = Vec::new();
        for mode in modes {
            let access = match mode {
                AuthorizationMode::Rbac => self.rules(objects).authorize(user, attributes),
                AuthorizationMode::AlwaysAllow => allowed(),
                AuthorizationMode::Node => self.nodes.access(objects, user, attributes),
            };
            if access.allowed {
                return access;
            }
            reasons.extend(Some(access.reason).filter(|reason| !reason.is_empty()));
        }
        Access { allowed: false, reason: reasons.join("\n") }
    }

    /// Returns why the rules of the user cannot be listed completely; None if they can.
    pub(crate) fn untold(&self, user: &UserInfo) -> Option<&'static str> {
        let is_node = || node_of(&user.username, &user.groups).is_some();
        (self.modes.contains(&AuthorizationMode::Node) && is_node())
            .then_some("node authorizer does not support user rule resolution")
    }

    /// Estimates the number of rules to evaluate for `user`, in the namespace of a request or in all.
    pub(crate) fn effort(
        &self,
        objects: &dyn Objects,
        user: &Identity,
        attributes: Option<&AccessAttributes>,
    ) -> usize {
        if user.is_admin() { 0 } else { self.rules(objects).effort(&user.to_user(), attributes) }
    }

    /// # Errors
    /// 403 in the words that every client knows.
    pub(crate) fn authorize(
        &self,
        objects: &dyn Objects,
        user: &Identity,
        attributes: &AccessAttributes,
    ) -> Result<(), Refusal> {
        allowed(&self.access(objects, &user.to_user(), attributes), user, attributes)
    }
}

/// Turns a decision into a result.
///
/// # Errors
/// 403 with kube-apiserver's message.
pub(crate) fn allowed(
    access: &Access,
    user: &Identity,
    attributes: &AccessAttributes,
) -> Result<(), Refusal> {
    if access.allowed { Ok(()) } else { Err(refused(user, attributes, &access.reason)) }
}

/// Builds the 403 with kube-apiserver's message.
pub(crate) fn refused(user: &Identity, attributes: &AccessAttributes, reason: &str) -> Refusal {
    let user = go::quote(&user.username);
    let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    match attributes {
        AccessAttributes::Path { verb, path } => {
            let why = format!("forbidden: User {user} cannot {verb} path {}{because}", go::quote(path));
            Refusal::generic(Reason::Forbidden, why)
        }
        AccessAttributes::Resource { verb, group, resource, subresource, namespace, name, .. } => {
            let full =
                if subresource.is_empty() { resource.clone() } else { format!("{resource}/{subresource}") };
            let scope = match namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace \"{namespace}\""),
            };
            let why = format!(
                "User {user} cannot {verb} resource \"{full}\" in API group \"{group}\" {scope}{because}"
            );
            Refusal::resource_forbidden(group, resource, name, &why)
        }
    }
}

/// Builds access attributes for one resource, without selectors.
pub(crate) fn resource_access(verb: &str, group: &str, resource: &str, name: &str) -> AccessAttributes {
    AccessAttributes::Resource {
        verb: verb.to_owned(),
        group: group.to_owned(),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        subresource: String::new(),
        namespace: String::new(),
        name: name.to_owned(),
        field_selector: String::new(),
        label_selector: String::new(),
    }
}
