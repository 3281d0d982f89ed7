//! Checks what a kubelet writes about its node: the node itself, its lease, its CSINode and its ResourceSlices.

use admit_apimachinery::go;
use admit_apimachinery::pointer::{items, text};
use serde_json::Value;

use super::super::Request;
use super::labels;
use crate::admission::review::Operation;
use crate::object;
use crate::status::Refusal;

/// The namespace of the leases that serve as node heartbeats.
const LEASES_IN: &str = "kube-node-lease";

pub(super) fn admit(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    let (asked, own) = (request.review.name, go::quote(node));
    if asked != node {
        let asked = go::quote(asked);
        return Err(request.forbidden(&format!("node {own} is not allowed to modify node {asked}")));
    }
    let source =
        |object: &Value| object.pointer("/spec/configSource").filter(|source| !source.is_null()).cloned();
    let (new, old) = (request.object(), request.old());
    let forbidden = labels::forbidden(new, old);
    match request.review.operation {
        Operation::Create if source(new).is_some() => Err(request
            .forbidden(&format!("node {own} is not allowed to create pods with a non-nil configSource"))),
        Operation::Create => forbidden.map_or(Ok(()), |labels| {
            let why = format!("node {own} is not allowed to set the following labels: {labels}");
            Err(request.forbidden(&why))
        }),
        Operation::Update if source(new).is_some() && source(new) != source(old) => Err(request.forbidden(
            &format!("node {own} is not allowed to update configSource to a new non-nil configSource"),
        )),
        Operation::Update if items(new, "/spec/taints") != items(old, "/spec/taints") => {
            Err(request.forbidden(&format!("node {own} is not allowed to modify taints")))
        }
        Operation::Update => forbidden.map_or(Ok(()), |labels| {
            Err(request.forbidden(&format!("is not allowed to modify labels: {labels}")))
        }),
        Operation::Delete | Operation::Connect => Ok(()),
    }
}

pub(super) fn admit_lease(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    if request.namespace() != LEASES_IN {
        let why = format!("can only access leases in the {} system namespace", go::quote(LEASES_IN));
        return Err(request.forbidden(&why));
    }
    let why = "can only access node lease with the same name as the requesting node";
    if named(request) == node { Ok(()) } else { Err(request.forbidden(why)) }
}

pub(super) fn admit_csi(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    let why = "can only access CSINode with the same name as the requesting node";
    if named(request) == node { Ok(()) } else { Err(request.forbidden(why)) }
}

/// Returns the name of the new object, or else the name in the request.
fn named<'r>(request: &'r Request<'_>) -> &'r str {
    match request.review.operation {
        Operation::Create => object::name(request.object()),
        _ => request.review.name,
    }
}

/// Checks creations and deletions; updates were authorized by the mode `Node`, which reads the stored slice.
pub(super) fn admit_slice(request: &Request<'_>, node: &str) -> Result<(), Refusal> {
    let (slice, verb) = match request.review.operation {
        Operation::Create => (request.object(), "create"),
        Operation::Delete => (request.old(), "delete"),
        Operation::Update | Operation::Connect => return Ok(()),
    };
    if text(slice, "/spec/nodeName") == node {
        return Ok(());
    }
    let why = format!("can only {verb} ResourceSlice with the same NodeName as the requesting node");
    Err(request.forbidden(&why))
}
