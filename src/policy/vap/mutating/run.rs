//! Runs the mutations of all policies on a request in sequence, each on the result of the previous ones.
//!
//! As upstream, all matching policies, bindings and params are determined before the first one runs. An error of one is reported after
//! all have run; only an error that no failure policy covers ends the run.

use serde_json::Value;

use super::invocation::{Invocation, Pass, Seen, Version};
use super::made::Room;
use super::outcomes::{Mutated, enforced, outcome};
use super::policy::{MutatingPolicy, Mutation};
use super::refusals::{denied, direct, internal};
use super::reinvocation::{Reinvocation, key};
use super::schemas::Unmade;
use crate::matching::{MatchError, Matched};
use crate::report::decision::{PolicyOutcome, Reason, RuleOutcome, RulePath, Skipped, Status, Verdict};
use crate::request::host::{HostError, Scope};
use crate::vap::binding::Binding;
use crate::vap::collector::{Collector, Workspace};
use crate::vap::evaluate::denies;
use crate::vap::params::{self, Params};
use crate::vap::policy::Policy;

/// A policy that may match, with its bindings and the form in which it sees the request.
pub(crate) type Candidate<'p> = (&'p MutatingPolicy, &'p [Binding], Matching<'p>);
type Matching<'p> = Result<Option<Matched<'p>>, MatchError>;

/// Runs the policies; the object of the request may already be changed by others.
pub(crate) fn mutate(
    pass: &Pass<'_>,
    candidates: &[Candidate<'_>],
    reinvocation: &mut Reinvocation,
) -> Mutated {
    let mut run =
        Run { pass, versions: Vec::new(), errors: Vec::new(), outcomes: Vec::new(), room: Room::default() };
    let invocations = run.invocations(candidates);
    let mut refused = None;
    let mut object = None;
    if !invocations.is_empty() {
        let before = pass.request.object.as_ref().map(|object| object.value());
        reinvocation.begin(before.as_deref());
        match run.all(&invocations, reinvocation) {
            Ok(made) => object = made,
            Err(status) => refused = Some(status),
        }
        reinvocation.end(object.as_ref().or(before.as_deref()));
    }
    let denial = refused.map(|status| direct(*status)).or_else(|| denied(pass.request, &run.errors));
    Mutated { object, denial, outcomes: run.outcomes }
}

struct Run<'r> {
    pass: &'r Pass<'r>,
    versions: Vec<Version>,
    /// Errors that deny the request, in order of occurrence.
    errors: Vec<(String, Option<Reason>)>,
    outcomes: Vec<PolicyOutcome>,
    room: Room,
}

