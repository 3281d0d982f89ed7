//! Collects the results of all policies for one request (denial, warnings, annotations, outcomes) and caches what
//! they share of the request, built at first use.

use std::cell::OnceCell;
use std::sync::Arc;

use admit_apimachinery::go;
use admit_cel::Node;
use bumpalo::Bump;
use serde_json::{Value, json};

use super::authorizer::Answers;
use super::binding::Binding;
use super::evaluate::{Annotation, Evaluation, denies, reason};
use super::namespace;
use super::objects::Objects;
use super::policy::Policy;
use super::request_value::request_value;
use crate::matching::Matched;
use crate::report::decision::{
    Decision, Denial, Enforcement, Excepted, PolicyOutcome, Reason, RuleOutcome, RulePath, Verdict,
};
use crate::report::options::EvalOptions;
use crate::request::Request;
use crate::request::host::{Host, HostError, Scope};

const FAILURE_ANNOTATION: &str = "validation.policy.admission.k8s.io/validation_failure";
/// The prefix of the audit annotation for a request that an exception admits; the policy's name follows.
pub(super) const EXCEPTION_ANNOTATION: &str = "exception.admit.dev/";
/// Bytes of a published audit annotation.
const MAX_ANNOTATION: usize = 10 * 1024;

/// A policy and one of its bindings.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub(super) policy: &'a Policy,
    pub(super) binding: &'a Binding,
    pub(super) scope: Option<Scope>,
    pub(super) matched: &'a Matched<'a>,
}

/// Storage of the values of one decision.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    request_value: OnceCell<Value>,
    /// The Namespace as expressions see it; null where the request has none.
    namespace: OnceCell<Result<Value, HostError>>,
    answers: Answers,
}

/// Collects the results of all policies for one request.
#[derive(Debug)]
pub(crate) struct Collector<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) host: &'a dyn Host,
    pub(super) eval: EvalOptions<'a>,
    /// The arena that expressions of successive bindings use for their results.
    pub(super) arena: Bump,
    decision: Decision,
    /// The request as expressions see it, in its own form: most policies match it as it is.
    request_value: &'a OnceCell<Value>,
    /// The Namespace of the request, looked up when the first policy needs it.
    namespace: &'a OnceCell<Result<Value, HostError>>,
    /// The answers of the authorizer.
    pub(super) answers: &'a Answers,
    /// The exception from the current policy that the request has.
    excepted: Option<Excepted>,
    /// Why not all exceptions are known.
    doubt: Option<&'a HostError>,
}

impl<'a> Collector<'a> {
    /// Starts a collection whose values are stored in `workspace`.
    pub(crate) fn new(request: &'a Request<'a>, host: &'a dyn Host, workspace: &'a Workspace) -> Self {
        Self {
            request,
            host,
            eval: EvalOptions::default(),
            arena: Bump::new(),
            decision: Decision::default(),
            request_value: &workspace.request_value,
            namespace: &workspace.namespace,
            answers: &workspace.answers,
            excepted: None,
            doubt: None,
        }
    }

    /// Sets the caller's hooks, which record evaluations and stop them.
    pub(crate) fn with_options(self, eval: EvalOptions<'a>) -> Self {
        Self { eval, ..self }
    }

    /// Reserves space for the results of that many policies.
    pub(crate) fn expect(mut self, policies: usize) -> Self {
        self.decision.outcomes.reserve(policies);
        self
    }

    /// Sets why not all exceptions are known, which is reported with a denial.
    pub(crate) fn doubting(self, doubt: Option<&'a HostError>) -> Self {
        Self { doubt, ..self }
    }

    /// Sets the exception from the next policy that the request has.
    pub(crate) fn except(&mut self, excepted: Option<Excepted>) {
        self.excepted = excepted;
    }

    pub(crate) fn finish(self) -> Decision {
        self.decision
    }

