//! One rule of a role: what it allows, and whether rules together allow all that others do.

use std::fmt;

use serde_json::Value;

use crate::host::AccessAttributes;

/// A `PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    pub resource_names: Vec<String>,
    pub non_resource_urls: Vec<String>,
}

impl Rule {
    /// Reads a rule; what is no list of texts counts as empty.
    #[must_use]
    pub fn read(rule: &Value) -> Self {
        let texts = |key: &str| -> Vec<String> {
            let items = rule.get(key).and_then(Value::as_array).into_iter().flatten();
            items.filter_map(Value::as_str).map(str::to_owned).collect()
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

    /// The rules with one verb and one resource, name or URL each that together say the same.
    fn parts(&self) -> Vec<Self> {
        let one = |text: &str| vec![text.to_owned()];
        let mut parts = Vec::new();
        for verb in &self.verbs {
            for url in &self.non_resource_urls {
                parts.push(Self { verbs: one(verb), non_resource_urls: one(url), ..Self::default() });
            }
            for group in &self.api_groups {
                for resource in &self.resources {
                    let part = Self {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Self::default()
                    };
                    match self.resource_names.as_slice() {
                        [] => parts.push(part),
                        names => parts.extend(
                            names.iter().map(|name| Self { resource_names: one(name), ..part.clone() }),
                        ),
                    }
                }
            }
        }
        parts
    }

    /// Whether this rule allows all that `part`, a rule with one of each, allows.
    fn covers(&self, part: &Self) -> bool {
        let all = |own: &[String], wanted: &[String]| wanted.iter().all(|item| has(own, item));
        let resource = |item: &String| {
            let (resource, subresource) = item.split_once('/').unwrap_or((item, ""));
            self.resources.iter().any(|own| resource_fits(own, resource, subresource))
        };
        let url = |wanted: &String| self.non_resource_urls.iter().any(|own| url_fits(own, wanted));
        let names = self.resource_names.is_empty()
            || (!part.resource_names.is_empty()
                && part.resource_names.iter().all(|name| self.resource_names.contains(name)));
        all(&self.verbs, &part.verbs)
            && all(&self.api_groups, &part.api_groups)
            && part.resources.iter().all(resource)
            && part.non_resource_urls.iter().all(url)
            && names
    }
}

/// What of `wanted` the rules of `held` do not allow; parts of one resource are one rule again.
#[must_use]
pub fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let parts = wanted.iter().flat_map(Rule::parts);
    let uncovered = parts.filter(|part| !held.iter().any(|rule| rule.covers(part)));
    let mut merged: Vec<Rule> = Vec::new();
    for part in uncovered {
        let alike = |rule: &&mut Rule| {
            let without_verbs = |rule: &Rule| Rule { verbs: Vec::new(), ..rule.clone() };
            !part.resources.is_empty() && without_verbs(rule) == without_verbs(&part)
        };
        match merged.iter_mut().find(alike) {
            Some(rule) => rule.verbs.extend(part.verbs),
            None => merged.push(part),
        }
    }
    merged
}

fn has(own: &[String], wanted: &str) -> bool {
    own.iter().any(|item| item == "*" || item == wanted)
}

/// `pods`, `pods/log`, `*/log`, or `*` for everything.
fn resource_fits(item: &str, resource: &str, subresource: &str) -> bool {
    match item.split_once('/') {
        None => item == "*" || (subresource.is_empty() && item == resource),
        Some((front, end)) => end == subresource && (front == "*" || front == resource),
    }
}

fn url_fits(own: &str, path: &str) -> bool {
    match own.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => own == path,
    }
}

/// As refusals to grant it print the rule.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let shown = fields.into_iter().filter(|(_, items)| !items.is_empty()).map(|(name, items)| {
            let quoted: Vec<String> = items.iter().map(|item| format!("{item:?}")).collect();
            format!("{name}:[{}]", quoted.join(" "))
        });
        write!(f, "{{{}}}", shown.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_is_named_in_few_rules() {
        let held = [Rule::read(
            &json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "*/log"]}),
        )];
        let wanted = [
            Rule::read(
                &json!({"verbs": ["get", "delete", "patch"], "apiGroups": [""], "resources": ["pods"]}),
            ),
            Rule::read(
                &json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"], "resourceNames": ["a"]}),
            ),
            Rule::read(&json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]})),
        ];
        let shown: Vec<String> = missing(&held, &wanted).iter().map(ToString::to_string).collect();
        assert_eq!(
            shown,
            [
                r#"{APIGroups:[""], Resources:["pods"], Verbs:["delete" "patch"]}"#,
                r#"{NonResourceURLs:["/metrics"], Verbs:["get"]}"#
            ]
        );
        let everything = [
            Rule::read(&json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})),
            Rule::read(&json!({"verbs": ["*"], "nonResourceURLs": ["*"]})),
        ];
        assert_eq!(missing(&everything, &wanted), []);
    }
}
