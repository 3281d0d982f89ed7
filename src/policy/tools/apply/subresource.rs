//! Builds requests to subresources that take objects of kinds of their own (such as Eviction), as a server submits
//! them to policies, from the objects that they are about.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Applied, Change, Pair, Rehearsal};
use crate::read::object::Object;
use crate::report::decision::{Reason, Status};
use crate::report::recording::Recording;
use crate::request::{GroupVersionKind, Operation, Request};

/// The subresource that a request is for.
///
/// [`Rehearsal`](super::Rehearsal) has an example.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Subresource {
    /// The object with another status.
    Status,
    /// The Scale that follows from the object.
    Scale,
    /// The eviction of a pod, as `kubectl drain` requests it.
    Eviction,
    /// A command in a pod's first container, as `kubectl exec` requests it.
    Exec,
    /// A connection to a pod's first container, as `kubectl attach` requests it.
    Attach,
    /// A tunnel to a pod's port, as `kubectl port-forward` requests it.
    PortForward,
}

impl Subresource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Eviction => "eviction",
            Self::Exec => "exec",
            Self::Attach => "attach",
            Self::PortForward => "portforward",
        }
    }

    /// Whether its requests are updates of an existing object.
    pub fn updates(self) -> bool {
        matches!(self, Self::Status | Self::Scale)
    }
}

/// An object that a subresource takes.
struct Sent {
    kind: GroupVersionKind,
    operation: Operation,
    object: Value,
    old: Option<Value>,
}

pub(super) fn apply(
    rehearsal: &Rehearsal<'_>,
    pair: &Pair,
    subresource: Subresource,
    recording: Option<&Recording>,
) -> Applied {
    let Some(sent) = sent(rehearsal, pair, subresource) else {
        return Applied { refusal: Some(not_found()), ..Applied::new(Change::Update) };
    };
    let Sent { kind, operation, object, old } = sent;
    let change = match operation {
        Operation::Connect => Change::Connect,
        Operation::Create => Change::Create,
        Operation::Update | Operation::Delete => Change::Update,
    };
    if old.as_ref() == Some(&object) {
        return Applied::new(Change::Unchanged);
    }
    let request = Request {
        operation,
        request_kind: kind.clone(),
        kind,
        ..rehearsal.request(pair, object, old.map(Arc::new))
    };
    let mut applied = Applied::new(change);
    let mutated = rehearsal.mutate(&request, &mut applied, recording);
    if applied.refusal.is_none() {
        let object = mutated.map(Object::from).or_else(|| request.object.clone());
        rehearsal.decide(&Request { object, ..request }, &mut applied, recording);
    }
    applied
}

/// None where objects of the kind have no such subresource.
fn sent(rehearsal: &Rehearsal<'_>, pair: &Pair, subresource: Subresource) -> Option<Sent> {
    let kind = &pair.identity.kind;
    let is_pod = kind.group.is_empty() && kind.kind == "Pod";
    let core = |name: &str| GroupVersionKind::new("", "v1", name);
    let (kind, operation, fields) = match subresource {
        Subresource::Status => return None,
        Subresource::Scale => return scaled(rehearsal, pair),
        _ if !is_pod => return None,
        Subresource::Eviction => {
            let metadata = json!({"name": pair.identity.name, "namespace": pair.identity.namespace});
            let kind = GroupVersionKind::new("policy", "v1", "Eviction");
            (kind, Operation::Create, json!({"metadata": metadata}))
        }
        Subresource::Exec => (core("PodExecOptions"), Operation::Connect, streams(&pair.new)),
        Subresource::Attach => (core("PodAttachOptions"), Operation::Connect, streams(&pair.new)),
        Subresource::PortForward => (core("PodPortForwardOptions"), Operation::Connect, json!({})),
    };
    let mut object = json!({"kind": kind.kind, "apiVersion": kind.api_version()});
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    Some(Sent { kind, operation, object, old: None })
}

/// The options that kubectl sends without flags.
fn streams(pod: &Value) -> Value {
    let container = pod.pointer("/spec/containers/0/name");
    json!({"stdout": true, "stderr": true, "container": container})
}

fn scaled(rehearsal: &Rehearsal<'_>, pair: &Pair) -> Option<Sent> {
    let kind = &pair.identity.kind;
    let crd = rehearsal.host.crd_of(kind);
    let paths = match crd {
        Some(crd) => Some(crd.version(&kind.version)?.scale()?),
        None => None,
    };
    let old = pair.old.as_deref()?;
    let scale = |object: &Value| rehearsal.builtins?.scale(object, paths);
    let before = scale(old)?;
    let mut after = before.clone();
    if let (Some(spec), Some(wanted)) = (after.get_mut("spec"), scale(&pair.new)?.get("spec")) {
        spec.clone_from(wanted);
    }
    Some(Sent {
        kind: GroupVersionKind::new("autoscaling", "v1", "Scale"),
        operation: Operation::Update,
        object: after,
        old: Some(before),
    })
}

/// 404, as a server has it of paths that it does not serve.
fn not_found() -> Status {
    Status::new(Reason::NotFound, "the server could not find the requested resource")
}