    pub(super) fn objects(&self) -> Objects<'a> {
        Objects::of(self.request)
    }

    pub(super) fn request_node(&self) -> Node<'a> {
        let request = self.request;
        Node::from_json(
            self.request_value.get_or_init(|| request_value(request, &Matched::as_it_is(request))),
        )
    }

    pub(super) fn namespace(&self) -> Result<Node<'a>, &'a HostError> {
        self.namespace.get_or_init(|| self.look_up_namespace()).as_ref().map(Node::from_json)
    }

    fn look_up_namespace(&self) -> Result<Value, HostError> {
        let kind = &self.request.kind;
        let is_namespace = kind.group.is_empty() && kind.version == "v1" && kind.kind == "Namespace";
        let name = &self.request.namespace;
        if is_namespace || name.is_empty() {
            return Ok(Value::Null);
        }
        let missing = || HostError(format!("namespaces \"{name}\" not found"));
        Ok(namespace::shown(&*self.host.namespace(name)?.ok_or_else(missing)?))
    }

    /// A policy or binding that cannot be applied: denies unless failures are ignored.
    pub(super) fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, error: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        let message = format!("failed to configure {what}: {error}");
        let denies = denies(policy);
        let denied = denies && self.deny(policy, binding, &message, Reason::Invalid);
        let excepted = self.excepted.clone().filter(|_| denies);
        self.decision.outcomes.push(PolicyOutcome {
            policy: Arc::clone(&policy.name),
            binding: binding.map(|binding| Arc::clone(&binding.name)),
            param: None,
            skipped: None,
            rules: vec![RuleOutcome {
                path: if binding.is_some() { RulePath::ParamRef } else { RulePath::MatchConstraints },
                verdict: Verdict::Errored { message, denies },
                enforced: if denied { vec![Enforcement::Deny] } else { Vec::new() },
            }],
            excepted,
        });
    }

    pub(super) fn apply(
        &mut self,
        bound: &Bound<'_>,
        param: Option<&Value>,
        evaluation: Evaluation,
        annotations: &mut Vec<(String, Vec<String>)>,
    ) {
        let Bound { policy, binding, .. } = *bound;
        let mut rules = Vec::with_capacity(policy.rule_count());
        let mut denies_any = false;
        for (index, verdict) in evaluation.verdicts.into_iter().enumerate() {
            denies_any |= fails(&verdict) && binding.actions.contains(&Enforcement::Deny);
            let enforced = self.enforce(bound, index, &verdict);
            rules.push(RuleOutcome { path: RulePath::Validation(index), verdict, enforced });
        }
        for (index, annotation) in evaluation.annotations.into_iter().enumerate() {
            let (verdict, enforced) = match annotation {
                Annotation::Excluded => (Verdict::Admitted, Vec::new()),
                Annotation::Publish { key, value } => {
                    collect_annotation(annotations, key, truncated(value));
                    (Verdict::Admitted, Vec::new())
                }
                Annotation::Error { message, denies } => {
                    let denied = denies && self.deny(policy, Some(binding), &message, Reason::Invalid);
                    denies_any |= denies;
                    let enforced = if denied { vec![Enforcement::Deny] } else { Vec::new() };
                    (Verdict::Errored { message, denies }, enforced)
                }
            };
            rules.push(RuleOutcome { path: RulePath::AuditAnnotation(index), verdict, enforced });
        }
        let excepted = self.excepted.clone().filter(|_| denies_any);
        self.decision.outcomes.push(PolicyOutcome {
            policy: Arc::clone(&policy.name),
            binding: Some(Arc::clone(&binding.name)),
            param: param.map(param_name),
            skipped: evaluation.skipped,
            rules,
            excepted,
        });
    }

    /// Applies the binding's actions to a failed validation, and returns those taken.
    fn enforce(&mut self, bound: &Bound<'_>, index: usize, verdict: &Verdict) -> Vec<Enforcement> {
        let Bound { policy, binding, .. } = *bound;
        let message = match verdict {
            Verdict::Failed { message, .. } | Verdict::Errored { message, denies: true } => message,
            Verdict::Admitted | Verdict::Errored { denies: false, .. } => return Vec::new(),
        };
        let mut enforced = binding.actions.clone();
        for action in &binding.actions {
            match action {
                Enforcement::Deny => {
                    if !self.deny(policy, Some(binding), message, reason(verdict)) {
                        enforced.retain(|action| *action != Enforcement::Deny);
                    }
                }
                Enforcement::Warn => self.decision.warnings.push(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                    policy.name, binding.name
                )),
                Enforcement::Audit => {
                    let value = failure_annotation(binding, index, message);
                    self.annotate(FAILURE_ANNOTATION.to_owned(), value);
                }
            }
        }
        enforced
    }

    /// Denies the request, or only warns if an exception applies. The first denial is the one that is reported.
    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, message: &str, reason: Reason) -> bool {
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        if let Some(excepted) = &self.excepted {
            let would = if excepted.in_force { "would deny this request: " } else { "denies this request: " };
            let told = if excepted.in_force { message } else { "its exception has ended" };
            let warning =
                format!("ValidatingAdmissionPolicy '{}'{with} {would}{told}; {excepted}", policy.name);
            let (in_force, key) = (excepted.in_force, format!("{EXCEPTION_ANNOTATION}{}", policy.name));
            let noted = excepted.to_string();
            if !self.decision.warnings.contains(&warning) {
                self.decision.warnings.push(warning);
            }
            if in_force {
                self.annotate(key, noted);
                return false;
            }
        }
        if let Some(error) = self.doubt {
            let warning = format!(
                "ValidatingAdmissionPolicy '{}'{with} denies this request: whether an exception lets it through is not known: {error}",
                policy.name
            );
            if !self.decision.warnings.contains(&warning) {
                self.decision.warnings.push(warning);
            }
        }
        if self.decision.denial.is_some() {
            return true;
        }
        let message = format!("ValidatingAdmissionPolicy '{}'{with} denied request: {message}", policy.name);
        self.decision.denial = Some(Denial::new(self.request, message, reason));
        true
    }

    /// An annotation that is set is never overwritten.
    pub(super) fn annotate(&mut self, key: String, value: String) {
        self.decision.audit_annotations.entry(key).or_insert(value);
    }
}

