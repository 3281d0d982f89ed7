//! Keeps, of each policy object that a cluster stores, the newest version that compiles.
//!
//! A folder is changed by one author as a whole, but a cluster's policies have many authors. So a mistake in one of
//! them does not affect the others: its previous version stays in force, and if there was none the policy is left
//! out, as `/policies` and the metrics show. Meanwhile the API server that stores it enforces it by itself, under its
//! failure policy.

use std::collections::BTreeMap;
use std::sync::Arc;

use admit_apimachinery::pointer::text;
use admit_policy::PolicySet;
use admit_policy::manifest::{self, Document, LoadError};
use serde_json::{Value, json};

use crate::admission::Broken;

/// Kind and name; all kinds of policies and bindings are cluster-scoped.
pub(in crate::cli) type Name = (String, String);

/// Every policy and binding that the cluster stores, as last seen.
#[derive(Debug, Default)]
pub(in crate::cli) struct Stored(BTreeMap<Name, Object>);

#[derive(Debug)]
struct Object {
    /// The resourceVersion that was compiled last.
    version: String,
    /// The documents of the newest version that compiles; empty if none did.
    documents: Vec<Document>,
    /// Why a newer version does not compile.
    mistake: Option<String>,
}

impl Stored {
    /// Replaces the stored objects by `objects`; only those that have changed are compiled.
    pub(in crate::cli) fn take(&mut self, objects: &[Arc<Value>]) {
        let mut known = std::mem::take(&mut self.0);
        for object in objects {
            let name = name_of(object);
            let version = text(object, "/metadata/resourceVersion").to_owned();
            let before = known.remove(&name);
            let now = match before {
                Some(before) if before.version == version && !version.is_empty() => before,
                before => Object::newer(before, version, object),
            };
            self.0.insert(name, now);
        }
    }

    /// Returns the documents to enforce.
    pub(in crate::cli) fn documents(&self) -> impl Iterator<Item = (&Name, &[Document])> {
        self.0.iter().map(|(name, object)| (name, object.documents.as_slice()))
    }

    /// Returns the objects that do not compile, with the reason.
    pub(in crate::cli) fn broken(&self) -> Vec<Broken> {
        let broken = self.0.iter().filter_map(|((kind, name), object)| {
            let mistake = object.mistake.clone()?;
            Some(Broken {
                kind: kind.clone(),
                name: name.clone(),
                mistake,
                previous: !object.documents.is_empty(),
            })
        });
        broken.collect()
    }
}

impl Object {
    fn newer(before: Option<Self>, version: String, object: &Value) -> Self {
        match compiled(object) {
            Ok(documents) => Self { version, documents, mistake: None },
            Err(errors) => {
                let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
                let documents = before.map(|before| before.documents).unwrap_or_default();
                Self { version, documents, mistake: Some(lines.join("\n")) }
            }
        }
    }
}

/// Compiles a stored object without the fields that the server filled in, as if it was written by hand.
fn compiled(stored: &Value) -> Result<Vec<Document>, Vec<LoadError>> {
    let (kind, name) = name_of(stored);
    let plain = json!({
        "apiVersion": stored.get("apiVersion"), "kind": kind, "metadata": {"name": name}, "spec": stored.get("spec"),
    });
    let documents = manifest::read(&format!("cluster/{kind}/{name}"), &plain.to_string())?;
    PolicySet::load(&documents)?;
    Ok(documents)
}

pub(in crate::cli) fn name_of(document: &Value) -> Name {
    (text(document, "/kind").to_owned(), text(document, "/metadata/name").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(name: &str, version: &str, expression: &str) -> Arc<Value> {
        let rule = json!({
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]});
        Arc::new(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name, "resourceVersion": version, "generation": 2},
            "spec": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
        }))
    }

    fn state(stored: &Stored) -> (Vec<String>, Vec<(String, bool)>) {
        let expression =
            |document: &Document| text(&document.value, "/spec/validations/0/expression").to_owned();
        let enforced = stored.documents().flat_map(|(_, documents)| documents.iter().map(expression));
        let broken = stored.broken().into_iter().map(|broken| (broken.name, broken.previous));
        (enforced.collect(), broken.collect())
    }

    #[test]
    fn a_mistake_holds_up_its_own_object_alone() {
        let mut stored = Stored::default();
        let own = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let bad = |names: &[(&str, bool)]| {
            names.iter().map(|(name, kept)| ((*name).to_owned(), *kept)).collect::<Vec<_>>()
        };
        stored.take(&[policy("a", "1", "1 == 1"), policy("b", "1", "2 == 2")]);
        assert_eq!(state(&stored), (own(&["1 == 1", "2 == 2"]), bad(&[])));
        // One with an earlier version, one without, and a change of another.
        stored.take(&[policy("a", "2", "1 =="), policy("b", "3", "3 == 3"), policy("c", "4", "nobody")]);
        assert_eq!(state(&stored), (own(&["1 == 1", "3 == 3"]), bad(&[("a", true), ("c", false)])));
        assert!(stored.broken()[0].mistake.starts_with("cluster/ValidatingAdmissionPolicy/a:"));
        // Corrected, deleted, and unchanged.
        stored.take(&[policy("a", "5", "5 == 5"), policy("c", "4", "nobody")]);
        assert_eq!(state(&stored), (own(&["5 == 5"]), bad(&[("c", false)])));
    }
}
