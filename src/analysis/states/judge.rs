//! Decides single writes as a server does, with admit-policy: definition, mutating policies, validating policies.
//!
//! Unlike a server, it also runs the policies if the definition refuses, to collect all objections; each of them alone refuses the
//! write.

use std::sync::Arc;

use admit_policy::crd::{CompiledCrd, CrdVersion, Write};
use admit_policy::{
    AccessAnswers, Builtins, Decision, Documents, Enforcement, EvalOptions, GroupVersionKind, KnownKinds,
    Object, Operation, PolicySet, Recording, Request, RulePath, Scope, UserInfo, Verdict, with_system_fields,
};
use serde_json::{Value, json};

/// The namespace of the objects that are tried.
pub(super) const NAMESPACE: &str = "default";

/// A server that stores objects of one kind.
#[derive(Debug)]
pub(super) struct Judge<'s> {
    set: &'s PolicySet,
    host: Documents,
    pub(super) kind: GroupVersionKind,
    defined: Option<(Arc<CompiledCrd>, Arc<CrdVersion>)>,
    /// Whether updates go to the status subresource.
    pub(super) status: bool,
    /// Whether the status and everything else are written by separate requests.
    pub(super) is_split: bool,
}

/// The result of one write.
#[derive(Clone, Debug, Default)]
pub(super) struct Trial {
    /// The object as it would be stored.
    pub(super) stored: Value,
    /// Empty where it is admitted.
    pub(super) objections: Vec<Objection>,
}

/// A reason why a write is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Objection {
    pub(super) by: Speaker,
    pub(super) message: String,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Speaker {
    /// The definition, or the validation of a built-in kind.
    Server {
        /// The field path, without indices.
        field: String,
        reason: String,
    },
    Policy {
        name: String,
        /// The index of the validation; `None` for other reasons of the policy.
        validation: Option<usize>,
    },
}

impl<'s> Judge<'s> {
    pub(super) fn new(set: &'s PolicySet, kind: GroupVersionKind, status: bool) -> Self {
        let mut host = set.documents().clone();
        host.ensure_namespace(NAMESPACE);
        // Authorization checks succeed: the picture shows what rules allow, not what roles grant.
        if let Ok(answers) = AccessAnswers::read(&json!([{"allowed": true}])) {
            host.set_answers(Arc::new(answers));
        }
        let defined = host.crd_of(&kind).cloned().and_then(|crd| {
            let version = Arc::clone(crd.version(&kind.version)?);
            Some((crd, version))
        });
        let is_split = defined.as_ref().map_or(status, |(crd, version)| {
            crd.definition().version(version.name()).is_some_and(|version| version.status_subresource)
        });
        let status = status && is_split;
        Self { set, host, kind, defined, status, is_split }
    }

    /// Reports whether the kind is namespaced.
    pub(super) fn is_namespaced(&self) -> bool {
        self.host.scope_of(&self.kind) == Scope::Namespaced
    }

    /// Reports whether policies mutate objects.
    pub(super) fn mutates(&self) -> bool {
        self.set.mutating_policies().next().is_some()
    }

    pub(super) fn definition(&self) -> Option<(&CompiledCrd, &CrdVersion)> {
        self.defined.as_ref().map(|(crd, version)| (&**crd, &**version))
    }

    /// Returns the object as a server stores it, with defaults.
    pub(super) fn stored(&self, object: &Value) -> Value {
        self.defined.as_ref().map_or_else(|| object.clone(), |(_, version)| version.stored(object))
    }

    /// Creates `new`, or replaces `old` by it.
    pub(super) fn write(&self, old: Option<&Value>, new: &Value, user: &UserInfo) -> Trial {
        self.watched(old, new, user, None)
    }

