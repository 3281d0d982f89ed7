//! What requests are decided by: one complete set of policies with what can be said about it, published whole.

use std::collections::HashSet;
use std::sync::Arc;

use admit_policy::manifest::Document;
use admit_policy::matching::MatchResources;
use admit_policy::{Binding, Policy, PolicySet};
use serde_json::{Value, json};

/// A complete set, and where it came from.
#[derive(Debug, Default)]
pub struct InForce {
    pub policies: Arc<PolicySet>,
    /// SHA-256 of the documents, in hexadecimal digits; empty where nobody needs to tell sets apart.
    pub hash: String,
    /// What the author of the documents should know, though they compile.
    pub warnings: Vec<String>,
    /// What would be in force as well, or in a newer version, if it compiled.
    pub broken: Vec<Broken>,
    /// The policies and bindings of files, where somebody shows them.
    pub shown: Vec<Document>,
    enforcing: HashSet<String>,
    /// Whether no policy looks at more of a Namespace than its name.
    names_suffice: bool,
}

/// A document of its own that does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub kind: String,
    pub name: String,
    /// A line, or several.
    pub mistake: String,
    /// Whether the version before it is in force.
    pub previous: bool,
}

/// The label that every Namespace has, with its own name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// Which of the policies a route asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// All, and the definitions of custom resources.
    Everything,
    /// Those that can deny, and the definitions of custom resources.
    Enforcing,
    /// Those that can only warn or audit.
    Auditing,
    /// Those that change objects.
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

    /// The same, where `broken` had to be left as it was.
    #[must_use]
    pub fn without(self, broken: Vec<Broken>) -> Self {
        Self { broken, ..self }
    }

    /// The same, of which these documents are shown.
    #[must_use]
    pub fn showing(self, shown: Vec<Document>) -> Self {
        Self { shown, ..self }
    }

    /// Whether both show the same files; where the hashes are the same, so are the documents.
    #[must_use]
    pub fn shows_as(&self, other: &Self) -> bool {
        let files = |set: &Self| -> Vec<Arc<str>> {
            set.shown.iter().map(|document| Arc::clone(&document.file)).collect()
        };
        files(self) == files(other)
    }

    /// A Namespace that is known by name only, where nobody looks at more.
    pub(super) fn namespace(&self, name: &str) -> Option<Value> {
        let named = || json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {NAME_LABEL: name}}});
        self.names_suffice.then(named)
    }

    /// Whether this policy may deny: what it finds, or that it cannot be applied.
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

    /// As a label of metrics: of a fixed number of words.
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
