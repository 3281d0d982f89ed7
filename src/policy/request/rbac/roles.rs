//! Parses roles and their rules, and resolves ClusterRoles that aggregate the rules of others.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};

use admit_apimachinery::pointer::{items, text};
use admit_apimachinery::selector::LabelSelector;
use serde_json::{Value, json};

use super::rule::Rule;

/// ClusterRoles may gather ClusterRoles that gather others; deeper than this is a circle.
const GATHERING_DEPTH: usize = 4;

/// Roles, by namespace (empty for ClusterRoles) and name.
#[derive(Clone, Debug, Default)]
pub(super) struct Roles {
    by_name: BTreeMap<(String, String), Role>,
}

#[derive(Clone, Debug)]
struct Role {
    rules: Arc<[Rule]>,
    /// An object with nothing but the labels.
    labels: Arc<Value>,
    /// It has the rules of those that these select in place of its own.
    gathers: Option<Gathering>,
}

#[derive(Clone, Debug)]
struct Gathering {
    selectors: Arc<[LabelSelector]>,
    /// The cached result of aggregation: it is read far more often than roles change.
    gathered: OnceLock<Arc<[Rule]>>,
}

impl Roles {
    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn insert(&mut self, namespace: &str, name: &str, object: &Value) {
        self.by_name.insert((namespace.to_owned(), name.to_owned()), Role::read(object));
        self.forget_gathered(namespace);
    }

    pub(super) fn remove(&mut self, namespace: &str, name: &str) {
        self.by_name.remove(&(namespace.to_owned(), name.to_owned()));
        self.forget_gathered(namespace);
    }

    /// Roles of namespaces are not gathered.
    fn forget_gathered(&mut self, namespace: &str) {
        if namespace.is_empty() {
            let cluster = self.by_name.iter_mut().take_while(|((namespace, _), _)| namespace.is_empty());
            cluster.filter_map(|(_, role)| role.gathers.as_mut()).for_each(|gathering| {
                gathering.gathered.take();
            });
        }
    }

    /// Returns the rules of a role, its own or the aggregated ones; None if there is no such role.
    pub(super) fn rules(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        let role = self.by_name.get(&(namespace.to_owned(), name.to_owned()))?;
        let Some(gathering) = &role.gathers else { return Some(Arc::clone(&role.rules)) };
        let rules = gathering.gathered.get_or_init(|| {
            let mut rules = Vec::new();
            self.gather(gathering, GATHERING_DEPTH, &mut HashSet::new(), &mut rules);
            rules.into()
        });
        Some(Arc::clone(rules))
    }

    /// Adds the rules of the selected roles. Each role counts once, however many select it.
    fn gather<'r>(
        &'r self,
        gathering: &Gathering,
        depth: usize,
        gathered: &mut HashSet<&'r str>,
        into: &mut Vec<Rule>,
    ) {
        let Some(deeper) = depth.checked_sub(1) else { return };
        for ((_, name), other) in self.by_name.iter().take_while(|((namespace, _), _)| namespace.is_empty()) {
            let selected = |selector: &LabelSelector| selector.matches_labels_of(Some(&other.labels));
            if !gathering.selectors.iter().any(selected) || !gathered.insert(name) {
                continue;
            }
            match &other.gathers {
                Some(others) => self.gather(others, deeper, gathered, into),
                None => into.extend(other.rules.iter().cloned()),
            }
        }
    }
}

impl Role {
    fn read(object: &Value) -> Self {
        let rules: Arc<[Rule]> = items(object, "/rules").iter().map(Rule::read).collect();
        let aggregation = object.get("aggregationRule").filter(|_| rules.is_empty());
        let gathers = aggregation.map(|rule| Gathering {
            selectors: items(rule, "/clusterRoleSelectors").iter().map(LabelSelector::read).collect(),
            gathered: OnceLock::new(),
        });
        let labels = match text(object, "/kind") {
            "Role" => Value::Null,
            _ => json!({"metadata": {"labels": object.pointer("/metadata/labels")}}),
        };
        Self { rules, labels: labels.into(), gathers }
    }
}
