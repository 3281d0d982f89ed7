//! Validates one rule of an audit policy, and matches requests against it.

use std::collections::BTreeMap;

use admit_apimachinery::names;
use admit_policy::AccessAttributes;
use serde::Deserialize;
use serde_json::Value;

use super::{AuditPolicyErrorKind, Level, or_default, wrong};
use crate::identity::Identity;

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rule {
    #[serde(default, deserialize_with = "or_default")]
    level: String,
    #[serde(default, deserialize_with = "or_default")]
    users: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    user_groups: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    verbs: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<GroupResources>,
    #[serde(default, deserialize_with = "or_default")]
    namespaces: Vec<String>,
    #[serde(default, rename = "nonResourceURLs", deserialize_with = "or_default")]
    paths: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) omit_stages: Vec<String>,
    #[serde(default)]
    pub(super) omit_managed_fields: Option<bool>,
    #[serde(flatten)]
    pub(super) other: BTreeMap<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupResources {
    #[serde(default, deserialize_with = "or_default")]
    group: String,
    #[serde(default, deserialize_with = "or_default")]
    resources: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    resource_names: Vec<String>,
}

impl Rule {
    /// Validates the rule and returns its level.
    pub(super) fn check(&self, path: &str) -> Result<Level, AuditPolicyErrorKind> {
        let Some(level) = Level::ALL.into_iter().find(|level| level.name() == self.level) else {
            let known = Level::ALL.map(Level::name).join(", ");
            return Err(wrong(format!("{path}.level"), format!("{:?} is none of {known}", self.level)));
        };
        for (index, url) in self.paths.iter().enumerate().filter(|(_, url)| *url != "*") {
            let field = format!("{path}.nonResourceURLs[{index}]");
            if !url.starts_with('/') {
                return Err(wrong(field, format!("{url:?} has to begin with `/`")));
            }
            if url.strip_suffix('*').unwrap_or(url).contains('*') {
                return Err(wrong(field, format!("{url:?} may have `*` at its end only")));
            }
        }
        for (index, of) in self.resources.iter().enumerate() {
            let field = format!("{path}.resources[{index}]");
            let group = of.group.as_str();
            if !matches!(group, "" | "*") && !names::dns1123_subdomain(group).is_empty() {
                let problem = format!("{group:?} is no API group; it is written without a version");
                return Err(wrong(format!("{field}.group"), problem));
            }
            if of.resources.is_empty() && !of.resource_names.is_empty() {
                let problem = "names of objects need at least one resource";
                return Err(wrong(format!("{field}.resourceNames"), problem));
            }
        }
        let of_resources = !(self.resources.is_empty() && self.namespaces.is_empty());
        if of_resources && !self.paths.is_empty() {
            let problem = "a rule is about resources or about other paths, not both";
            return Err(wrong(format!("{path}.nonResourceURLs"), problem));
        }
        Ok(level)
    }

    pub(super) fn matches(&self, attributes: &AccessAttributes, user: Option<&Identity>) -> bool {
        let (AccessAttributes::Path { verb, .. } | AccessAttributes::Resource { verb, .. }) = attributes;
        let is_of = |groups: &[String]| groups.iter().any(|group| self.user_groups.contains(group));
        if !self.users.is_empty() && !user.is_some_and(|user| self.users.contains(&user.username))
            || !self.user_groups.is_empty() && !user.is_some_and(|user| is_of(&user.groups))
            || !self.verbs.is_empty() && !self.verbs.contains(verb)
        {
            return false;
        }
        match attributes {
            AccessAttributes::Resource { namespace, .. } => {
                self.paths.is_empty()
                    && (self.namespaces.is_empty() || self.namespaces.contains(namespace))
                    && (self.resources.is_empty() || self.resources.iter().any(|of| of.has(attributes)))
            }
            AccessAttributes::Path { path, .. } => {
                let is_meant = |url: &String| {
                    let under = url.strip_suffix('*').is_some_and(|under| path.starts_with(under));
                    under || url == path
                };
                self.namespaces.is_empty()
                    && self.resources.is_empty()
                    && (self.paths.is_empty() || self.paths.iter().any(is_meant))
            }
        }
    }
}

impl GroupResources {
    fn has(&self, attributes: &AccessAttributes) -> bool {
        let AccessAttributes::Resource { group, resource, subresource, name, .. } = attributes else {
            return false;
        };
        if self.group != "*" && self.group != *group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let is_meant = |written: &String| match written.split_once('/') {
            None => written == "*" || (subresource.is_empty() && written == resource),
            Some(("*", of_any)) if !subresource.is_empty() && of_any == subresource => true,
            // Upstream's `RESOURCE/*` includes the resource itself.
            Some((of, "*")) if of == resource => true,
            Some((of, named)) => !subresource.is_empty() && of == resource && named == subresource,
        };
        (self.resource_names.is_empty() || self.resource_names.contains(name))
            && self.resources.iter().any(is_meant)
    }
}
