//! The compiled set of all policies, and the entry point that decides a request.

pub(crate) mod builtins;
pub(crate) mod documents;
mod index;
pub(crate) mod known;
pub(crate) mod load;
mod mutating;
mod strict;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::suggest::{self, did_you_mean};
use admit_cel::PatternSum;
use serde_json::Value;
use thiserror::Error;

use crate::crd::{CompiledCrd, Converts};
use crate::deadline::{Deadline, Interrupted};
use crate::matching::{self, Matched};
use crate::report::decision::Decision;
use crate::report::options::EvalOptions;
use crate::report::recording::Recording;
use crate::request::host::Host;
use crate::request::rbac::AccessRules;
use crate::request::{GroupVersionKind, Request};
use crate::set::builtins::Builtins;
use crate::set::documents::Documents;
use crate::set::index::{Candidate, Certainty, PolicyIndex};
use crate::set::mutating::Mutating;
use crate::vap::{self, Binding, Missed, MutatingPolicy, Policy};
use crate::webhook::{Configuration, Kind};

/// Compiled policies with their bindings, and the documents that they were loaded with. Compiled once and shared.
///
/// [The whole way](crate) from a manifest to a decision, and what else there is:
///
/// ```
/// use std::cell::Cell;
///
/// use admit_policy::{EvalOptions, GroupVersionKind, Keep, LoadOptions, PolicySet, Recording, Request, manifest};
/// use serde_json::json;
///
/// let text = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: labelled}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
///   validations: [{expression: has(object.metadata.labels), message: no labels}]
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: labelled}
/// spec: {policyName: labelled, validationActions: [Deny]}
/// ";
/// let documents = manifest::read("policy.yaml", text).unwrap();
/// let set = PolicySet::load(&documents).unwrap();
/// assert_eq!(set.policies().map(|(policy, bindings)| (&*policy.name, bindings.len())).collect::<Vec<_>>(), [("labelled", 1)]);
/// assert!(set.looks_up(&GroupVersionKind::new("", "v1", "Namespace")));
///
/// let mut request = json!({
///     "kind": {"group": "", "version": "v1", "kind": "Pod"},
///     "resource": {"group": "", "version": "v1", "resource": "pods"},
///     "operation": "CREATE",
///     "namespace": "shop",
///     "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}},
/// });
/// let pod = Request::from_value(&request)?;
/// let host = set.documents();
/// assert!(!set.decide(&pod, host).allowed());
/// assert!(set.decide_only(&pod, host, |policy| policy != "labelled").allowed());
///
/// // What the expressions did, and what they cost.
/// let (recording, spent) = (Recording::new(Keep::TRACES), Cell::new(0));
/// set.decide_recorded(&pod, host, |_| true, &recording);
/// assert_eq!(recording.finish().len(), 1);
/// let options = EvalOptions { spent: Some(&spent), ..EvalOptions::default() };
/// set.decide_with(&pod, host, |_| true, options);
/// assert!(spent.get() > 0);
///
/// request["operation"] = "DELETE".into();
/// let missed = set.missed(&Request::from_value(&request)?, host, |_| true);
/// assert_eq!(missed[0].field, "spec.matchConstraints.resourceRules[0]");
///
/// // Objects that no policy asks for are mistakes, unless they are passed over.
/// let files = [("pod.yaml", "{apiVersion: v1, kind: Pod, metadata: {name: a}}")];
/// assert!(PolicySet::load_files(files, LoadOptions::default()).is_err());
/// let passed_over = LoadOptions { ignore_unknown: true };
/// assert!(PolicySet::load_with(&manifest::read("pod.yaml", files[0].1).unwrap(), passed_over).is_ok());
///
/// // Sets that others made, and stand-ins for what only a cluster has.
/// let set = PolicySet::new(Vec::new(), Vec::new()).converting(|_, _, _, _| None);
/// assert_eq!(set.policies().count(), 0);
/// # Ok::<(), admit_policy::ReviewError>(())
/// ```
#[derive(Debug, Default)]
pub struct PolicySet {
    /// In order of name.
    policies: Vec<BoundPolicy>,
    index: PolicyIndex,
    mutating: Mutating,
    documents: Documents,
}

