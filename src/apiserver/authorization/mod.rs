//! RBAC authorization: evaluates the roles and bindings in the store for requests, access reviews and CEL
//! expressions.
//!
//! Input: a user and what it wants to do. Output: whether it may, and the message if it may not. Authentication has
//! happened before.

mod escalation;

use std::sync::{Arc, PoisonError, RwLock};

use admit_apimachinery::go;
use admit_apimachinery::status::Reason;
use admit_policy::rbac::AccessRules;
use admit_policy::{Access, AccessAttributes};
use serde_json::json;

use crate::identity::Identity;
use crate::objects::Objects;
use crate::status::Refusal;
use crate::store::{Kept, Key};

/// Where roles and bindings lie in the store, and their kinds.
const STORED: [(&str, &str); 4] = [
    ("clusterroles", "ClusterRole"),
    ("clusterrolebindings", "ClusterRoleBinding"),
    ("roles", "Role"),
    ("rolebindings", "RoleBinding"),
];

/// Roles and bindings: read once as a whole, and then each one that changes.
#[derive(Debug, Default)]
pub(crate) struct Authorization {
    mode: AuthorizationMode,
    rules: RwLock<Option<Arc<AccessRules>>>,
}

/// Who decides what a user may do, as `--authorization-mode` of kube-apiserver says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorizationMode {
    /// The roles and bindings that are stored.
    #[default]
    Rbac,
    /// Everybody may do everything.
    AlwaysAllow,
}

/// No role of a user's can have this name.
const EVERYTHING: &str = "/";

impl AuthorizationMode {
    /// The rules that hold beside those that are stored.
    fn rules(self) -> AccessRules {
        let mut rules = AccessRules::default();
        if self == Self::AlwaysAllow {
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
        }
        rules
    }
}

impl Authorization {
    pub(crate) fn new(mode: AuthorizationMode) -> Self {
        Self { mode, rules: RwLock::default() }
    }

    /// The same for another cluster, whose rules are read anew unless these are `current`.
    pub(crate) fn fork(&self, current: bool) -> Self {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        Self { mode: self.mode, rules: RwLock::new(rules.clone().filter(|_| current)) }
    }

    /// Has the rules read anew.
    pub(crate) fn forget(&self) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Updates the rules after a write or removal at this key.
    pub(crate) fn written(&self, objects: &dyn Objects, key: &Key) {
        let Some((_, kind)) = STORED.iter().find(|(stored, _)| **stored == *key.resource) else { return };
        let mut known = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let Some(rules) = known.as_mut().map(Arc::make_mut) else { return };
        // Looked up while this is held: of several changes the last one is what stays.
        match objects.latest_object(key) {
            Some(stored) => rules.insert(&stored.object),
            None => rules.remove(kind, &key.namespace, &key.name),
        }
    }

    /// The roles and bindings that are stored now.
    pub(crate) fn rules(&self, objects: &dyn Objects) -> Arc<AccessRules> {
        if let Some(rules) = &*self.rules.read().unwrap_or_else(PoisonError::into_inner) {
            return Arc::clone(rules);
        }
        // Held while reading, so that a change in between is not overwritten by what it replaced.
        let mut known = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let mut rules = self.mode.rules();
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

    /// Whether `user` may do it, and why. A review may ask about a user of no group that a binding names.
    pub(crate) fn access(
        &self,
        objects: &dyn Objects,
        user: &Identity,
        attributes: &AccessAttributes,
    ) -> Access {
        match self.mode {
            AuthorizationMode::Rbac => self.rules(objects).authorize(&user.to_user(), attributes),
            AuthorizationMode::AlwaysAllow => Access { allowed: true, reason: String::new() },
        }
    }

    /// How many rules an answer about `user` may have to look at: in the namespace of a request, or in all of them.
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
        allowed(&self.access(objects, user, attributes), user, attributes)
    }
}

/// What comes of an answer.
///
/// # Errors
/// 403 in the words that every client knows.
pub(crate) fn allowed(
    access: &Access,
    user: &Identity,
    attributes: &AccessAttributes,
) -> Result<(), Refusal> {
    if access.allowed { Ok(()) } else { Err(refused(user, attributes, &access.reason)) }
}

/// The refusal of what `user` may not do.
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

/// A question about one resource, without selectors.
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
