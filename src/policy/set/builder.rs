//! Builds a policy set from documents, one by one: decides which are read, in which versions, and rejects duplicates.

use std::collections::HashSet;
use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::pointer;
use admit_cel::PatternSum;
use serde_json::Value;

use super::{LoadErrorKind, PolicySet};
use crate::crd::CompiledCrd;
use crate::devices;
use crate::exception;
use crate::request::GroupVersionKind;
use crate::request::exceptions::{Exceptions, PolicyException};
use crate::request::rbac::AccessRules;
use crate::server_config;
use crate::set::documents::Documents;
use crate::set::kinds;
use crate::set::plugins;
use crate::vap::{Binding, MutatingPolicy, Policy};
use crate::webhook::{Configuration, Kind};

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
    exceptions: Exceptions,
    /// Group and kind of the params of the policies.
    param_kinds: HashSet<(String, String)>,
    /// The patterns of all policies, which share a memory limit.
    patterns: PatternSum,
    /// Kinds of objects that may turn out to be unused.
    others: Vec<(usize, GroupVersionKind)>,
    /// Kind and name of what was added, to find duplicates.
    seen: HashSet<(GroupVersionKind, String, String)>,
    added: usize,
}

impl PolicySetBuilder {
    /// Adds one document and returns its number, by which [`Self::unused`] refers to it.
    ///
    /// # Errors
    /// Everything that is wrong with the document.
    pub fn add(&mut self, document: &Value) -> Result<usize, Vec<LoadErrorKind>> {
        self.add_compiled(document, || CompiledCrd::compile(document).map(Arc::new))
    }

    /// Adds a document with its compiled definition.
    pub(crate) fn add_compiled(
        &mut self,
        document: &Value,
        definition: impl FnOnce() -> Result<Arc<CompiledCrd>, Vec<FieldError>>,
    ) -> Result<usize, Vec<LoadErrorKind>> {
        let number = self.added;
        self.added = self.added.saturating_add(1);
        let text = |pointer: &str| pointer::text(document, pointer);
        let (api_version, kind_name) = (text("/apiVersion"), text("/kind"));
        if api_version.is_empty() || kind_name.is_empty() {
            return Err(vec![LoadErrorKind::NoKind]);
        }
        let kind = GroupVersionKind::from_api_version(api_version, kind_name);
        let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
        if let Some(refused) = kinds::refused(&kind) {
            return Err(vec![refused]);
        }
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
                self.documents.insert_crd(definition().map_err(fields)?);
            }
            (group, kind) if exception::is_exception(group, kind) => {
                self.exceptions.add(PolicyException::compile(document).map_err(fields)?);
            }
            // It has no part in decisions about objects, and has to be right.
            (server_config::GROUP, _) => {
                let problems = server_config::problems(kind_name, document);
                if !problems.is_empty() {
                    return Err(fields(problems));
                }
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
            // Refused before.
            _ => {}
        }
        Ok(())
    }

    /// Whether objects of `kind` make a difference to the policies added so far.
    pub fn is_of_use(&self, kind: &GroupVersionKind) -> bool {
        // In any version: a param is converted to the one that the policy names.
        let is_param = self.param_kinds.contains(&(kind.group.clone(), kind.kind.clone()));
        let is_ours = matches!(kind.group.as_str(), "admissionregistration.k8s.io" | "apiextensions.k8s.io")
            || is_of_any_set(kind);
        is_param || is_ours
    }

    /// Returns why an exception has no effect: no policy has the name.
    pub(super) fn without_effect(&self, exception: &Value) -> Option<FieldError> {
        let named = pointer::items(exception, "/spec/policies").iter();
        let is_known = |name: &str| self.policies.iter().any(|policy| &*policy.name == name);
        let mutates = |name: &str| self.mutating.iter().any(|policy| &*policy.common().name == name);
        let named = named.enumerate().filter_map(|(at, name)| Some((at, name.as_str()?)));
        let (at, name) = named.into_iter().find(|(_, name)| !is_known(name) && !mutates(name))?;
        let why = "there is no ValidatingAdmissionPolicy or MutatingAdmissionPolicy of this name";
        Some(FieldError::invalid(format!("spec.policies[{at}]"), name, why))
    }

    /// The documents whose kind is of no use to the policies added so far.
    pub fn unused(&self) -> impl Iterator<Item = (usize, LoadErrorKind)> + '_ {
        // Devices are for suites, and classes, limits and quotas for the plugins of a server.
        let is_idle = |kind: &GroupVersionKind| {
            !self.is_of_use(kind) && !devices::is_read(kind) && !plugins::is_read(kind)
        };
        self.others.iter().filter(move |(_, kind)| is_idle(kind)).map(|(number, kind)| {
            (*number, LoadErrorKind::UnknownKind(format!("{} {}", kind.api_version(), kind.kind)))
        })
    }

    pub fn finish(self) -> PolicySet {
        let set =
            PolicySet::new(self.policies, self.bindings).mutating(self.mutating, self.mutating_bindings);
        PolicySet { documents: self.documents, exceptions: self.exceptions, ..set }
    }
}

/// Whether objects of `kind` may be used regardless of the policies.
pub(super) fn is_of_any_set(kind: &GroupVersionKind) -> bool {
    (kind.group.as_str(), kind.kind.as_str()) == ("", "Namespace")
        || AccessRules::speak_of(&kind.group, &kind.kind)
}

fn fields(errors: Vec<FieldError>) -> Vec<LoadErrorKind> {
    errors.into_iter().map(LoadErrorKind::Field).collect()
}
