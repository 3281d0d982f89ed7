//! Sets that differ from another one in one document, for those who ask what the document does.

use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use serde_json::Value;

use super::{LoadErrorKind, PolicySet, index_of};
use crate::crd::CompiledCrd;
use crate::request::GroupVersionKind;
use crate::vap::{Binding, Policy};

impl PolicySet {
    /// The same set with `document` in place of the one of its kind and name, which is compiled alone: a
    /// ValidatingAdmissionPolicy, a ValidatingAdmissionPolicyBinding, or a CustomResourceDefinition. Where the set has none of
    /// the name, nothing changes.
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
    /// Everything that is wrong with the document, and its kind where it is another one.
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
                set.rebind(&Binding::compile(document).map_err(fields)?);
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

    /// Without an index, which is made when the policies are what they are to be.
    fn copy(&self) -> Self {
        Self {
            policies: self.policies.clone(),
            index: index_of(&[]),
            mutating: Arc::clone(&self.mutating),
            documents: self.documents.clone(),
            exceptions: self.exceptions.clone(),
        }
    }

    fn rebind(&mut self, binding: &Binding) {
        let is_there =
            self.policies.iter().any(|bound| bound.bindings.iter().any(|known| known.name == binding.name));
        if !is_there {
            return;
        }
        for bound in &mut self.policies {
            bound.bindings.retain(|known| known.name != binding.name);
            if *bound.policy.name == *binding.policy_name {
                bound.bindings.push(binding.clone());
                bound.bindings.sort_by(|a, b| a.name.cmp(&b.name));
            }
        }
    }
}

fn fields(errors: Vec<FieldError>) -> Vec<LoadErrorKind> {
    errors.into_iter().map(LoadErrorKind::Field).collect()
}
