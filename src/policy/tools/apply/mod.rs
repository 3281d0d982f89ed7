//! Predicts what a server that holds the old objects would answer if manifests were applied: each object is checked
//! against its CRD, its schema and rules, and the policies.
//!
//! ```text
//! new objects ─┐
//! old objects ─┴─ pair ──► Pair ──Rehearsal::apply──► Applied
//!                           PolicySet, params, namespaces   operation, refusal, warnings, what each rule said
//! ```
//!
//! Reading files is left to callers, as are a server's defaults for objects of built-in kinds and its own checks of them.

mod builtin;
mod custom;
mod deletion;
mod merge;
mod pair;
mod subresource;

use std::collections::HashSet;
use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::pointer;
use indexmap::IndexMap;
use serde_json::Value;

use crate::crd::CompiledCrd;
use crate::read::manifest::Document;
use crate::read::object::Object;
use crate::report::decision::{Decision, Enforcement, PolicyOutcome, Status};
use crate::report::recording::Recording;
use crate::request::access::AccessAnswers;
use crate::request::host::Host as _;
use crate::request::{Operation, Request, UserInfo};
use crate::set::PolicySet;
use crate::set::builtins::Builtins;
use crate::set::documents::Documents;
use crate::set::known::KnownKinds;
use crate::set::plugins::Plugged;
use crate::tools::system_fields::with_system_fields;
use crate::vap::{Binding, Missed, MutatingPolicy, Policy};

pub(crate) use self::custom::not_strict;
pub use self::pair::{Identity, Pair, PairError, Paired, Pairing, pair};
pub use self::subresource::Subresource;
pub use crate::set::kinds::misnamed;

/// How unknown fields are handled: `fieldValidation` of a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum FieldValidation {
    /// They are rejected, which is what kubectl requests.
    #[default]
    Strict,
    Warn,
    Ignore,
}

/// The user who applies, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub user: UserInfo,
    pub field_validation: FieldValidation,
    /// The operation; by default an update if there is an old object, else a creation.
    pub operation: Option<Operation>,
    /// The subresource that requests are for; none for the objects themselves.
    pub subresource: Option<Subresource>,
    /// Predefined answers of the authorizer; without them the roles among the documents answer.
    pub access: Option<Arc<AccessAnswers>>,
    /// Labels of namespaces of which only the name is known.
    pub namespace_labels: Vec<(String, String)>,
}

/// A simulated server that decides and stores nothing.
///
/// [`pair`] has an example, and this one is of an unknown kind:
///
/// ```
/// use std::sync::Arc;
///
/// use admit_policy::apply::{Change, Options, Rehearsal, Subresource, pair};
/// use admit_policy::{Builtins, Keep, PolicySet, Recording};
/// use serde_json::json;
///
/// let set = PolicySet::new(Vec::new(), Vec::new());
/// let cat = Arc::new(json!({"apiVersion": "example.com/v1", "kind": "Cat", "metadata": {"name": "tom"}}));
/// let pair = pair(&[cat], &[], set.documents(), "shop").unwrap().pairs.remove(0);
/// let (rehearsal, recording) = (Rehearsal::new(&set, [], Options::default()), Recording::new(Keep::COVERAGE));
/// let applied = rehearsal.apply(&pair);
/// assert!(applied.as_written && !applied.is_matched() && !applied.is_audited());
/// assert_eq!(rehearsal.apply_recorded(&pair, &recording).change.as_str(), Change::Create.as_str());
/// assert!(Subresource::Status.updates() && Subresource::Status.as_str() == "status");
///
/// // With a server's knowledge of built-in kinds.
/// fn server(set: &PolicySet, builtins: &dyn Builtins) -> usize {
///     Rehearsal::new(set, [], Options::default()).knowing(builtins);
///     0
/// }
/// ```
#[derive(Debug)]
pub struct Rehearsal<'s> {
    set: &'s PolicySet,
    /// What exists while requests are decided: namespaces and params.
    host: Documents,
    options: Options,
    builtins: Option<&'s dyn Builtins>,
}

/// The kind of change that applying makes to an object.
///
/// [`Rehearsal`] has an example.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Change {
    Create,
    Update,
    Delete,
    /// A connection to a pod, which changes nothing.
    Connect,
    /// No request is sent to the server.
    Unchanged,
}

