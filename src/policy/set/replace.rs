//! Derives sets that differ from another one in a single document or expression, to analyse what it does.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use serde_json::Value;

use super::{LoadErrorKind, PolicySet, index_of};
use crate::crd::CompiledCrd;
use crate::report::recording::{ExpressionId, Origin};
use crate::request::GroupVersionKind;
use crate::vap::{Binding, MutatingPolicy, Policy};

impl PolicySet {
    /// Returns the set with `document` in place of the one of its kind and name, which alone is compiled: a policy, a binding, or a
    /// CustomResourceDefinition. If the set has none of the name, nothing changes.
    ///
    /// ```
    /// use admit_policy::{LoadOptions, PolicySet, Request};
    /// use serde_json::json;
    ///
    /// let policy = |most: u32| json!({
    ///     "apiVersion": "admissionregistration.k8s.io/v1",
    ///     "kind": "ValidatingAdmissionPolicy",
    ///     "metadata": {"name": "few"},
    ///     "spec": {
    ///         "matchConstraints": {"resourceRules": [
    ///             {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]},
    ///         ]},
    ///         "validations": [{"expression": format!("object.spec.replicas <= {most}")}],
    ///     },
    /// });
    /// let binding = json!({
    ///     "apiVersion": "admissionregistration.k8s.io/v1",
    ///     "kind": "ValidatingAdmissionPolicyBinding",
    ///     "metadata": {"name": "few"},
    ///     "spec": {"policyName": "few", "validationActions": ["Deny"]},
    /// });
    /// let mut builder = PolicySet::builder();
    /// builder.add(&policy(3)).unwrap();
    /// builder.add(&binding).unwrap();
    /// let set = builder.finish();
    /// let other = set.with(&policy(5)).unwrap();
    ///
    /// let request = json!({
    ///     "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    ///     "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
    ///     "operation": "CREATE",
    ///     "name": "web",
    ///     "namespace": "shop",
    ///     "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 4}},
    /// });
    /// let request = Request::from_value(&request)?;
    /// assert!(!set.decide(&request, set.documents()).allowed());
    /// assert!(other.decide(&request, other.documents()).allowed());
    /// # Ok::<(), admit_policy::ReviewError>(())
    /// ```
    ///
    /// # Errors
    /// Everything that is wrong with the document, or its kind if it is another one.
    pub fn with(&self, document: &Value) -> Result<Self, Vec<LoadErrorKind>> {
        let kind = GroupVersionKind::of(document);
        let mut set = self.copy();
        match (kind.group.as_str(), kind.kind.as_str()) {
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy") => {
                let policy = Arc::new(Policy::compile(document).map_err(fields)?);
                let same = set.policies.iter_mut().filter(|bound| bound.policy.name == policy.name);
                same.for_each(|bound| bound.policy = Arc::clone(&policy));
            }
            ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding") => {
                let of = set.policies.iter_mut().map(|bound| (&*bound.policy.name, &mut bound.bindings));
                rebind(of, &Binding::compile(document).map_err(fields)?);
            }
            ("admissionregistration.k8s.io", "MutatingAdmissionPolicy") => {
                let policy = MutatingPolicy::compile(document).map_err(fields)?;
                set.mutating = Arc::new(set.mutating.with(policy));
            }
            ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding") => {
                let binding = Binding::compile_mutating(document).map_err(fields)?;
                set.mutating = Arc::new(set.mutating.rebound(&binding));
            }
            ("apiextensions.k8s.io", "CustomResourceDefinition") => {
                let definition = Arc::new(CompiledCrd::compile(document).map_err(fields)?);
                set.documents.replace_crd(&definition);
            }
            _ => {
                let named = format!("{} {}", kind.api_version(), kind.kind);
                return Err(vec![LoadErrorKind::UnknownKind(named)]);
            }
        }
        set.index = index_of(&set.policies);
        Ok(set)
    }

    /// Returns the set with `text` as one of its expressions, which alone is compiled: the same set that [`Self::with`] returns for a
    /// document with that text.
    ///
    /// None if the set has no such expression, or if its validity or effect depends on more than the expression: then use
    /// [`Self::with`].
    ///
    /// ```
    /// use admit_policy::{ExpressionId, Origin, PolicySet};
    /// use serde_json::json;
    ///
    /// let policy = json!({
    ///     "apiVersion": "admissionregistration.k8s.io/v1",
    ///     "kind": "ValidatingAdmissionPolicy",
    ///     "metadata": {"name": "few"},
    ///     "spec": {
    ///         "matchConstraints": {"resourceRules": [
    ///             {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"]},
    ///         ]},
    ///         "variables": [{"name": "most", "expression": "3"}],
    ///         "validations": [{"expression": "object.spec.replicas <= variables.most"}],
    ///     },
    /// });
    /// let mut builder = PolicySet::builder();
    /// builder.add(&policy).unwrap();
    /// let set = builder.finish();
    ///
    /// let path = "spec.variables[0].expression".to_owned();
    /// let most = ExpressionId { origin: Origin::Policy { name: "few".to_owned() }, path };
    /// let other = set.with_expression(&most, "5").unwrap();
    /// let (policy, _) = other.policies().next().unwrap();
    /// assert_eq!(policy.expressions()[0].text, "5");
    /// assert!(set.with_expression(&most, "'many'").is_none(), "whoever compares with it has to be looked at again");
    /// ```
    #[must_use]
    pub fn with_expression(&self, id: &ExpressionId, text: &str) -> Option<Self> {
        let mut set = self.copy();
        match &id.origin {
            Origin::Policy { name } => {
                let bound = set.policies.iter_mut().find(|bound| *bound.policy.name == **name)?;
                bound.policy = Arc::new(bound.policy.with_expression(&id.path, text)?);
            }
            Origin::Definition { name, version } => {
                let known = set.documents.crds().iter().find(|crd| crd.definition().name == *name)?;
                let definition = Arc::new(known.with_rule(version, &id.path, text)?);
                set.documents.replace_crd(&definition);
            }
            Origin::Mutating { .. } | Origin::Configuration { .. } => return None,
        }
        Some(set)
    }

    /// Copies the set; the index of policies stays valid.
    fn copy(&self) -> Self {
        Self {
            policies: self.policies.clone(),
            index: Arc::clone(&self.index),
            mutating: Arc::clone(&self.mutating),
            documents: self.documents.clone(),
            exceptions: self.exceptions.clone(),
        }
    }
}

/// Replaces the binding of that name by `binding`, if there is one; `all` are the bindings by policy name.
pub(super) fn rebind<'p>(all: impl Iterator<Item = (&'p str, &'p mut Arc<Vec<Binding>>)>, binding: &Binding) {
    let mut all: Vec<_> = all.collect();
    if !all.iter().any(|(_, bindings)| bindings.iter().any(|known| known.name == binding.name)) {
        return;
    }
    for (policy, bindings) in &mut all {
        let bindings = Arc::make_mut(bindings);
        bindings.retain(|known| known.name != binding.name);
        if **policy == *binding.policy_name {
            bindings.push(binding.clone());
            bindings.sort_by(|a, b| a.name.cmp(&b.name));
        }
    }
}

fn fields(errors: Vec<FieldError>) -> Vec<LoadErrorKind> {
    errors.into_iter().map(LoadErrorKind::Field).collect()
}
