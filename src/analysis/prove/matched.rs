//! Determines which requests for objects of one kind a policy's match constraints select.

use serde_json::Value;

use super::subject::Subject;
use super::subjects::texts;

/// The requests that a policy matches.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Matched {
    pub(super) creates: bool,
    /// The subresources whose updates match; the empty string stands for the object itself.
    pub(super) updates: Vec<String>,
    /// Matched requests that carry no object of the kind (connect, delete); these are not modelled.
    pub(super) others: Option<String>,
}

impl Matched {
    /// Evaluates the resource rules that name the subject's resource.
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
            // Objects are not created or deleted through subresources.
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