/// The predicted result of applying one object.
///
/// [`Rehearsal`] has an example.
#[derive(Clone, Debug)]
pub struct Applied {
    pub change: Change,
    /// The `Status` that the client would get; None where the object is admitted.
    pub refusal: Option<Status>,
    /// Texts for the client.
    pub warnings: Vec<String>,
    pub audit_annotations: IndexMap<String, String>,
    /// Whether the object was validated: by a CRD's schema, or by the checks of a CRD or policy itself.
    pub validated: bool,
    /// The kind is unknown: the object was taken as written, without defaults and without a server's checks.
    pub as_written: bool,
    /// The result of each policy that matched.
    pub outcomes: Vec<PolicyOutcome>,
    /// The object as policies changed it; None where they did not.
    pub mutated: Option<Value>,
    /// Objects that the object refers to, and that were assumed to exist: `PriorityClass "high"`.
    pub assumed: Vec<String>,
    /// Why other policies did not apply; only where the decision is recorded.
    pub missed: Vec<Missed>,
}

impl Change {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Connect => "connect",
            Self::Unchanged => "unchanged",
        }
    }
}

impl Applied {
    fn new(change: Change) -> Self {
        Self {
            change,
            refusal: None,
            warnings: Vec::new(),
            audit_annotations: IndexMap::new(),
            validated: false,
            as_written: false,
            outcomes: Vec::new(),
            mutated: None,
            assumed: Vec::new(),
            missed: Vec::new(),
        }
    }

    /// Whether the object was checked by anything: a schema, or a rule of a policy.
    pub fn is_matched(&self) -> bool {
        self.validated || self.outcomes.iter().any(|outcome| !outcome.rules.is_empty())
    }

    /// Whether a rule failed and was written to the audit log only.
    pub fn is_audited(&self) -> bool {
        let mut rules = self.outcomes.iter().flat_map(|outcome| &outcome.rules);
        rules.any(|rule| rule.enforced.contains(&Enforcement::Audit))
    }
}

impl<'s> Rehearsal<'s> {
    /// `existing` is there while requests are decided, the last of one name counting. Of use are those of the kinds that the
    /// set [looks up](PolicySet::looks_up).
    pub fn new(set: &'s PolicySet, existing: impl IntoIterator<Item = Arc<Value>>, options: Options) -> Self {
        let mut host = set.documents().clone();
        existing.into_iter().for_each(|object| host.insert(object));
        if let Some(answers) = &options.access {
            host.set_answers(Arc::clone(answers));
        }
        Self { set, host, options, builtins: None }
    }

    /// Sets the defaults and checks of built-in kinds.
    #[must_use]
    pub fn knowing(self, builtins: &'s dyn Builtins) -> Self {
        Self { builtins: Some(builtins), ..self }
    }

    /// Predicts the result of the creation or update that a pair represents.
    pub fn apply(&self, pair: &Pair) -> Applied {
        self.decided(pair, None)
    }

    /// Like [`Self::apply`], and adds every evaluation to `recording`.
    pub fn apply_recorded(&self, pair: &Pair, recording: &Recording) -> Applied {
        self.decided(pair, Some(recording))
    }

    fn decided(&self, pair: &Pair, recording: Option<&Recording>) -> Applied {
        let created;
        let pair = match self.options.operation {
            Some(Operation::Delete) => return deletion::apply(self, pair, recording),
            Some(Operation::Create) => {
                created = Pair { old: None, ..pair.clone() };
                &created
            }
            Some(Operation::Update | Operation::Connect) | None => pair,
        };
        if let Some(subresource) = self.options.subresource.filter(|of| *of != Subresource::Status) {
            return subresource::apply(self, pair, subresource, recording);
        }
        let kind = &pair.identity.kind;
        let (group, name) = (kind.group.as_str(), kind.kind.as_str());
        match (group, name) {
            ("apiextensions.k8s.io", "CustomResourceDefinition")
            | (
                "admissionregistration.k8s.io",
                "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding",
            ) => self.registration(pair, recording),
            _ => match self.host.crd_of(kind).cloned() {
                Some(crd) => custom::apply(self, pair, &crd, recording),
                None => builtin::apply(self, pair, recording),
            },
        }
    }