/// Builds a [`PolicySet`] from documents, one by one.
///
/// ```
/// use admit_policy::{GroupVersionKind, PolicySet};
/// use serde_json::json;
///
/// let mut builder = PolicySet::builder();
/// let number = builder.add(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})).unwrap();
/// assert!(!builder.is_of_use(&GroupVersionKind::new("", "v1", "Pod")));
/// assert_eq!(builder.unused().map(|(unused, _)| unused).collect::<Vec<_>>(), [number]);
/// assert_eq!(builder.finish().policies().count(), 0);
/// ```
#[derive(Debug, Default)]
pub struct PolicySetBuilder {
    policies: Vec<Policy>,
    bindings: Vec<Binding>,
    mutating: Vec<MutatingPolicy>,
    mutating_bindings: Vec<Binding>,
    documents: Documents,
    /// Group and kind of the params of the policies.
    param_kinds: HashSet<(String, String)>,
    /// Those of all policies, which take memory together.
    patterns: PatternSum,
    /// Kinds of objects that were added without being known to be of use.
    others: Vec<(usize, GroupVersionKind)>,
    /// Kind and name of what was added, to find what is there twice.
    seen: HashSet<(GroupVersionKind, String, String)>,
    added: usize,
}

/// Why a document is refused.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum LoadErrorKind {
    #[error("{0}")]
    Field(FieldError),
    #[error("must have `apiVersion` and `kind`")]
    NoKind,
    #[error("{0}: this version is not read, only {1}")]
    Version(String, &'static str),
    #[error("{0}: unknown field")]
    UnknownField(String),
    #[error("{0}: no policy uses objects of this kind as params")]
    UnknownKind(String),
    #[error("{0}: there is no such kind{1}")]
    NoSuchKind(String, String),
    #[error("{0}: there is already one of this name")]
    Duplicate(String),
}

#[derive(Debug)]
struct BoundPolicy {
    policy: Policy,
    /// In order of name.
    bindings: Vec<Binding>,
}

impl PolicySet {
    /// A set of `policies`, each with those of `bindings` that name it. Bindings that name no policy have no effect.
    pub fn new(mut policies: Vec<Policy>, mut bindings: Vec<Binding>) -> Self {
        policies.sort_by(|a, b| a.name.cmp(&b.name));
        bindings.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_policy: HashMap<String, Vec<Binding>> = HashMap::new();
        for binding in bindings {
            by_policy.entry(binding.policy_name.clone()).or_default().push(binding);
        }
        let policies: Vec<BoundPolicy> = policies
            .into_iter()
            .map(|policy| BoundPolicy {
                bindings: by_policy.remove(&*policy.name).unwrap_or_default(),
                policy,
            })
            .collect();
        // A policy that nothing binds decides nothing.
        let in_force = |bound: &BoundPolicy| !bound.bindings.is_empty();
        let index = PolicyIndex::of(policies.iter().map(|bound| in_force(bound).then_some(&bound.policy)));
        Self { policies, index, mutating: Mutating::default(), documents: Documents::default() }
    }

    /// A set to be filled document by document, as [`PolicySetBuilder`] shows.
    pub fn builder() -> PolicySetBuilder {
        PolicySetBuilder::default()
    }

    /// Sets the converters that stand in for conversion webhooks, where requests are decided without a cluster.
    #[must_use]
    pub fn converting(mut self, converts: Converts) -> Self {
        self.documents.set_converts(converts);
        self
    }

    /// Sets the defaults and checks of built-in kinds, which are applied to their objects in test suites. [`Builtins`] has an
    /// example.
    #[must_use]
    pub fn knowing(mut self, builtins: &'static dyn Builtins) -> Self {
        self.documents.set_builtins(builtins);
        self
    }

    /// The Namespaces, params and CRDs that were loaded, which also serve as a [`Host`].
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Decides `request`, however long it takes. What the surroundings could not answer is an error of the policies that
    /// asked, for their failurePolicy to decide on.
    pub fn decide(&self, request: &Request<'_>, host: &dyn Host) -> Decision {
        self.decide_only(request, host, |_| true)
    }

    /// Decides `request` by the policies that `accept` names alone.
    pub fn decide_only(
        &self,
        request: &Request<'_>,
        host: &dyn Host,
        accept: impl Fn(&str) -> bool,
    ) -> Decision {
        self.decide_with(request, host, accept, EvalOptions::default())
    }

    /// Like [`Self::decide`], and adds every evaluation to `recording`.
    pub fn decide_recorded(
        &self,
        request: &Request<'_>,
        host: &dyn Host,
        accept: impl Fn(&str) -> bool,
        recording: &Recording,
    ) -> Decision {
        self.decide_with(request, host, accept, EvalOptions::from(Some(recording)))
    }

