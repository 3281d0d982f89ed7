//! Decides single requests as a server does, with admit-policy: defaulting and validation, mutating policies, validating policies.

use std::cell::Cell;
use std::sync::Arc;

use admit_policy::crd::Write;
use admit_policy::suite::{self, Outcome, Suite};
use admit_policy::{
    AccessAnswers, Builtins, Catalogue, Decision, Documents, Enforcement, EvalOptions, KnownKinds, Object,
    Operation, Policy, PolicySet, Request, RulePath, Skipped, Status, Verdict, with_system_fields,
};
use serde_json::{Value, json};
use thiserror::Error;

use super::ask::Ask;

/// A server that applies all policies, and watches one of them.
#[derive(Debug)]
pub(super) struct Judge<'a> {
    pub(super) set: &'a PolicySet,
    pub(super) policy: &'a Policy,
    tried: Cell<usize>,
}

/// The result of one request.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged {
    /// Why the server rejects it before policies run; `None` if it does not.
    pub(super) refused: Option<String>,
    /// Whether the watched policy denies it.
    pub(super) denies: bool,
    /// The indices of the validations that fail.
    pub(super) validations: Vec<usize>,
    /// The error of the policy that its failurePolicy ignored.
    pub(super) erred: Option<String>,
    /// Whether no policy denies it.
    pub(super) admitted: bool,
    /// The objects with defaults, as policies see them.
    pub(super) object: Option<Value>,
    pub(super) old_object: Option<Value>,
}

impl Judged {
    /// Reports whether the server accepts it and the watched policy admits it.
    pub(super) fn passes(&self) -> bool {
        self.refused.is_none() && !self.denies
    }
}

/// Why a server rejects an object before policies run.
#[derive(Debug, Error)]
enum Untaken {
    /// A field is invalid or unknown, with the server's message.
    #[error("{0}")]
    Field(String),
    #[error("{}", .0.message)]
    Refused(Box<Status>),
}

struct Taken {
    object: Option<Value>,
    old: Option<Value>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(set: &'a PolicySet, policy: &'a Policy) -> Self {
        Self { set, policy, tried: Cell::new(0) }
    }

    pub(super) fn tried(&self) -> usize {
        self.tried.get()
    }

    pub(super) fn documents(&self) -> &'a Documents {
        self.set.documents()
    }

    pub(super) fn catalogue(&self) -> Option<&'static Catalogue> {
        self.documents().builtins().and_then(Builtins::catalogue)
    }

    pub(super) fn ask(&self, ask: &Ask) -> Judged {
        self.tried.set(self.tried.get().saturating_add(1));
        let mut host = self.documents().clone();
        ask.existing.iter().for_each(|object| host.insert(Arc::clone(object)));
        let answers = ask.authorizer.as_ref().and_then(|answers| AccessAnswers::read(answers).ok());
        if let Some(answers) = answers {
            host.set_answers(Arc::new(answers));
        }
        host.ensure_namespace(&ask.namespace);
        if ask.is_renaming() {
            return Judged {
                refused: Some("an update names the object that is there".to_owned()),
                ..Judged::default()
            };
        }
        let taken = match take(ask, ask.object.as_ref(), &host) {
            Ok(taken) => taken,
            Err(untaken) => return Judged { refused: Some(untaken.to_string()), ..Judged::default() },
        };
        let mut request = request(ask, &taken);
        let mut judged = Judged { old_object: taken.old, ..Judged::default() };
        if let Some(refused) = self.mutate(ask, &mut request, &host) {
            judged.refused = Some(refused);
            return judged;
        }
        judged.object = request.object.as_ref().map(|object| object.value().into_owned());
        with_system_fields(&mut request, &host, None);
        let decision = self.set.decide_with(&request, &host, |_| true, EvalOptions::default());
        self.read(&decision, &mut judged);
        judged
    }

    /// Applies mutating policies to the object; returns the reason if they reject it.
    fn mutate(&self, ask: &Ask, request: &mut Request<'_>, host: &Documents) -> Option<String> {
        self.set.mutating_policies().next()?;
        let kinds =
            KnownKinds { documents: host, builtins: host.builtins().map(|kinds| kinds as &dyn Builtins) };
        let mutated = self.set.mutate_fully(request, (host, &kinds), EvalOptions::default(), |_| true);
        if let Some(denial) = mutated.denial {
            return Some(denial.message);
        }
        let object = mutated.object?;
        match take(ask, Some(&object), host) {
            Ok(taken) => request.object = taken.object.map(Object::from),
            Err(untaken) => return Some(untaken.to_string()),
        }
        None
    }

    fn read(&self, decision: &Decision, judged: &mut Judged) {
        judged.admitted = decision.denial.is_none();
        for outcome in decision.outcomes.iter().filter(|outcome| outcome.policy == self.policy.name) {
            if let Some(Skipped::Failed { message }) = &outcome.skipped {
                judged.erred = Some(message.clone());
            }
            for rule in &outcome.rules {
                let is_enforced = rule.enforced.contains(&Enforcement::Deny) && !judged.admitted;
                match &rule.verdict {
                    Verdict::Failed { .. } if is_enforced => {
                        judged.denies = true;
                        if let RulePath::Validation(index) = rule.path {
                            judged.validations.push(index);
                        }
                    }
                    Verdict::Errored { denies: true, .. } if is_enforced => judged.denies = true,
                    Verdict::Errored { denies: false, message } => judged.erred = Some(message.clone()),
                    Verdict::Failed { .. } | Verdict::Errored { .. } | Verdict::Admitted => {}
                }
            }
        }
    }

    /// Evaluates the request as `admit test` does, against the watched policy alone or against all.
    pub(super) fn confirmed(&self, ask: &Ask, alone: bool) -> Option<Outcome> {
        let policies: &[&str] = if alone { &[&self.policy.name] } else { &[] };
        let document = json!({
            "apiVersion": suite::API_VERSION, "kind": "Suite",
            "cases": [ask.case("asked", policies, "deny")],
        });
        let builtins = self.documents().builtins().map(|kinds| kinds as &dyn Builtins);
        let suite = Suite::decode_knowing(&document, builtins).ok()?;
        let result = suite::run(suite.cases.first()?, self.set);
        if result.refused {
            return None;
        }
        // No policy sees an object that its definition rejects.
        let is_by_policy = result.outcome != Outcome::Deny || result.policy.is_some();
        is_by_policy.then_some(result.outcome)
    }
}