    /// Definitions, policies and bindings: whether a server would store them.
    fn registration(&self, pair: &Pair, recording: Option<&Recording>) -> Applied {
        let new = custom::carried_over(&pair.new, pair.old.as_deref(), self.builtins);
        if pair.old.as_deref() == Some(&new) {
            return Applied::new(Change::Unchanged);
        }
        let errors = match (pair.identity.kind.kind.as_str(), pair.old.as_deref()) {
            ("ValidatingAdmissionPolicy", Some(old)) => Policy::compile_update(&new, old).err(),
            ("ValidatingAdmissionPolicy", None) => Policy::compile(&new).err(),
            ("ValidatingAdmissionPolicyBinding", _) => Binding::compile(&new).err(),
            ("MutatingAdmissionPolicy", Some(old)) => MutatingPolicy::compile_update(&new, old).err(),
            ("MutatingAdmissionPolicy", None) => MutatingPolicy::compile(&new).err(),
            ("MutatingAdmissionPolicyBinding", _) => Binding::compile_mutating(&new).err(),
            (_, Some(old)) => CompiledCrd::compile_update(&new, old).err(),
            (_, None) => CompiledCrd::compile(&new).err(),
        };
        let mut applied = Applied { validated: true, ..Applied::new(change(pair)) };
        match errors {
            Some(errors) => applied.refusal = Some(invalid(&pair.identity, &errors)),
            None => self.decide(&self.request(pair, new, pair.old.clone()), &mut applied, recording),
        }
        applied
    }

    /// Puts the request to the policies.
    fn decide(&self, request: &Request<'_>, applied: &mut Applied, recording: Option<&Recording>) {
        let mut request = request.clone();
        with_system_fields(&mut request, &self.host, self.host.now());
        let request = &request;
        let host = self.host.in_namespace(&request.namespace, &self.options.namespace_labels);
        if let Some(plugins) = self.host.plugins()
            && !Self::plugged(applied, plugins.validate(request, &host))
        {
            return;
        }
        if recording.is_some() {
            applied.missed.extend(self.set.missed(request, &host, |_| true));
        }
        let Decision { denial, warnings, audit_annotations, outcomes } =
            self.set.decide_with(request, &host, |_| true, recording.into());
        applied.refusal = denial.map(|denial| denial.status);
        applied.warnings.extend(warnings);
        applied.audit_annotations.extend(audit_annotations);
        applied.outcomes.extend(outcomes);
        if let (None, Some(plugins)) = (&applied.refusal, self.host.plugins()) {
            applied.refusal = plugins.charge(request, &host);
        }
    }

    /// Adds the result of plugins; false if they reject the request.
    fn plugged(applied: &mut Applied, plugged: Plugged) -> bool {
        let Plugged { object: _, refusal, warnings, audit_annotations, assumed } = plugged;
        let new = |known: &[String], all: Vec<String>| -> Vec<String> {
            all.into_iter().filter(|one| !known.contains(one)).collect()
        };
        let warnings = new(&applied.warnings, warnings);
        applied.warnings.extend(warnings);
        let assumed = new(&applied.assumed, assumed);
        applied.assumed.extend(assumed);
        applied.audit_annotations.extend(audit_annotations);
        applied.refusal = refusal;
        applied.refusal.is_none()
    }

    /// Runs mutating plugins and policies; returns the object if they changed it and do not reject it.
    fn mutate(
        &self,
        request: &Request<'_>,
        applied: &mut Applied,
        recording: Option<&Recording>,
    ) -> Option<Value> {
        let host = self.host.in_namespace(&request.namespace, &self.options.namespace_labels);
        let mut plugged =
            self.host.plugins().map(|plugins| plugins.mutate(request, &host)).unwrap_or_default();
        let made = plugged.object.take();
        if !Self::plugged(applied, plugged) || self.set.mutating_policies().next().is_none() {
            return made.filter(|_| applied.refusal.is_none());
        }
        let seen = made.clone().map(Object::from).or_else(|| request.object.clone());
        let request = &Request { object: seen, ..request.clone() };
        let kinds = KnownKinds { documents: &self.host, builtins: self.builtins };
        if recording.is_some() {
            applied.missed = self.set.missed_by_mutating(request, &host, |_| true);
        }
        let mutated = self.set.mutate_fully(request, (&host, &kinds), recording.into(), |_| true);
        applied.warnings.extend(mutated.warnings());
        applied.audit_annotations.extend(mutated.annotations());
        applied.outcomes.extend(mutated.outcomes);
        applied.refusal = mutated.denial.map(|denial| denial.status);
        let changed = mutated
            .object
            .filter(|object| request.object.as_ref().is_none_or(|sent| *sent.value() != *object));
        applied.mutated.clone_from(&changed);
        changed.or(made).filter(|_| applied.refusal.is_none())
    }