    /// Like [`Self::write`]; also records the values of subexpressions.
    pub(super) fn watched(
        &self,
        old: Option<&Value>,
        new: &Value,
        user: &UserInfo,
        recording: Option<&Recording>,
    ) -> Trial {
        let eval = EvalOptions::from(recording);
        let mut trial = Trial::default();
        self.take(old, new, eval, &mut trial);
        let status = self.status && old.is_some();
        let mut request = self.request(old, trial.stored.clone(), status, user);
        if self.mutates() {
            let kinds = KnownKinds { documents: &self.host, builtins: self.builtins() };
            let around: (&dyn admit_policy::Host, &dyn admit_policy::Schemas) = (&self.host, &kinds);
            let mutated = self.set.mutate_fully(&request, around, eval, |_| true);
            if let Some(object) = mutated.object {
                trial.objections.clear();
                self.take(old, &object, eval, &mut trial);
                request.object = Some(Object::from(trial.stored.clone()));
            }
            trial.objections.extend(mutated.denial.map(|denial| Objection {
                by: Speaker::Policy { name: String::new(), validation: None },
                message: denial.message,
            }));
        }
        with_system_fields(&mut request, &self.host, None);
        let decision = self.set.decide_with(&request, &self.host, |_| true, eval);
        trial.objections.extend(objections(&decision));
        trial
    }

    fn builtins(&self) -> Option<&'static dyn Builtins> {
        self.host.builtins()
    }

    /// Does what a server does before it runs policies.
    fn take(&self, old: Option<&Value>, new: &Value, eval: EvalOptions<'_>, trial: &mut Trial) {
        let status = self.status && old.is_some();
        if let Some((crd, version)) = &self.defined {
            let written = Write { crd, version, old, status, eval }.decide(new);
            let objections = written.errors.iter().map(|error| {
                let cause = error.cause();
                Objection {
                    by: Speaker::Server {
                        field: without_indices(&cause.field),
                        reason: cause.reason.to_string(),
                    },
                    message: if error.detail.is_empty() { cause.message } else { error.detail.clone() },
                }
            });
            trial.objections.extend(objections);
            trial.stored = written.object;
            return;
        }
        let prepared = self.builtins().and_then(|kinds| kinds.prepare(new, old, status));
        let Some(prepared) = prepared else {
            trial.stored = new.clone();
            return;
        };
        trial.objections.extend(prepared.refusal.map(|status| Objection {
            by: Speaker::Server { field: String::new(), reason: String::new() },
            message: status.message,
        }));
        trial.stored = prepared.object;
    }

    fn request(&self, old: Option<&Value>, object: Value, status: bool, user: &UserInfo) -> Request<'static> {
        let resource = self.host.resource_of(&self.kind);
        let subresource = if status { "status" } else { "" };
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
        Request {
            uid: "00000000-0000-0000-0000-000000000000".to_owned(),
            request_kind: self.kind.clone(),
            request_resource: resource.clone(),
            request_subresource: subresource.to_owned(),
            kind: self.kind.clone(),
            resource,
            subresource: subresource.to_owned(),
            name,
            namespace: namespace.to_owned(),
            operation: if old.is_some() { Operation::Update } else { Operation::Create },
            user: user.clone(),
            object: Some(Object::from(object)),
            old_object: old.cloned().map(Object::from),
            options: None,
            dry_run: false,
        }
    }
}

fn objections(decision: &Decision) -> Vec<Objection> {
    let mut found = Vec::new();
    for outcome in &decision.outcomes {
        for rule in outcome.rules.iter().filter(|rule| rule.enforced.contains(&Enforcement::Deny)) {
            let message = match &rule.verdict {
                Verdict::Admitted => continue,
                Verdict::Failed { message, .. } | Verdict::Errored { message, .. } => message.clone(),
            };
            let validation = match rule.path {
                RulePath::Validation(index) => Some(index),
                RulePath::MatchConstraints
                | RulePath::ParamRef
                | RulePath::AuditAnnotation(_)
                | RulePath::Mutation(_) => None,
            };
            let by = Speaker::Policy { name: outcome.policy.to_string(), validation };
            found.push(Objection { by, message });
        }
    }
    if let (Some(denial), true) = (&decision.denial, found.is_empty()) {
        let by = Speaker::Policy { name: String::new(), validation: None };
        found.push(Objection { by, message: denial.message.clone() });
    }
    found
}

/// Removes indices from a path: `spec.items[0].name` becomes `spec.items.[].name`, as in schemas.
fn without_indices(field: &str) -> String {
    let mut steps = Vec::new();
    for step in field.split('.') {
        match step.split_once('[') {
            Some((name, _)) => {
                steps.extend([name, crate::reads::EACH].into_iter().filter(|step| !step.is_empty()))
            }
            None => steps.push(step),
        }
    }
    steps.join(".")
}