    /// Like [`Self::decide`], with the caller's hooks.
    pub fn decide_with(
        &self,
        request: &Request<'_>,
        host: &dyn Host,
        accept: impl Fn(&str) -> bool,
        eval: EvalOptions<'_>,
    ) -> Decision {
        if matching::is_exempt(&request.kind) {
            return Decision::default();
        }
        let workspace = vap::Workspace::default();
        let candidates = self.index.candidates(request, host);
        let collector = vap::Collector::new(request, host, &workspace).with_options(eval);
        let mut collector = collector.expect(candidates.len());
        let overdue = || eval.deadline.is_some_and(Deadline::has_passed);
        for Candidate { position, certainty } in candidates {
            let Some(bound) = self.policies.get(position).filter(|bound| accept(&bound.policy.name)) else {
                continue;
            };
            let matched = match certainty {
                Certainty::Matches => Ok(Some(Matched::as_it_is(request))),
                Certainty::Open if overdue() => Err(Interrupted.into()),
                Certainty::Open => bound.policy.constraints.matches(request, host),
            };
            vap::decide(&bound.policy, &bound.bindings, matched, &mut collector);
        }
        collector.finish()
    }

    /// Why policies that `accept` names were not asked about `request`, in order of name.
    pub fn missed(
        &self,
        request: &Request<'_>,
        host: &dyn Host,
        accept: impl Fn(&str) -> bool,
    ) -> Vec<Missed> {
        let asked = self.policies().filter(|(policy, _)| accept(&policy.name));
        if matching::is_exempt(&request.kind) {
            let exempt = |(policy, _): (&Policy, _)| Missed {
                policy: policy.name.to_string(),
                binding: None,
                field: String::new(),
                reason: "configuration of admission is subject to no policy".to_owned(),
            };
            return asked.map(exempt).collect();
        }
        asked.flat_map(|(policy, bindings)| vap::missed(policy, bindings, request, host)).collect()
    }

    /// Whether decisions ask for other objects of `kind`: Namespaces, roles and their bindings, and params, in whatever version.
    #[must_use]
    pub fn looks_up(&self, kind: &GroupVersionKind) -> bool {
        let is_param = |policy: &Policy| {
            let params = policy.param_kind.as_ref();
            params.is_some_and(|params| (&params.group, &params.kind) == (&kind.group, &kind.kind))
        };
        is_of_any_set(kind)
            || self.policies().any(|(policy, _)| is_param(policy))
            || self.mutating_policies().any(|(policy, _)| is_param(policy.common()))
    }

    /// The policies, in order of name, each with its bindings.
    pub fn policies(&self) -> impl Iterator<Item = (&Policy, &[Binding])> {
        self.policies.iter().map(|bound| (&bound.policy, bound.bindings.as_slice()))
    }
}