    fn is_of_status(&self) -> bool {
        self.options.subresource == Some(Subresource::Status)
    }

    fn request(&self, pair: &Pair, new: Value, old: Option<Arc<Value>>) -> Request<'static> {
        let Identity { kind, namespace, name } = &pair.identity;
        let resource = self.host.resource_of(kind);
        let is_namespace = kind.group.is_empty() && kind.kind == "Namespace";
        let subresource = self.options.subresource.map(Subresource::as_str).unwrap_or_default();
        Request {
            uid: "00000000-0000-0000-0000-000000000000".to_owned(),
            request_kind: kind.clone(),
            request_resource: resource.clone(),
            request_subresource: subresource.to_owned(),
            kind: kind.clone(),
            resource,
            subresource: subresource.to_owned(),
            name: name.clone(),
            namespace: if is_namespace { name.clone() } else { namespace.clone() },
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            user: self.options.user.clone(),
            object: Some(new.into()),
            old_object: old.map(Object::from),
            options: None,
            dry_run: false,
        }
    }
}

/// The manifests that count for the others being applied: CRDs, policies and bindings that a server would store, and
/// that `policies` do not have already.
///
/// ```
/// use admit_policy::{apply, manifest};
///
/// let text = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicyBinding
/// metadata: {name: a}
/// spec: {policyName: a, validationActions: [Deny]}
/// ---
/// {apiVersion: v1, kind: Pod, metadata: {name: a}}
/// ";
/// let manifests = manifest::read("all.yaml", text).unwrap();
/// assert_eq!(apply::in_force(&manifests, &[]).count(), 1);
/// assert!(!apply::may_be_in_force(&manifests[1].value));
/// ```
pub fn in_force<'d>(
    manifests: &'d [Document],
    policies: &'d [Document],
) -> impl Iterator<Item = &'d Document> + use<'d> {
    let known: HashSet<(&str, &str)> = policies.iter().map(kind_and_name).collect();
    let is_new = move |document: &&Document| !known.contains(&kind_and_name(document));
    manifests.iter().filter(|document| compiles(&document.value)).filter(is_new)
}

/// Whether the manifest is of a kind that may be [in force](in_force) for others.
///
/// [`in_force`] has an example.
#[must_use]
pub fn may_be_in_force(manifest: &Value) -> bool {
    let kind = manifest.get("kind").and_then(Value::as_str).unwrap_or_default();
    CONFIGURING.contains(&kind)
}

/// Kinds that manifests may define for one another.
const CONFIGURING: [&str; 5] = [
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "CustomResourceDefinition",
];

fn kind_and_name(document: &Document) -> (&str, &str) {
    let text = |pointer: &str| pointer::text(&document.value, pointer);
    (text("/kind"), text("/metadata/name"))
}

fn compiles(manifest: &Value) -> bool {
    match manifest.get("kind").and_then(Value::as_str).unwrap_or_default() {
        "ValidatingAdmissionPolicy" => Policy::compile(manifest).is_ok(),
        "ValidatingAdmissionPolicyBinding" => Binding::compile(manifest).is_ok(),
        "MutatingAdmissionPolicy" => MutatingPolicy::compile(manifest).is_ok(),
        "MutatingAdmissionPolicyBinding" => Binding::compile_mutating(manifest).is_ok(),
        "CustomResourceDefinition" => CompiledCrd::compile(manifest).is_ok(),
        _ => false,
    }
}

fn change(pair: &Pair) -> Change {
    if pair.old.is_some() { Change::Update } else { Change::Create }
}

/// Builds the error 422 of an invalid object.
fn invalid(identity: &Identity, errors: &[FieldError]) -> Status {
    let causes = errors.iter().map(FieldError::cause).collect();
    Status::invalid(&identity.kind.group, &identity.kind.kind, &identity.name, causes)
}
