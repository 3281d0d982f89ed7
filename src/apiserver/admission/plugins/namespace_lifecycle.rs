//! `NamespaceLifecycle`: objects lie in a namespace that is there and not going away, and three namespaces stay.

use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::object;
use crate::resources::Scope;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin = Plugin { name: "NamespaceLifecycle", mutate: Some(admit), validate: None };

/// Namespaces that a cluster cannot be without.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    let info = &request.review.call.info;
    if request.is(Operation::Delete, ("", "namespaces", "")) {
        // What is deleted with its collection has no name in the review.
        let name = object::name(request.old());
        if IMMORTAL.contains(&name) {
            return Err(Refusal::forbidden(info, name, "this namespace may not be deleted"));
        }
    }
    // What is asked is answered, and what is there may go, whatever becomes of the namespace.
    let is_question = info.group == "authorization.k8s.io";
    if info.scope != Scope::Namespaced || request.review.operation == Operation::Delete || is_question {
        return Ok(());
    }
    let wanted = request.namespace();
    let Some(namespace) = request.stored("namespaces", "", wanted) else {
        let served = request.cluster.resources();
        let namespaces = served.find("", "v1", "namespaces").unwrap_or(info);
        return Err(Refusal::not_found(namespaces, wanted));
    };
    if request.review.operation != Operation::Create || !object::is_terminating(&namespace) {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {wanted} because it is being terminated");
    Err(Refusal::namespace_terminating(info, request.name(), &why, wanted))
}
