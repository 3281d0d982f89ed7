//! One policy with its bindings on one request: matching, params, evaluation, and what each binding makes of it.

use admit_cel::Node;
use bumpalo::Bump;

use super::authorizer::HostAuthorizer;
use super::binding::Binding;
use super::collector::Collector;
use super::evaluate::evaluate;
use super::objects::{Converted, node};
use super::params;
use super::policy::Policy;
use super::request_value::request_value;
use super::session::Inputs;
use crate::host::Scope;
use crate::matching::Matched;

/// A policy and one of its bindings.
#[derive(Clone, Copy)]
pub(super) struct Bound<'a> {
    pub(super) policy: &'a Policy,
    pub(super) binding: &'a Binding,
    pub(super) scope: Option<Scope>,
    pub(super) matched: &'a Matched,
}

/// Decides `policy` with `bindings`, adding to `collector`.
pub(crate) fn decide(policy: &Policy, bindings: &[Binding], collector: &mut Collector<'_>) {
    if bindings.is_empty() {
        return;
    }
    let (request, host) = (collector.request, collector.host);
    let matched = match policy.constraints.matches(request, host) {
        Ok(Some(matched)) => matched,
        Ok(None) => return,
        Err(error) => {
            collector.misconfigured(policy, None, &error.to_string());
            return;
        }
    };
    let scope = match &policy.param_kind {
        None => None,
        Some(kind) => match host.param_scope(kind) {
            Some(scope) => Some(scope),
            None => {
                let error = format!(
                    "failed to find resource referenced by paramKind: '{}, Kind={}'",
                    kind.api_version(),
                    kind.kind
                );
                collector.misconfigured(policy, None, &error);
                return;
            }
        },
    };
    let mut annotations: Vec<(String, Vec<String>)> = Vec::new();
    for binding in bindings {
        decide_binding(&Bound { policy, binding, scope, matched: &matched }, collector, &mut annotations);
    }
    for (key, values) in annotations {
        collector.annotate(format!("{}/{key}", policy.name), values.join(", "));
    }
}

fn decide_binding(
    bound: &Bound<'_>,
    collector: &mut Collector<'_>,
    annotations: &mut Vec<(String, Vec<String>)>,
) {
    let Bound { policy, binding, scope, matched } = *bound;
    let (request, host) = (collector.request, collector.host);
    let matches = match &binding.match_resources {
        None => Ok(true),
        Some(resources) => resources.matches(request, host).map(|matched| matched.is_some()),
    };
    match matches {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            collector.misconfigured(policy, Some(binding), &error.to_string());
            return;
        }
    }
    let params = match params::collect(policy, binding, scope, request, host) {
        Ok(params) => params,
        Err(error) => {
            collector.misconfigured(policy, Some(binding), &error.to_string());
            return;
        }
    };
    if params.is_empty() {
        return;
    }
    // Not knowing the namespace is a failure of the policies that look at it, and of no other.
    let namespace = if policy.uses_namespace() { collector.namespace() } else { Ok(Node::Null) };
    let namespace = match namespace {
        Ok(namespace) => namespace,
        Err(error) => {
            collector.misconfigured(policy, Some(binding), &error.to_string());
            return;
        }
    };
    // Objects that have to be converted live as long as this binding only.
    let arena = Bump::new();
    let converted = match Converted::of(request, matched, host) {
        Ok(converted) => converted,
        Err(error) => {
            let error = format!("failed to convert object version: {error}");
            collector.misconfigured(policy, Some(binding), &error);
            return;
        }
    };
    let objects = match &converted {
        Some(converted) => converted.nodes(),
        None => collector.objects(),
    };
    // A scale is of one kind whatever version of the resource it belongs to, so the resource counts too.
    let as_it_is = matched.kind == request.kind && matched.resource == request.resource;
    let changed = (!as_it_is).then(|| request_value(request, matched));
    let request_node = match &changed {
        Some(changed) => Node::from_json(changed),
        None if policy.uses_request() => collector.request_node(),
        None => Node::Null,
    };
    let authorizer = HostAuthorizer::new(host, request, collector.answers);
    for param in params {
        let inputs = Inputs {
            arena: &arena,
            object: objects.object,
            old_object: objects.old_object,
            request: request_node,
            params: node(param.as_deref()),
            namespace,
            authorizer: Some(&authorizer),
            oversight: collector.oversight,
        };
        let evaluation = evaluate(policy, inputs);
        collector.apply(bound, param.as_deref(), evaluation, annotations);
    }
}
