//! Reports the outcome of running mutating policies: the object, the result of each policy, and the exceptions that applied.

use std::sync::Arc;

use serde_json::Value;

use crate::report::decision::{Denial, Enforcement, Excepted, PolicyOutcome, RuleOutcome, Skipped, Verdict};
use crate::vap::binding::Binding;
use crate::vap::collector::{EXCEPTION_ANNOTATION, param_name};
use crate::vap::policy::Policy;

/// The result of mutating policies for one request.
#[derive(Clone, Debug, Default)]
pub struct Mutated {
    /// The object after all mutations, in the version of the request; None where no mutation was applied.
    pub object: Option<Value>,
    /// Present when the request is denied.
    pub denial: Option<Denial>,
    /// The result of each policy that matched, in the order in which they ran.
    pub outcomes: Vec<PolicyOutcome>,
}

impl Mutated {
    /// Returns warnings about exceptions that applied. [`Self::annotations`] has an example.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(outcome, excepted): (&PolicyOutcome, &Excepted)| {
            let binding = outcome.binding.as_deref();
            let with = binding.map(|name| format!(" with binding '{name}'")).unwrap_or_default();
            format!(
                "MutatingAdmissionPolicy '{}'{with} does not see this request: {excepted}",
                outcome.policy
            )
        };
        let mut warnings: Vec<String> = Vec::new();
        for warning in self.excepted().map(warning) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        warnings
    }

    /// What is noted of exceptions in the audit log.
    ///
    /// ```
    /// use std::time::{Duration, SystemTime};
    ///
    /// use admit_policy::{Documents, EvalOptions, KnownKinds, PolicySet, Request, manifest};
    /// use serde_json::json;
    ///
    /// let text = r#"
    /// apiVersion: admissionregistration.k8s.io/v1
    /// kind: MutatingAdmissionPolicy
    /// metadata: {name: labelled}
    /// spec:
    ///   reinvocationPolicy: Never
    ///   matchConstraints:
    ///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
    ///   mutations:
    ///   - {patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: "add", path: "/metadata/labels", value: {"a": "b"}}]'}}
    /// ---
    /// apiVersion: admissionregistration.k8s.io/v1
    /// kind: MutatingAdmissionPolicyBinding
    /// metadata: {name: labelled}
    /// spec: {policyName: labelled}
    /// ---
    /// apiVersion: admit/v1
    /// kind: PolicyException
    /// metadata: {name: import}
    /// spec: {policies: [labelled], names: ['import-*'], until: '2027-01-01', reason: it is replaced}
    /// "#;
    /// let set = PolicySet::load(&manifest::read("policy.yaml", text).unwrap()).unwrap();
    /// let set = set.at(SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000));
    /// let request = |name: &str| Request::from_value(&json!({
    ///     "kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "operation": "CREATE",
    ///     "resource": {"group": "", "version": "v1", "resource": "configmaps"}, "name": name, "namespace": "n",
    ///     "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}},
    /// })).unwrap();
    /// let kinds = KnownKinds { documents: set.documents(), builtins: None };
    /// let around = (set.documents() as _, &kinds as _);
    /// let mutated = set.mutate_fully(&request("import-1"), around, EvalOptions::default(), |_| true);
    /// assert!(mutated.object.is_none() && mutated.denial.is_none());
    /// assert_eq!(mutated.annotations()[0].0, "exception.admit.dev/labelled");
    /// assert!(mutated.warnings()[0].ends_with("lets it through until 2027-01-02T00:00:00Z: it is replaced"));
    /// let mutated = set.mutate_fully(&request("other"), around, EvalOptions::default(), |_| true);
    /// assert!(mutated.object.is_some() && mutated.warnings().is_empty());
    /// ```
    #[must_use]
    pub fn annotations(&self) -> Vec<(String, String)> {
        let noted = self.excepted().map(|(outcome, excepted)| {
            (format!("{EXCEPTION_ANNOTATION}{}", outcome.policy), excepted.to_string())
        });
        noted.collect()
    }

    fn excepted(&self) -> impl Iterator<Item = (&PolicyOutcome, &Excepted)> {
        self.outcomes.iter().filter_map(|outcome| match &outcome.skipped {
            Some(Skipped::Excepted(excepted)) => Some((outcome, excepted)),
            Some(Skipped::False { .. } | Skipped::Failed { .. }) | None => None,
        })
    }
}

pub(super) fn outcome(
    policy: &Policy,
    (binding, param): (Option<&Binding>, Option<&Value>),
    skipped: Option<Skipped>,
    rules: Vec<RuleOutcome>,
) -> PolicyOutcome {
    PolicyOutcome {
        policy: Arc::clone(&policy.name),
        binding: binding.map(|binding| Arc::clone(&binding.name)),
        param: param.map(param_name),
        skipped,
        rules,
        excepted: None,
    }
}

pub(super) fn enforced(verdict: &Verdict) -> Vec<Enforcement> {
    match verdict {
        Verdict::Errored { denies: true, .. } => vec![Enforcement::Deny],
        Verdict::Errored { denies: false, .. } | Verdict::Admitted | Verdict::Failed { .. } => Vec::new(),
    }
}