/// Whether the actions of a binding follow.
fn fails(verdict: &Verdict) -> bool {
    match verdict {
        Verdict::Failed { .. } | Verdict::Errored { denies: true, .. } => true,
        Verdict::Admitted | Verdict::Errored { denies: false, .. } => false,
    }
}

fn collect_annotation(annotations: &mut Vec<(String, Vec<String>)>, key: String, value: String) {
    match annotations.iter_mut().find(|(known, _)| *known == key) {
        Some((_, values)) if values.contains(&value) => {}
        Some((_, values)) => values.push(value),
        None => annotations.push((key, vec![value])),
    }
}

/// Truncates at the last byte that fits. Each remaining byte of a character that is cut is shown as a replacement character, as in Go's
/// encoding.
fn truncated(mut value: String) -> String {
    if value.len() > MAX_ANNOTATION {
        let whole = value.floor_char_boundary(MAX_ANNOTATION);
        value.truncate(whole);
        value.extend(std::iter::repeat_n(char::REPLACEMENT_CHARACTER, MAX_ANNOTATION.saturating_sub(whole)));
    }
    value
}

pub(super) fn param_name(param: &Value) -> String {
    let part = |field: &str| {
        param
            .get("metadata")
            .and_then(|metadata| metadata.get(field))
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    match part("namespace") {
        "" => part("name").to_owned(),
        namespace => format!("{namespace}/{}", part("name")),
    }
}

/// The JSON that kube-apiserver publishes about a failed validation.
fn failure_annotation(binding: &Binding, index: usize, message: &str) -> String {
    let text = |text: &str| go::json::text(&json!(text));
    let actions: Vec<&str> = binding.actions.iter().map(|action| action.as_str()).collect();
    format!(
        "[{{\"message\":{},\"policy\":{},\"binding\":{},\"expressionIndex\":{index},\"validationActions\":{}}}]",
        text(message),
        text(&binding.policy_name),
        text(&binding.name),
        go::json::text(&json!(actions)),
    )
}
