//! Decides one request by one policy with its bindings: matching, params, evaluation, and the action of each binding.

use std::mem;

use admit_cel::Node;
use serde_json::Value;
use thiserror::Error;

use super::authorizer::HostAuthorizer;
use super::binding::Binding;
use super::collector::{Bound, Collector};
use super::evaluate::evaluate;
use super::objects::{Converted, node};
use super::params::{self, ParamError, Params};
use super::policy::Policy;
use super::request_value::{condition_request_value, request_value};
use super::session::Inputs;
use crate::matching::{MatchError, Matched};
use crate::request::host::HostError;

/// Decides a request by `policy` with `bindings`, which it matches as `matched`, and adds the results to `collector`.
pub(crate) fn decide(
    policy: &Policy,
    bindings: &[Binding],
    matched: Result<Option<Matched<'_>>, MatchError>,
    collector: &mut Collector<'_>,
) {
    if bindings.is_empty() {
        return;
    }
    let host = collector.host;
    let matched = match matched {
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

/// What a binding evaluates its policy with.
struct Prepared<'a> {
    params: Params,
    namespace: Node<'a>,
    /// Objects that had to be converted live as long as this binding only.
    converted: Option<Converted>,
}

fn decide_binding(
    bound: &Bound<'_>,
    collector: &mut Collector<'_>,
    annotations: &mut Vec<(String, Vec<String>)>,
) {
    let Bound { policy, binding, matched, .. } = *bound;
    let Prepared { params, namespace, converted } = match prepare(bound, collector) {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return,
        Err(error) => {
            collector.misconfigured(policy, Some(binding), &error.to_string());
            return;
        }
    };
    let (request, host) = (collector.request, collector.host);
    let objects = match &converted {
        Some(converted) => converted.nodes(),
        None => collector.objects(),
    };
    let changed = (!matched.is_as_it_is())
        .then(|| (request_value(request, matched), condition_request_value(request, matched)));
    let (request_node, condition_request) = match &changed {
        Some((request, of_conditions)) => (Node::from_json(request), Node::from_json(of_conditions)),
        None if policy.uses_request() => (collector.request_node(), collector.request_node()),
        None => (Node::Null, Node::Null),
    };
    let authorizer = HostAuthorizer::new(host, request, collector.answers);
    let mut arena = mem::take(&mut collector.arena);
    let mut decide = |param: Option<&Value>| {
        let inputs = Inputs {
            arena: &arena,
            object: objects.object,
            old_object: objects.old_object,
            request: request_node,
            condition_request,
            params: node(param),
            namespace,
            authorizer: Some(&authorizer),
            eval: collector.eval,
        };
        let evaluation = evaluate(policy, inputs);
        collector.apply(bound, param, evaluation, annotations);
    };
    match params {
        Params::Without => decide(None),
        Params::Each(params) => params.iter().for_each(|param| decide(Some(param))),
    }
    arena.reset();
    collector.arena = arena;
}

/// Why a policy cannot be applied to a request.
#[derive(Debug, Error)]
enum Misconfigured {
    #[error(transparent)]
    Matching(#[from] MatchError),
    #[error(transparent)]
    Params(#[from] ParamError),
    #[error(transparent)]
    Namespace(HostError),
    #[error("failed to convert object version: {0}")]
    Conversion(HostError),
}

/// None where the binding does not speak about the request, or has no params.
fn prepare<'a>(bound: &Bound<'_>, collector: &Collector<'a>) -> Result<Option<Prepared<'a>>, Misconfigured> {
    let Bound { policy, binding, scope, matched } = *bound;
    let (request, host) = (collector.request, collector.host);
    if let Some(resources) = &binding.match_resources
        && resources.matches(request, host)?.is_none()
    {
        return Ok(None);
    }
    let params = params::collect(policy, binding, scope, request, host)?;
    if params.is_empty() {
        return Ok(None);
    }
    // Not knowing the namespace is a failure of the policies that look at it, and of no other.
    let namespace = if policy.uses_namespace() { collector.namespace() } else { Ok(Node::Null) };
    let namespace = namespace.map_err(|error| Misconfigured::Namespace(error.clone()))?;
    let converted = Converted::of(request, matched, host).map_err(Misconfigured::Conversion)?;
    Ok(Some(Prepared { params, namespace, converted }))
}
