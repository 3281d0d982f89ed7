//! Holds the compiled policies, and decides requests with them.

mod builder;
pub(crate) mod builtins;
pub(crate) mod catalogue;
pub(crate) mod documents;
mod index;
pub(crate) mod kinds;
pub(crate) mod known;
pub(crate) mod load;
mod mutating;
pub(crate) mod plugins;
mod replace;
mod shapes;
mod static_manifests;
mod strict;

pub use self::builder::PolicySetBuilder;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use admit_apimachinery::field_error::FieldError;
use thiserror::Error;

use crate::crd::Converts;
use crate::deadline::{Deadline, Interrupted};
use crate::exception::Excepting;
use crate::matching::{self, Matched};
use crate::report::decision::Decision;
use crate::report::options::EvalOptions;
use crate::report::recording::Recording;
use crate::request::exceptions::{Exceptions, PolicyException};
use crate::request::host::Host;
use crate::request::{GroupVersionKind, Request};
use crate::set::builder::is_of_any_set;
use crate::set::builtins::Builtins;
use crate::set::documents::Documents;
use crate::set::index::{Candidate, Certainty, PolicyIndex};
use crate::set::mutating::Mutating;
use crate::set::plugins::Plugins;
use crate::vap::{self, Binding, Missed, Policy};

/// Compiled policies with their bindings, and the documents loaded with them. Compiled once and shared.
///
/// [From manifests to a decision](crate), and more functions:
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
    index: Arc<PolicyIndex>,
    mutating: Arc<Mutating>,
    documents: Documents,
    exceptions: Exceptions,
}

/// The reason why no policy applies to policies, bindings and webhook configurations.
const EXEMPT: &str = "configuration of admission is subject to no policy";

/// Why a document is rejected.
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

#[derive(Clone, Debug)]
struct BoundPolicy {
    policy: Arc<Policy>,
    /// In order of name.
    bindings: Arc<Vec<Binding>>,
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
                bindings: Arc::new(by_policy.remove(&*policy.name).unwrap_or_default()),
                policy: Arc::new(policy),
            })
            .collect();
        Self { index: index_of(&policies), policies, ..Self::default() }
    }

    /// A set to be filled document by document, as [`PolicySetBuilder`] shows.
    pub fn builder() -> PolicySetBuilder {
        PolicySetBuilder::default()
    }

    /// Sets the converters that replace conversion webhooks, if requests are decided without a cluster.
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

    /// Sets the admission plugins that a server has built in, which see requests before policies and after them. [`Plugins`] has
    /// an example.
    #[must_use]
    pub fn plugging(mut self, plugins: Arc<dyn Plugins>) -> Self {
        self.documents.set_plugins(plugins);
        self
    }

    /// Sets the time for hosts that are the [documents](Self::documents) of the set, since exceptions end. Without it none applies.
    /// [`PolicyException`] has an example.
    #[must_use]
    pub fn at(mut self, now: SystemTime) -> Self {
        self.documents.set_now(now);
        self
    }

    /// The same set with more exceptions: those that lie in a cluster. [`PolicyException`] has an example.
    #[must_use]
    pub fn excepting(mut self, exceptions: impl IntoIterator<Item = PolicyException>) -> Self {
        exceptions.into_iter().for_each(|exception| self.exceptions.add(exception));
        self
    }

    /// The exceptions from policies, in order of name. [`PolicyException`] has an example.
    pub fn exceptions(&self) -> impl Iterator<Item = &PolicyException> {
        self.exceptions.iter()
    }

    /// The Namespaces, params and CRDs that were loaded, which also serve as a [`Host`].
    pub fn documents(&self) -> &Documents {
        &self.documents
    }

    /// Decides `request`, however long it takes. If the host cannot answer, that is an error of the policies that needed the answer,
    /// handled by their failurePolicy.
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
        let excepting = Excepting::new(&self.exceptions, request, host);
        let mut collector = collector.expect(candidates.len()).doubting(excepting.trouble());
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
            collector.except(excepting.from(&bound.policy.name));
            vap::decide(&bound.policy, &bound.bindings, matched, &mut collector);
        }
        collector.finish()
    }

    /// Returns why validating policies selected by `accept` did not apply to `request`, in order of name.
    pub fn missed(
        &self,
        request: &Request<'_>,
        host: &dyn Host,
        accept: impl Fn(&str) -> bool,
    ) -> Vec<Missed> {
        let asked = self.policies().filter(|(policy, _)| accept(&policy.name));
        if matching::is_exempt(&request.kind) {
            return asked.map(|(policy, _)| Missed::of_any(&policy.name, EXEMPT)).collect();
        }
        asked.flat_map(|(policy, bindings)| vap::missed(policy, bindings, request, host)).collect()
    }

    /// Whether decisions read other objects of `kind`: Namespaces, roles and their bindings, params in any version, and what
    /// [plugins](Self::plugging) look up.
    #[must_use]
    pub fn looks_up(&self, kind: &GroupVersionKind) -> bool {
        let is_param = |policy: &Policy| {
            let params = policy.param_kind.as_ref();
            params.is_some_and(|params| (&params.group, &params.kind) == (&kind.group, &kind.kind))
        };
        is_of_any_set(kind)
            || self.documents.plugins().is_some_and(|plugins| plugins.looks_up(kind))
            || self.policies().any(|(policy, _)| is_param(policy))
            || self.mutating_policies().any(|(policy, _)| is_param(policy.common()))
    }

    /// The policies, in order of name, each with its bindings.
    pub fn policies(&self) -> impl Iterator<Item = (&Policy, &[Binding])> {
        self.policies.iter().map(|bound| (&*bound.policy, bound.bindings.as_slice()))
    }
}

/// A policy that nothing binds decides nothing.
fn index_of(policies: &[BoundPolicy]) -> Arc<PolicyIndex> {
    let in_force = |bound: &BoundPolicy| !bound.bindings.is_empty();
    Arc::new(PolicyIndex::of(policies.iter().map(|bound| in_force(bound).then_some(&*bound.policy))))
}
