//! Implements `NodeRestriction`: a kubelet may change only its own node, its lease, status of volumes, and the pods that run
//! on its node. Off by default; clusters of kubeadm enable it beside the mode [`Node`](crate::authorization::AuthorizationMode::Node),
//! which decides what kubelets may request at all.
//!
//! | file | decides |
//! |---|---|
//! | `labels` | which labels a kubelet may give its node |
//! | `nodes` | the node, its lease, its CSINode and its slices of devices |
//! | `pods` | mirror pods, statuses and evictions |
//! | `references` | whether a mirror pod refers to objects of the API |
//! | `requests` | requests for certificates and statuses of claims |
//! | `tokens` | service account tokens for pods on the node, and their audiences |
//!
//! Read from plugin/pkg/admission/noderestriction of a copy between Kubernetes 1.35 and 1.36; no recorded answers of 1.36 are at
//! hand. Of what that file holds, one thing has no counterpart here: pod certificates, whose feature is off by default.

mod labels;
mod nodes;
mod pods;
mod references;
mod requests;
mod tokens;

use admit_apimachinery::go;

use super::alone::Alone;
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::identity::node_of;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "NodeRestriction", mutate: Some(admit), validate: None, alone: Alone::Never };

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    let identity = &request.review.call.identity;
    let Some(node) = node_of(&identity.username, &identity.groups) else { return Ok(()) };
    let info = &request.review.call.info;
    if !info.builtin || request.review.operation == Operation::Connect {
        return Ok(());
    }
    if node.is_empty() {
        let user = go::quote(&identity.username);
        return Err(request.forbidden(&format!("could not determine node from user {user}")));
    }
    let request = &*request;
    match (info.group.as_str(), info.plural.as_str(), request.review.subresource()) {
        ("", "pods", "") => pods::admit(request, node),
        ("", "pods", "status") => pods::admit_status(request, node),
        ("", "pods", "eviction") => pods::admit_eviction(request, node),
        ("", "pods", other) => Err(request.forbidden(&format!(
            "unexpected pod subresource {}, only 'status' and 'eviction' are allowed",
            go::quote(other)
        ))),
        ("", "nodes", _) => nodes::admit(request, node),
        ("", "persistentvolumeclaims", "status") => requests::admit_claim(request, node),
        ("", "persistentvolumeclaims", _) => Err(request.forbidden("may only update PVC status")),
        ("", "serviceaccounts", "token") => tokens::admit(request, node),
        ("coordination.k8s.io", "leases", _) => nodes::admit_lease(request, node),
        ("storage.k8s.io", "csinodes", _) => nodes::admit_csi(request, node),
        ("resource.k8s.io", "resourceslices", _) => nodes::admit_slice(request, node),
        ("certificates.k8s.io", "certificatesigningrequests", _) => requests::admit_signing(request, node),
        _ => Ok(()),
    }
}
