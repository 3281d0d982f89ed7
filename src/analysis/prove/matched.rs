//! Which requests with objects of one kind the constraints of a policy match.

use serde_json::Value;

use super::subject::Subject;
use super::subjects::texts;

/// The requests that a policy is asked about.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Matched {
    pub(super) creates: bool,
    /// Through what objects are updated: subresources, and the object itself as an empty text.
    pub(super) updates: Vec<String>,
    /// Requests without an object of the kind, which are not followed.
    pub(super) others: Option<String>,
}

impl Matched {
    /// What the rules say that name the subject's resource.
    pub(super) fn of(policy: &Value, subject: &Subject) -> Self {
        let mut matched = Self::default();
        let rules = policy.pointer("/spec/matchConstraints/resourceRules").and_then(Value::as_array);
        for rule in rules.into_iter().flatten() {
            if !texts(rule, "apiGroups").any(|group| group == "*" || *group == *subject.kind.group) {
                continue;
            }
            for resource in texts(rule, "resources") {
                let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
                if plural == "*" || plural == subject.plural {
                    matched.add(rule, resource, subresource, subject);
                }
            }
        }
        matched.updates.sort();
        matched.updates.dedup();
        matched
    }

    fn add(&mut self, rule: &Value, resource: &str, subresource: &str, subject: &Subject) {
        let has =
            |name: &str| texts(rule, "operations").any(|operation| operation == name || operation == "*");
        match subresource {
            "" => {
                self.creates |= has("CREATE");
                let other =
                    texts(rule, "operations").find(|name| matches!(*name, "DELETE" | "CONNECT" | "*"));
                let other = other.map(|name| format!("requests of the operation {name}"));
                self.others = self.others.take().or(other);
            }
            // Nobody creates or deletes through these.
            own if subject.subresources.iter().any(|known| known == own) => {}
            _ => {
                self.others.get_or_insert_with(|| format!("requests to {resource}"));
                return;
            }
        }
        if has("UPDATE") {
            self.updates.push(subresource.to_owned());
        }
    }
}
