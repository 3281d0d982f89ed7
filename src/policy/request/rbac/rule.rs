//! Matches one rule of a role against a request.

use std::fmt;

use admit_apimachinery::go::quote::quote_all;
use serde_json::Value;

use crate::request::host::AccessAttributes;

/// A `PolicyRule`.
///
/// ```
/// use admit_policy::AccessAttributes;
/// use admit_policy::rbac::{Rule, missing};
/// use serde_json::json;
///
/// let health = Rule::read(&json!({"verbs": ["get"], "nonResourceURLs": ["/healthz"]}));
/// assert!(health.allows(&AccessAttributes::Path { verb: "get".to_owned(), path: "/healthz".to_owned() }));
///
/// // Who grants a rule has to have it.
/// let pods = Rule::read(&json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]}));
/// assert!(missing(&[pods.clone()], &[pods.clone()]).is_nothing());
/// let lacking = missing(&[health], &[pods]);
/// assert!(lacking.lines()[0].contains("pods"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// Parses a rule; anything but a list of strings counts as empty.
    #[must_use]
    pub fn read(rule: &Value) -> Self {
        let texts = |key: &str| -> Vec<String> {
            let items = rule.get(key).and_then(Value::as_array).into_iter().flatten();
            let mut texts: Vec<String> = items.filter_map(Value::as_str).map(str::to_owned).collect();
            // Most have one, and roles have thousands of rules.
            texts.shrink_to_fit();
            texts
        };
        Self {
            verbs: texts("verbs"),
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            resource_names: texts("resourceNames"),
            non_resource_urls: texts("nonResourceURLs"),
        }
    }

    #[must_use]
    pub fn allows(&self, attributes: &AccessAttributes) -> bool {
        match attributes {
            AccessAttributes::Path { verb, path } => {
                has(&self.verbs, verb) && self.non_resource_urls.iter().any(|url| url_fits(url, path))
            }
            AccessAttributes::Resource { verb, group, resource, subresource, name, .. } => {
                has(&self.verbs, verb)
                    && has(&self.api_groups, group)
                    && self.resources.iter().any(|item| resource_fits(item, resource, subresource))
                    && (self.resource_names.is_empty() || self.resource_names.contains(name))
            }
        }
    }
}

pub(super) fn has(own: &[String], wanted: &str) -> bool {
    own.iter().any(|item| item == "*" || item == wanted)
}

/// `pods`, `pods/log`, `*/log`, or `*` for everything.
pub(super) fn resource_fits(item: &str, resource: &str, subresource: &str) -> bool {
    match item.split_once('/') {
        None => item == "*" || (subresource.is_empty() && item == resource),
        Some((front, end)) => end == subresource && (front == "*" || front == resource),
    }
}

pub(super) fn url_fits(own: &str, path: &str) -> bool {
    match own.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => own == path,
    }
}

/// Formats the rule as refusals to grant it do.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown = fields
            .into_iter()
            .filter(|(_, items)| !items.is_empty())
            .map(|(name, items)| format!("{name}:[{}]", quote_all(items, " ")));
        write!(f, "{{{}}}", shown.collect::<Vec<_>>().join(", "))
    }
}