impl<'r> Run<'r> {
    fn invocations<'p>(&mut self, candidates: &'p [Candidate<'p>]) -> Vec<Invocation<'p>> {
        let Pass { host, .. } = *self.pass;
        let mut invocations = Vec::new();
        for (policy, bindings, matched) in candidates.iter().filter(|(_, bindings, _)| !bindings.is_empty()) {
            let common = policy.common();
            let matched = match matched {
                Ok(Some(matched)) => matched,
                Ok(None) => continue,
                Err(error) => {
                    self.misconfigured(common, None, &error.to_string());
                    continue;
                }
            };
            let scope = match &common.param_kind {
                None => None,
                Some(kind) => match host.param_scope(kind) {
                    Some(scope) => Some(scope),
                    None => {
                        let (version, kind) = (kind.api_version(), &kind.kind);
                        let text = format!(
                            "failed to find resource referenced by paramKind: '{version}, Kind={kind}'"
                        );
                        self.misconfigured(common, None, &text);
                        continue;
                    }
                },
            };
            for binding in *bindings {
                match self.bound(policy, binding, matched, scope) {
                    Ok(found) => invocations.extend(found),
                    Err((of_binding, text)) => {
                        self.misconfigured(common, of_binding.then_some(binding), &text);
                    }
                }
            }
        }
        invocations
    }

    /// The invocations of a binding; where they cannot be had, whether the binding is at fault, and why.
    fn bound<'p>(
        &mut self,
        policy: &'p MutatingPolicy,
        binding: &'p Binding,
        matched: &'p Matched<'p>,
        scope: Option<Scope>,
    ) -> Result<Vec<Invocation<'p>>, (bool, String)> {
        let Pass { request, host, .. } = *self.pass;
        if let Some(resources) = &binding.match_resources {
            let of_binding = resources.matches(request, host).map_err(|error| (true, error.to_string()))?;
            if of_binding.is_none() {
                return Ok(Vec::new());
            }
        }
        self.version(matched).map_err(|error| (false, error.to_string()))?;
        let params = params::collect(policy.common(), binding, scope, request, host);
        Ok(match params.map_err(|error| (true, error.to_string()))? {
            Params::Without => vec![Invocation { policy, binding, matched, param: None }],
            Params::Each(params) => {
                let with = |param| Invocation { policy, binding, matched, param: Some(param) };
                params.into_iter().map(with).collect()
            }
        })
    }

    /// The place of the version in which a policy sees the objects.
    fn version(&mut self, matched: &Matched<'_>) -> Result<usize, HostError> {
        let Pass { request, host, .. } = *self.pass;
        if let Some(at) = self.versions.iter().position(|version| version.kind == *matched.kind) {
            return Ok(at);
        }
        let is_own = matched.is_as_it_is() || *matched.kind == request.kind;
        let seen = |object: &Option<crate::read::object::Object<'_>>| match object {
            Some(object) if is_own => Ok(Some(object.value().into_owned())),
            Some(object) => host.convert(&object.value(), &matched.kind).map(Some),
            None => Ok(None),
        };
        let (object, old) = (seen(&request.object)?, seen(&request.old_object)?);
        self.versions.push(Version { kind: (*matched.kind).clone(), object, old, is_changed: false });
        Ok(self.versions.len().saturating_sub(1))
    }

    /// Runs the invocations, and returns the object that they leave if they changed it.
    fn all(
        &mut self,
        invocations: &[Invocation<'_>],
        reinvocation: &mut Reinvocation,
    ) -> Result<Option<Value>, Box<Status>> {
        let Pass { request, host, .. } = *self.pass;
        let workspace = Workspace::default();
        let shared = Collector::new(request, host, &workspace);
        let mut last = None;
        for invocation in invocations {
            let at = self.version(invocation.matched).map_err(|error| internal(&error.to_string()))?;
            if self.invoke(invocation, at, &shared, reinvocation)? {
                last = Some(at);
            }
        }
        let Some(version) = last.and_then(|at| self.versions.get_mut(at)) else { return Ok(None) };
        let Some(object) = version.object.take().filter(|_| version.is_changed) else { return Ok(None) };
        reinvocation.changed();
        if version.kind == request.kind {
            return Ok(Some(object));
        }
        let converted = host.convert(&object, &request.kind);
        converted.map(Some).map_err(|error| internal(&format!("failed to convert object: {error}")))
    }

    /// Runs the mutations of a policy, and returns whether it was their turn.
    fn invoke(
        &mut self,
        invocation: &Invocation<'_>,
        at: usize,
        shared: &Collector<'_>,
        reinvocation: &mut Reinvocation,
    ) -> Result<bool, Box<Status>> {
        let Invocation { policy, binding, param, .. } = invocation;
        let common = policy.common();
        let skipped = match invocation.conditions(&self.seen(at, shared)) {
            Ok(skipped) => skipped.or_else(|| self.excepted(common)),
            Err(why) => {
                self.failed(invocation, &why.to_string(), RulePath::Mutation(0));
                return Ok(false);
            }
        };
        let with = (Some(*binding), param.as_deref());
        if skipped.is_some() {
            self.outcomes.push(outcome(common, with, skipped, Vec::new()));
            return Ok(false);
        }
        let key = key((&common.name, &binding.name), param.as_deref());
        if reinvocation.is_left_out(&key) {
            return Ok(false);
        }
        let before = self.versions.get(at).and_then(|version| version.object.clone());
        let mut rules = Vec::with_capacity(policy.mutations.len());
        for (index, mutation) in policy.mutations.iter().enumerate() {
            if before.is_none() {
                break;
            }
            let verdict = match invocation.apply(mutation, &self.seen(at, shared), &self.room) {
                Ok(object) => {
                    self.made(common, mutation, at, object);
                    Verdict::Admitted
                }
                Err(Unmade::Refused(status)) => return Err(status),
                Err(Unmade::Failed(message)) => {
                    let denies = self.error(common, Some(binding), &message, Some(Reason::Invalid));
                    Verdict::Errored { message, denies }
                }
            };
            let enforced = enforced(&verdict);
            rules.push(RuleOutcome { path: RulePath::Mutation(index), verdict, enforced });
        }
        self.outcomes.push(outcome(common, with, None, rules));
        if before.as_ref() != self.versions.get(at).and_then(|version| version.object.as_ref()) {
            reinvocation.changed();
        }
        if policy.is_reinvoked {
            reinvocation.ran(key);
        }
        Ok(true)
    }

    /// Replaces the object by the result of a mutation.
    fn made(&mut self, policy: &Policy, mutation: &Mutation, at: usize, object: Value) {
        let Some(version) = self.versions.get_mut(at) else { return };
        if let Some(recording) = self.pass.eval.recording {
            let before = version.object.as_ref().unwrap_or(&Value::Null);
            recording.changed(&policy.id_of(&mutation.expression), before, &object);
        }
        (version.object, version.is_changed) = (Some(object), true);
    }

    fn seen<'s>(&'s self, at: usize, shared: &'s Collector<'s>) -> Seen<'s> {
        Seen { pass: self.pass, version: self.versions.get(at), shared }
    }

    fn failed(&mut self, invocation: &Invocation<'_>, message: &str, path: RulePath) {
        let Invocation { policy, binding, param, .. } = invocation;
        self.errored(
            policy.common(),
            (Some(binding), param.as_deref()),
            (message, Some(Reason::Invalid)),
            path,
        );
    }

    fn misconfigured(&mut self, policy: &Policy, binding: Option<&Binding>, error: &str) {
        let what = if binding.is_some() { "binding" } else { "policy" };
        let message = format!("failed to configure {what}: {error}");
        let path = if binding.is_some() { RulePath::ParamRef } else { RulePath::MatchConstraints };
        self.errored(policy, (binding, None), (&message, None), path);
    }

    /// A policy that cannot be run, unless an exception lets the request pass it by.
    fn errored(
        &mut self,
        policy: &Policy,
        with: (Option<&Binding>, Option<&Value>),
        (message, reason): (&str, Option<Reason>),
        path: RulePath,
    ) {
        if let Some(skipped) = self.excepted(policy) {
            self.outcomes.push(outcome(policy, with, Some(skipped), Vec::new()));
            return;
        }
        let denies = self.error(policy, with.0, message, reason);
        let verdict = Verdict::Errored { message: message.to_owned(), denies };
        let enforced = enforced(&verdict);
        let rules = vec![RuleOutcome { path, verdict, enforced }];
        self.outcomes.push(outcome(policy, with, None, rules));
    }

    /// The exception by which the request passes a policy by.
    fn excepted(&self, policy: &Policy) -> Option<Skipped> {
        let found = self.pass.excepting.from(&policy.name)?;
        found.in_force.then_some(Skipped::Excepted(found))
    }

    /// Notes an error, and returns whether it denies.
    fn error(
        &mut self,
        policy: &Policy,
        binding: Option<&Binding>,
        message: &str,
        reason: Option<Reason>,
    ) -> bool {
        let denies = denies(policy);
        if denies {
            let told = match binding {
                Some(binding) => format!(
                    "policy '{}' with binding '{}' denied request: {message}",
                    policy.name, binding.name
                ),
                None => format!("policy \"{}\" denied request: {message}", policy.name),
            };
            self.errors.push((told, reason));
        }
        denies
    }
}