/// Does what a server does before it runs policies.
fn take(ask: &Ask, object: Option<&Value>, host: &Documents) -> Result<Taken, Untaken> {
    let as_sent = Taken { object: object.cloned(), old: ask.old_object.clone() };
    let Some(new) = object.filter(|_| matches!(ask.operation, Operation::Create | Operation::Update)) else {
        return Ok(as_sent);
    };
    let (kind, old) = (ask.kind(), ask.old_object.as_ref());
    if let Some((crd, version)) = host.crd_of(&kind).and_then(|crd| Some((crd, crd.version(&kind.version)?)))
    {
        let old = old.map(|old| version.stored(old));
        let (status, eval) = (ask.subresource == "status", EvalOptions::default());
        let written = Write { crd, version, old: old.as_ref(), status, eval }.decide(new);
        return match written.errors.first() {
            Some(error) => Err(Untaken::Field(error.to_string())),
            None => Ok(Taken { object: Some(written.object), old }),
        };
    }
    if ask.resource != host.resource_of(&kind) {
        return Ok(as_sent);
    }
    let prepared = host.builtins().and_then(|kinds| kinds.written(new, old, &ask.subresource));
    let Some(prepared) = prepared else { return Ok(as_sent) };
    if let Some(strict) = prepared.strict.first() {
        return Err(Untaken::Field(strict.clone()));
    }
    match prepared.refusal {
        Some(status) => Err(Untaken::Refused(Box::new(status))),
        None => Ok(Taken { object: Some(prepared.object), old: prepared.old }),
    }
}

fn request(ask: &Ask, taken: &Taken) -> Request<'static> {
    let kind = ask.kind();
    Request {
        uid: "00000000-0000-0000-0000-000000000000".to_owned(),
        request_kind: kind.clone(),
        request_resource: ask.resource.clone(),
        request_subresource: ask.subresource.clone(),
        kind,
        resource: ask.resource.clone(),
        subresource: ask.subresource.clone(),
        name: ask.name().to_owned(),
        namespace: ask.namespace.clone(),
        operation: ask.operation,
        user: ask.user.clone(),
        object: taken.object.clone().map(Object::from),
        old_object: taken.old.clone().map(Object::from),
        options: None,
        dry_run: false,
    }
}