impl PolicySetBuilder {
    /// Adds one document and returns its number, by which [`Self::unused`] refers to it.
    ///
    /// # Errors
    /// Everything that is wrong with the document.
    pub fn add(&mut self, document: &Value) -> Result<usize, Vec<LoadErrorKind>> {
        let number = self.added;
        self.added = self.added.saturating_add(1);
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind_name) = (text("/apiVersion"), text("/kind"));
        if api_version.is_empty() || kind_name.is_empty() {
            return Err(vec![LoadErrorKind::NoKind]);
        }
        let kind = GroupVersionKind::from_api_version(api_version, kind_name);
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        read_version(&kind)?;
        let seen = (
            GroupVersionKind { version: String::new(), ..kind.clone() },
            namespace.to_owned(),
            name.to_owned(),
        );
        if !self.seen.insert(seen) {
            return Err(vec![LoadErrorKind::Duplicate(format!("{kind_name} {name}"))]);
        }
        match (kind.group.as_str(), kind_name) {
            ("admissionregistration.k8s.io", _) => self.add_admission(kind_name, document)?,
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                self.documents.insert_crd(Arc::new(CompiledCrd::compile(document).map_err(fields)?));
            }
            ("", "Namespace") => self.documents.insert(Arc::new(document.clone())),
            (group, kind) if AccessRules::speak_of(group, kind) => {
                self.documents.insert(Arc::new(document.clone()));
            }
            _ => {
                self.others.push((number, kind));
                self.documents.insert(Arc::new(document.clone()));
            }
        }
        Ok(number)
    }

    /// Configuration of admission. That of webhooks has to be right, and has no part in decisions.
    fn add_admission(&mut self, kind: &str, document: &Value) -> Result<(), Vec<LoadErrorKind>> {
        match kind {
            "ValidatingAdmissionPolicy" => {
                let policy = Policy::compile_among(document, &mut self.patterns).map_err(fields)?;
                self.param_kinds
                    .extend(policy.param_kind.iter().map(|kind| (kind.group.clone(), kind.kind.clone())));
                self.policies.push(policy);
            }
            "ValidatingAdmissionPolicyBinding" => {
                self.bindings.push(Binding::compile(document).map_err(fields)?);
            }
            "ValidatingWebhookConfiguration" => {
                Configuration::compile(Kind::Validating, document).map_err(fields)?;
            }
            "MutatingWebhookConfiguration" => {
                Configuration::compile(Kind::Mutating, document).map_err(fields)?;
            }
            "MutatingAdmissionPolicy" => {
                let policy = MutatingPolicy::compile_among(document, &mut self.patterns).map_err(fields)?;
                let params = policy.common().param_kind.iter();
                self.param_kinds.extend(params.map(|kind| (kind.group.clone(), kind.kind.clone())));
                self.mutating.push(policy);
            }
            "MutatingAdmissionPolicyBinding" => {
                self.mutating_bindings.push(Binding::compile_mutating(document).map_err(fields)?);
            }
            other => {
                let unknown = format!("admissionregistration.k8s.io {other}");
                let meant = suggest::nearest(other, KINDS_OF_ADMISSION);
                let meant = meant.map(|kind| format!("; {}", did_you_mean(Some(kind)))).unwrap_or_default();
                return Err(vec![LoadErrorKind::NoSuchKind(unknown, meant)]);
            }
        }
        Ok(())
    }

    /// Whether objects of `kind` make a difference to the policies added so far.
    pub fn is_of_use(&self, kind: &GroupVersionKind) -> bool {
        // In whatever version: a param is seen in the one that the policy names.
        let is_param = self.param_kinds.contains(&(kind.group.clone(), kind.kind.clone()));
        let is_ours = matches!(kind.group.as_str(), "admissionregistration.k8s.io" | "apiextensions.k8s.io")
            || is_of_any_set(kind);
        is_param || is_ours
    }

    /// The documents whose kind is of no use to the policies added so far.
    pub fn unused(&self) -> impl Iterator<Item = (usize, LoadErrorKind)> + '_ {
        self.others.iter().filter(|(_, kind)| !self.is_of_use(kind)).map(|(number, kind)| {
            (*number, LoadErrorKind::UnknownKind(format!("{} {}", kind.api_version(), kind.kind)))
        })
    }

    pub fn finish(self) -> PolicySet {
        let set =
            PolicySet::new(self.policies, self.bindings).mutating(self.mutating, self.mutating_bindings);
        PolicySet { documents: self.documents, ..set }
    }
}

/// Kinds of admissionregistration.k8s.io.
const KINDS_OF_ADMISSION: [&str; 6] = [
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// Whether objects of `kind` are asked for whatever the policies are.
fn is_of_any_set(kind: &GroupVersionKind) -> bool {
    (kind.group.as_str(), kind.kind.as_str()) == ("", "Namespace")
        || AccessRules::speak_of(&kind.group, &kind.kind)
}

fn fields(errors: Vec<FieldError>) -> Vec<LoadErrorKind> {
    errors.into_iter().map(LoadErrorKind::Field).collect()
}

/// The versions in which documents of our own concern can be.
fn read_version(kind: &GroupVersionKind) -> Result<(), Vec<LoadErrorKind>> {
    let read: &[&str] = match (kind.group.as_str(), kind.kind.as_str()) {
        (
            "admissionregistration.k8s.io",
            "ValidatingAdmissionPolicy"
            | "ValidatingAdmissionPolicyBinding"
            | "MutatingAdmissionPolicy"
            | "MutatingAdmissionPolicyBinding",
        ) => &["v1", "v1beta1"],
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        )
        | ("apiextensions.k8s.io", "CustomResourceDefinition")
        | ("", "Namespace") => &["v1"],
        _ => return Ok(()),
    };
    if read.contains(&kind.version.as_str()) {
        return Ok(());
    }
    let names = if read.len() == 1 { "v1" } else { "v1 and v1beta1" };
    Err(vec![LoadErrorKind::Version(format!("{} {}", kind.api_version(), kind.kind), names)])
}
