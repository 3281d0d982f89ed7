//! Checks what a kubelet does to pods: it may create and delete mirror pods of its static pods, update the status of pods on
//! its node, and evict them.

use std::sync::Arc;

use admit_apimachinery::go;
use admit_apimachinery::pointer::{items, text};
use serde_json::Value;

use super::super::Request;
use super::references;
use crate::admission::review::Operation;
use crate::kinds::shared::pod_uses::{MIRROR, is_mirror};
use crate::object;
use crate::status::Refusal;

const NODE_NAME: &str = "/spec/nodeName";

pub(super) fn admit(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    let own = go::quote(node);
    match request.review.operation {
        Operation::Create => admit_new(request, node).map_err(|refused| match refused {
            Refused::Because(why) => request.forbidden(&why),
            Refused::As(refusal) => refusal,
        }),
        Operation::Delete => {
            let why = format!("node {own} can only delete pods with spec.nodeName set to itself");
            on_node(request, request.review.name, node, &why)
        }
        other => Err(request.forbidden(&format!(
            "unexpected operation {}, node {own} can only create and delete mirror pods",
            go::quote(other.as_str())
        ))),
    }
}

/// Says why a pod is refused.
enum Refused {
    Because(String),
    As(Refusal),
}

fn admit_new(request: &Request<'_>, node: &str) -> Result<(), Refused> {
    let (pod, own) = (request.object(), go::quote(node));
    let refused = |why: String| Err(Refused::Because(why));
    if !is_mirror(pod) {
        let annotation = go::quote(MIRROR);
        return refused(format!(
            "pod does not have {annotation} annotation, node {own} can only create mirror pods"
        ));
    }
    let only = |what: &str| refused(format!("node {own} can only create pods with {what}"));
    if text(pod, NODE_NAME) != node {
        return only("spec.nodeName set to itself");
    }
    let owner = match items(pod, "/metadata/ownerReferences") {
        [owner] => owner,
        [] => return only("an owner reference set to itself"),
        _ => return only("a single owner reference set to itself"),
    };
    let of = |field: &str| text(owner, field);
    let is_set = |field: &str| owner.get(field).and_then(Value::as_bool) == Some(true);
    if (of("/apiVersion"), of("/kind"), of("/name")) != ("v1", "Node", node) {
        return only("an owner reference set to itself");
    }
    if !is_set("controller") {
        return only("a controller owner reference set to itself");
    }
    if is_set("blockOwnerDeletion") {
        return refused(format!("node {own} must not set blockOwnerDeletion on an owner reference"));
    }
    let known = request
        .stored("nodes", "", node)
        .ok_or_else(|| Refused::As(Refusal::not_listed("", "node", node)))?;
    if of("/uid") != object::uid(&known) {
        return refused(format!(
            "node {node} UID mismatch: expected {} got {}",
            of("/uid"),
            object::uid(&known)
        ));
    }
    match references::first(pod) {
        Ok(None) => Ok(()),
        Ok(Some(what)) => refused(format!("node {own} can not create pods that reference {what}")),
        Err(error) => refused(format!("error checking mirror pod for API references: {error}")),
    }
}

pub(super) fn admit_status(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    let own = go::quote(node);
    if request.review.operation != Operation::Update {
        let operation = go::quote(request.review.operation.as_str());
        return Err(request.forbidden(&format!("unexpected operation {operation}")));
    }
    let (new, old) = (request.object(), request.old());
    let labels = |pod| object::meta_map(pod, "labels").collect::<std::collections::BTreeMap<_, _>>();
    let extended = |pod: &Value| {
        let claim = pod.pointer("/status/extendedResourceClaimStatus").cloned();
        claim.filter(|claim| !claim.is_null())
    };
    let why = if text(old, NODE_NAME) != node {
        format!("node {own} can only update pod status for pods with spec.nodeName set to itself")
    } else if labels(new) != labels(old) {
        format!("node {own} cannot update labels through pod status")
    } else if claims(new) != claims(old) {
        format!("node {own} cannot update resource claim statues")
    } else if extended(new) != extended(old) {
        format!("node {own} cannot update extended resource claim status")
    } else {
        return Ok(());
    };
    Err(request.forbidden(&why))
}

/// Returns the names of the pod's resource claims, each with the ResourceClaim that was generated for it.
fn claims(pod: &Value) -> Vec<(&str, Option<&str>)> {
    let made = items(pod, "/status/resourceClaimStatuses").iter();
    made.map(|claim| (text(claim, "/name"), claim.get("resourceClaimName").and_then(Value::as_str))).collect()
}

pub(super) fn admit_eviction(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    if request.review.operation != Operation::Create {
        let operation = request.review.operation.as_str();
        return Err(request.forbidden(&format!("unexpected operation {operation}")));
    }
    let names = [request.review.name, object::name(request.object())];
    let Some(pod) = names.into_iter().find(|name| !name.is_empty()) else {
        return Err(request.forbidden("could not determine pod from request data"));
    };
    on_node(request, pod, node, &format!("node {node} can only evict pods with spec.nodeName set to itself"))
}

fn on_node(request: &Request<'_>, pod: &str, node: &str, otherwise: &str) -> Result<(), Refusal> {
    let pod = stored(request, pod)?;
    if text(&pod, NODE_NAME) == node { Ok(()) } else { Err(request.forbidden(otherwise)) }
}

/// Reads a pod in the namespace of the request.
pub(super) fn stored(request: &Request<'_>, name: &str) -> Result<Arc<Value>, Refusal> {
    request.stored("pods", request.namespace(), name).ok_or_else(|| Refusal::not_listed("", "pod", name))
}
