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
        let is = |allowed: &str, asked: &str| allowed == "*" || allowed == asked;
        let same = is(&self.verb, asked.verb)
            && is(&self.group, &asked.group)
            && is(&self.resource, &asked.resource);
        // A creation has no name yet: rules with names do not reach it.
        let named = self.name.is_none() || self.name == asked.name && asked.verb != "create";
        same && named && (self.namespace.is_none() || self.namespace == asked.namespace)
    }
}

/// A service account: namespace and name.
pub(crate) type Account = (&'static str, &'static str);

/// What `documents` grant the account, by ClusterRoles and by Roles.
fn granted(documents: &[Value], (namespace, name): Account) -> BTreeSet<Right> {
    let is_bound = |binding: &&Value| {
        let mut subjects = binding["subjects"].as_array().into_iter().flatten();
        subjects.any(|it| it["name"] == name && it["namespace"] == namespace)
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
    // What every account may ask for, such as `/version`, no process is noted to have asked for: a rule of it is superfluous.
    for resource in texts("nonResourceURLs") {
        let verbs = texts("verbs").into_iter();
        rights.extend(verbs.map(|verb| Right {
            verb,
            group: String::new(),
            resource: resource.clone(),
            name: None,
            namespace: None,
        }));
    }
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

/// Everything that the account may do by `deploy/` was done over the wires of `processes`, and nothing that it may not do was tried.
pub(crate) fn exactly(account: &'static str, processes: &[&Process]) {
    exactly_by(&documents("deploy/rbac.yaml"), (NAMESPACE, account), processes);
}

/// As [`exactly`], by the roles and bindings among `documents`.
pub(crate) fn exactly_by(documents: &[Value], account: Account, processes: &[&Process]) {
    let granted = granted(documents, account);
    let account = account.1;
    assert!(!granted.is_empty(), "{account} has no role");
    let asked: BTreeSet<Asked> = processes.iter().flat_map(|process| process.wire.asked()).collect();
    let unused = granted.iter().filter(|right| !asked.iter().any(|asked| right.allows(asked)));
    let unused: Vec<String> = unused.map(ToString::to_string).collect();
    let missing = asked.iter().filter(|asked| !granted.iter().any(|right| right.allows(asked)));
    let missing: Vec<_> = missing.collect();
    assert!(
        unused.is_empty() && missing.is_empty(),
        "{account}: no test uses {unused:#?}, and no rule has {missing:#?}"
    );
    for process in processes {
        let refused: Vec<_> = process.wire.denied().into_iter().filter(|it| it.contains(": 403 ")).collect();
        assert_eq!(refused, Vec::<String>::new(), "{account}: the server refused these");
    }
}
