//! Evaluates a policy with one binding and one param: whether it matches an object, and the result of each of its mutations.

use std::sync::Arc;

use admit_cel::{Node, Opaque, Value as Cel};
use bumpalo::Bump;
use serde_json::Value;

use super::made::{self, Making, Room};
use super::operations;
use super::policy::{MutatingPolicy, Mutation};
use super::refusals::{no_namespace, unserved};
use super::schemas::{Schemas, Unmade};
use crate::exception::Excepting;
use crate::matching::Matched;
use crate::patch::{OperationError, applied};
use crate::report::decision::Skipped;
use crate::report::options::EvalOptions;
use crate::request::host::Host;
use crate::request::{GroupVersionKind, Request};
use crate::vap::authorizer::HostAuthorizer;
use crate::vap::binding::Binding;
use crate::vap::collector::Collector;
use crate::vap::evaluate::{self, BUDGET, ConditionsError};
use crate::vap::expression::Patch;
use crate::vap::objects::node;
use crate::vap::request_value::{condition_request_value, request_value};
use crate::vap::session::{Inputs, Session};

/// One run of mutating policies on a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pass<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) host: &'a dyn Host,
    pub(crate) schemas: &'a dyn Schemas,
    pub(crate) eval: EvalOptions<'a>,
    pub(crate) excepting: &'a Excepting<'a>,
}

/// A policy with one binding and one param.
pub(super) struct Invocation<'p> {
    pub(super) policy: &'p MutatingPolicy,
    pub(super) binding: &'p Binding,
    pub(super) matched: &'p Matched<'p>,
    pub(super) param: Option<Arc<Value>>,
}

/// The object in a version that some policy sees it in.
pub(super) struct Version {
    pub(super) kind: GroupVersionKind,
    pub(super) object: Option<Value>,
    pub(super) old: Option<Value>,
    pub(super) is_changed: bool,
}

/// What an invocation is run on.
pub(super) struct Seen<'s> {
    pub(super) pass: &'s Pass<'s>,
    pub(super) version: Option<&'s Version>,
    pub(super) shared: &'s Collector<'s>,
}

impl Invocation<'_> {
    /// Returns the condition that excludes the request; None where all hold.
    pub(super) fn conditions(&self, seen: &Seen<'_>) -> Result<Option<Skipped>, ConditionsError> {
        let Invocation { policy, matched, param, .. } = self;
        if !policy.common().has_conditions() {
            return Ok(None);
        }
        let (arena, request) = (Bump::new(), condition_request_value(seen.pass.request, matched));
        let authorizer = HostAuthorizer::new(seen.pass.host, seen.pass.request, seen.shared.answers);
        let inputs = seen.inputs(&arena, (&request, param.as_deref()), Node::Null, &authorizer);
        evaluate::conditions(policy.common(), inputs)
    }

    /// Applies a mutation to the object.
    pub(super) fn apply(&self, mutation: &Mutation, seen: &Seen<'_>, room: &Room) -> Result<Value, Unmade> {
        let Invocation { policy, matched, param, .. } = self;
        let Pass { schemas, request, host, .. } = *seen.pass;
        let Some(version) = seen.version else { return Err(Unmade::Failed(String::new())) };
        let object = version.object.as_ref().unwrap_or(&Value::Null);
        if !schemas.serves(&version.kind) {
            return Err(Unmade::Refused(unserved(&version.kind)));
        }
        let namespace = if policy.uses_namespace() { seen.shared.namespace() } else { Ok(Node::Null) };
        let namespace = namespace.map_err(|_| Unmade::Refused(no_namespace(&request.namespace)))?;
        let (arena, asked) = (Bump::new(), request_value(request, matched));
        let authorizer = HostAuthorizer::new(host, request, seen.shared.answers);
        let inputs = seen.inputs(&arena, (&asked, param.as_deref()), namespace, &authorizer);
        let mut session = Session::new(policy.common(), inputs, BUDGET);
        let failed = |why: String| Unmade::Failed(why);
        let value = session.value(&mutation.expression).map_err(|error| failed(error.to_string()))?;
        let value = value.map_err(|error| failed(error.to_string()))?;
        let making = Making { arena: &arena, room };
        match (mutation.patch, value) {
            (Patch::Object, Cel::Opaque(Opaque::Made(set))) => {
                let mut set = made::object(set, making).map_err(|error| failed(error.to_string()))?;
                // The result keeps the kind of the object.
                for field in ["apiVersion", "kind"] {
                    if let (Some(set), Some(own)) = (set.as_object_mut(), object.get(field)) {
                        set.insert(field.to_owned(), own.clone());
                    }
                }
                let merged = schemas.merged(&version.kind, object, &set).map_err(|why| match why {
                    Unmade::Failed(why) => Unmade::Failed(format!("error applying patch: {why}")),
                    refused @ Unmade::Refused(_) => refused,
                })?;
                schemas.settled(&version.kind, merged, false)
            }
            (Patch::Operations, Cel::List(list)) => {
                let operations = operations::all(list, making).map_err(|error| failed(error.to_string()))?;
                match applied(object, &operations) {
                    Ok(patched) => schemas.settled(&version.kind, patched, true),
                    // A test that fails leaves the object as it is.
                    Err(OperationError::Test(_)) => schemas.settled(&version.kind, object.clone(), false),
                    Err(error) => Err(failed(format!("JSON Patch: {error}"))),
                }
            }
            (_, other) => {
                let ty = admit_cel::runtime_type::name_of(&other);
                Err(failed(format!("unsupported return type: {ty}")))
            }
        }
    }
}

impl Seen<'_> {
    fn inputs<'i>(
        &'i self,
        arena: &'i Bump,
        (request, param): (&'i Value, Option<&'i Value>),
        namespace: Node<'i>,
        authorizer: &'i HostAuthorizer<'i>,
    ) -> Inputs<'i> {
        Inputs {
            arena,
            object: node(self.version.and_then(|version| version.object.as_ref())),
            old_object: node(self.version.and_then(|version| version.old.as_ref())),
            request: Node::from_json(request),
            condition_request: Node::from_json(request),
            params: node(param),
            namespace,
            authorizer: Some(authorizer),
            eval: self.pass.eval,
        }
    }
}
