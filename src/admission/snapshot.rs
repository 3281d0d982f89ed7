//! Defines the set of policies that requests are decided with; it is immutable and published as a whole.

use std::collections::HashSet;
use std::sync::Arc;

use admit_policy::manifest::Document;
use admit_policy::matching::MatchResources;
use admit_policy::{Binding, Policy, PolicySet};
use serde_json::{Value, json};

/// A complete set of policies.
#[derive(Debug, Default)]
pub struct InForce {
    pub policies: Arc<PolicySet>,
    /// The SHA-256 of the documents in hexadecimal; empty if sets need not be distinguished.
    pub hash: String,
    /// Warnings about documents that compile.
    pub warnings: Vec<String>,
    /// Documents of the cluster that do not compile, in their newest version.
    pub broken: Vec<Broken>,
    /// The policies and bindings of files, if they are shown as objects.
    pub shown: Vec<Document>,
    enforcing: HashSet<String>,
    /// Whether no policy reads more of a Namespace than its name.
    names_suffice: bool,
}

/// A document that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub kind: String,
    pub name: String,
    /// The error message, which may have several lines.
    pub mistake: String,
    /// Whether its previous version is in force.
    pub previous: bool,
}

/// The label of every Namespace with its own name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Which policies a route evaluates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// All policies, and the CRDs.
    Everything,
    /// The policies that may deny, and the CRDs.
    Enforcing,
    /// The policies that can only warn or audit.
    Auditing,
    /// The mutating policies.
    Mutating,
    One(String),
}

impl InForce {
    #[must_use]
    pub fn new(policies: Arc<PolicySet>, hash: String) -> Self {
        let enforcing = policies
            .policies()
            .filter(|(policy, bindings)| policy.may_deny(bindings))
            .map(|(policy, _)| policy.name.to_string());
        let enforcing = enforcing.collect();
        let warnings = warnings(&policies);
        let names_suffice = policies
            .policies()
            .all(|(policy, bindings)| !policy.uses_namespace() && names_suffice(policy, bindings))
            && policies.mutating_policies().all(|(policy, bindings)| {
                !policy.uses_namespace() && names_suffice(policy.common(), bindings)
            });
        Self { policies, hash, warnings, broken: Vec::new(), shown: Vec::new(), enforcing, names_suffice }
    }

    /// Returns the set with the list of documents that do not compile.
    #[must_use]
    pub fn without(self, broken: Vec<Broken>) -> Self {
        Self { broken, ..self }
    }

    /// Returns the set with documents that are shown as objects.
    #[must_use]
    pub fn showing(self, shown: Vec<Document>) -> Self {
        Self { shown, ..self }
    }

    /// Whether both show the same files; documents are equal if the hashes are.
    #[must_use]
    pub fn shows_as(&self, other: &Self) -> bool {
        let files = |set: &Self| -> Vec<Arc<str>> {
            set.shown.iter().map(|document| Arc::clone(&document.file)).collect()
        };
        files(self) == files(other)
    }

    /// Returns a Namespace that has only its name, if no policy reads more.
    pub(super) fn namespace(&self, name: &str) -> Option<Value> {
        let named = || json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {NAME_LABEL: name}}});
        self.names_suffice.then(named)
    }

    /// Whether this policy may deny: by its rules, or because it cannot be applied.
    #[must_use]
    pub fn enforces(&self, policy: &str) -> bool {
        self.enforcing.contains(policy)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.policies.policies().any(|(policy, _)| *policy.name == *name)
    }
}

impl Ask {
    pub(super) fn concerns(&self, in_force: &InForce, policy: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Enforcing => in_force.enforces(policy),
            Self::Auditing => !in_force.enforces(policy),
            Self::Mutating => false,
            Self::One(name) => name == policy,
        }
    }

    pub(super) const fn definitions(&self) -> bool {
        match self {
            Self::Everything | Self::Enforcing => true,
            Self::Auditing | Self::Mutating | Self::One(_) => false,
        }
    }

    /// Returns the value for metrics labels, one of a fixed set.
    pub(super) const fn label(&self) -> &'static str {
        match self {
            Self::Everything => "validate",
            Self::Enforcing => "enforce",
            Self::Auditing => "audit",
            Self::Mutating => "mutate",
            Self::One(_) => "policy",
        }
    }
}

fn names_suffice(policy: &Policy, bindings: &[Binding]) -> bool {
    let of_bindings = bindings.iter().filter_map(|binding| binding.match_resources.as_ref());
    let mut resources = std::iter::once(&policy.constraints).chain(of_bindings);
    let by_name =
        |resources: &MatchResources| resources.namespace_selector.keys().all(|key| key == NAME_LABEL);
    resources.all(by_name)
}

fn warnings(set: &PolicySet) -> Vec<String> {
    let unbound = set.policies().filter(|(_, bindings)| bindings.is_empty());
    let of_policies = unbound.map(|(Policy { name, .. }, _)| {
        format!("ValidatingAdmissionPolicy `{name}` has no binding and is never applied")
    });
    let unbound = set.mutating_policies().filter(|(_, bindings)| bindings.is_empty());
    let of_mutating = unbound.map(|(policy, _)| {
        format!("MutatingAdmissionPolicy `{}` has no binding and is never applied", policy.common().name)
    });
    of_policies.chain(of_mutating).collect()
}
