//! What the shipped roles allow an account, right by right, and what of it the account has made use of.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::Value;

use super::shipped::documents;
use super::testcluster::{Asked, NAMESPACE, Process};

/// A right of a rule: one verb on one resource, of one name where the rule has names, in one namespace where the role has one.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Right {
    verb: String,
    group: String,
    resource: String,
    name: Option<String>,
    namespace: Option<String>,
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}.{}", self.verb, self.resource, self.group)?;
        if let Some(name) = &self.name {
            write!(f, " `{name}`")?;
        }
        self.namespace.iter().try_for_each(|namespace| write!(f, " in {namespace}"))
    }
}

impl Right {
    fn allows(&self, asked: &Asked) -> bool {
        let same = (&*self.verb, &self.group, &self.resource) == (asked.verb, &asked.group, &asked.resource);
        // A creation has no name yet: rules with names do not reach it.
        let named = self.name.is_none() || self.name == asked.name && asked.verb != "create";
        same && named && (self.namespace.is_none() || self.namespace == asked.namespace)
    }
}

/// What `deploy/` grants the service account, by ClusterRoles and by Roles.
fn granted(account: &str) -> BTreeSet<Right> {
    let documents = documents("deploy/rbac.yaml");
    let is_bound = |binding: &&Value| {
        let mut subjects = binding["subjects"].as_array().into_iter().flatten();
        subjects.any(|it| it["name"] == account && it["namespace"] == NAMESPACE)
    };
    let bindings = documents.iter().filter(is_bound);
    let mut rights = BTreeSet::new();
    for binding in bindings {
        let role = documents.iter().find(|it| {
            it["kind"] == binding["roleRef"]["kind"]
                && it["metadata"]["name"] == binding["roleRef"]["name"]
                && (it["kind"] == "ClusterRole"
                    || it["metadata"]["namespace"] == binding["metadata"]["namespace"])
        });
        let namespace = binding["metadata"]["namespace"].as_str().map(ToOwned::to_owned);
        for rule in role.unwrap()["rules"].as_array().unwrap() {
            rights.extend(of_rule(rule, namespace.as_ref()));
        }
    }
    rights
}

fn of_rule(rule: &Value, namespace: Option<&String>) -> Vec<Right> {
    let texts = |key: &str| -> Vec<String> { serde_json::from_value(rule[key].clone()).unwrap_or_default() };
    let names = texts("resourceNames");
    let names = if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
    let mut rights = Vec::new();
    for group in texts("apiGroups") {
        for resource in texts("resources") {
            for verb in texts("verbs") {
                rights.extend(names.iter().map(|name| Right {
                    verb: verb.clone(),
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                    namespace: namespace.cloned(),
                }));
            }
        }
    }
    rights
}

/// Everything that the account may do was done over the wires of `processes`, and nothing that it may not do was tried.
pub(crate) fn exactly(account: &str, processes: &[&Process]) {
    let granted = granted(account);
    assert!(!granted.is_empty(), "{account} has no role");
    let asked: BTreeSet<Asked> = processes.iter().flat_map(|process| process.wire.asked()).collect();
    let unused = granted.iter().filter(|right| !asked.iter().any(|asked| right.allows(asked)));
    let unused: Vec<String> = unused.map(ToString::to_string).collect();
    assert_eq!(unused, Vec::<String>::new(), "{account}: no test uses these rights");
    let missing: Vec<_> =
        asked.iter().filter(|asked| !granted.iter().any(|right| right.allows(asked))).collect();
    assert!(missing.is_empty(), "{account}: no rule has these: {missing:#?}");
    for process in processes {
        let refused: Vec<_> = process.wire.denied().into_iter().filter(|it| it.contains(": 403 ")).collect();
        assert_eq!(refused, Vec::<String>::new(), "{account}: the server refused these");
    }
}
