//! Represents the identity of a request's sender. The transport determines it (client certificate, bearer token) and puts
//! an [`Identity`] into the request's extensions; a caller in process does the same, or counts as the administrator.

use std::collections::BTreeMap;

use admit_policy::UserInfo;
use serde_json::{Map, Value, json};

/// The group whose members may do everything.
pub(crate) const MASTERS: &str = "system:masters";
const AUTHENTICATED: &str = "system:authenticated";
/// The group of nodes; the name of a node follows a prefix in its user name.
const NODES: &str = "system:nodes";
const NODE_PREFIX: &str = "system:node:";

/// Returns the node that a user is, None for other users; empty for a node without a name.
pub(crate) fn node_of<'u>(username: &'u str, groups: &[String]) -> Option<&'u str> {
    let name = username.strip_prefix(NODE_PREFIX)?;
    groups.iter().any(|group| group == NODES).then_some(name)
}

/// A user, as admission webhooks and reviews see it.
///
/// ```
/// use admit_apiserver::Identity;
///
/// let ann = Identity::new("ann", ["devs".to_owned()]);
/// assert_eq!(ann.user_info()["username"], "ann");
/// assert_eq!(ann.groups, ["devs", "system:authenticated"]);
/// assert!(Identity::admin().is_admin() && !ann.is_admin() && !Identity::anonymous().is_admin());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub username: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// Creates an authenticated user in `groups`, and in `system:authenticated`.
    #[must_use]
    pub fn new(username: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self { username: username.into(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// Returns the administrator, which a caller in process is by default.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("admin", [MASTERS.to_owned()])
    }

    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            username: "system:anonymous".to_owned(),
            uid: String::new(),
            groups: vec!["system:unauthenticated".to_owned()],
            extra: BTreeMap::new(),
        }
    }

    #[must_use]
    pub fn is_admin(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// Converts the user for authorization and policies.
    pub(crate) fn to_user(&self) -> UserInfo {
        UserInfo {
            username: self.username.clone(),
            uid: self.uid.clone(),
            groups: self.groups.clone(),
            extra: self.extra.iter().map(|(key, values)| (key.clone(), values.clone())).collect(),
        }
    }

    /// Returns the user as an `authentication.k8s.io/v1` `UserInfo`.
    #[must_use]
    pub fn user_info(&self) -> Value {
        let mut info = Map::new();
        if !self.username.is_empty() {
            info.insert("username".into(), self.username.as_str().into());
        }
        if !self.uid.is_empty() {
            info.insert("uid".into(), self.uid.as_str().into());
        }
        if !self.groups.is_empty() {
            info.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            info.insert("extra".into(), json!(self.extra));
        }
        Value::Object(info)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_known_by_their_group_and_their_name() {
        let groups = |name: &str| vec![name.to_owned()];
        for (user, group, node) in [
            ("system:node:a", "system:nodes", Some("a")),
            ("system:node:", "system:nodes", Some("")),
            ("system:node:a", "system:authenticated", None),
            ("a", "system:nodes", None),
        ] {
            assert_eq!(node_of(user, &groups(group)), node, "{user} {group}");
        }
    }
}
