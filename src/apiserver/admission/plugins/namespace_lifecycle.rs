//! Implements `NamespaceLifecycle`, which refuses new objects in missing or terminating namespaces and the deletion of three
//! namespaces, and `NamespaceExists` (off by default), which only refuses missing namespaces.

use std::sync::Arc;

use serde_json::Value;

use super::alone::{Alone, Turn, known_namespace};
use super::{Plugin, Request};
use crate::admission::review::Operation;
use crate::object;
use crate::resources::Scope;
use crate::status::Refusal;

pub(super) const PLUGIN: Plugin =
    Plugin { name: "NamespaceLifecycle", mutate: Some(admit), validate: None, alone: Alone::By(alone) };

pub(super) const EXISTS: Plugin = Plugin {
    name: "NamespaceExists",
    mutate: None,
    validate: Some(exists),
    alone: Alone::By(known_namespace),
};

/// Namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

fn admit(request: &mut Request<'_>) -> Result<(), Refusal> {
    let info = &request.review.call.info;
    if request.is(Operation::Delete, ("", "namespaces", "")) {
        // A review of an object that is deleted with its collection has no name.
        let name = object::name(request.old());
        if IMMORTAL.contains(&name) {
            return Err(Refusal::forbidden(info, name, "this namespace may not be deleted"));
        }
    }
    // What is asked is answered, and what is there may go, whatever becomes of the namespace.
    let is_question = info.group == "authorization.k8s.io";
    let wanted = request.namespace();
    let is_inside = info.scope == Scope::Namespaced && !wanted.is_empty();
    let is_write = matches!(request.review.operation, Operation::Create | Operation::Update);
    if !is_inside || !is_write || is_question {
        return Ok(());
    }
    let namespace = found(request)?;
    if request.review.operation != Operation::Create || !object::is_terminating(&namespace) {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {wanted} because it is being terminated");
    Err(Refusal::namespace_terminating(info, request.name(), &why, wanted))
}

/// Returns the namespace of the object.
fn found(request: &Request<'_>) -> Result<Arc<Value>, Refusal> {
    let wanted = request.namespace();
    request.stored("namespaces", "", wanted).ok_or_else(|| {
        let served = request.cluster.resources();
        let namespaces = served.find("", "v1", "namespaces").unwrap_or(&request.review.call.info);
        Refusal::not_found(namespaces, wanted)
    })
}

fn exists(request: &Request<'_>) -> Result<(), Refusal> {
    if request.review.call.info.scope == Scope::Namespaced { found(request).map(drop) } else { Ok(()) }
}

/// Without a cluster, cluster-scoped objects can always be checked.
fn alone(request: &Request<'_>) -> Turn {
    match request.review.call.info.scope {
        Scope::Cluster => Turn::Acts,
        Scope::Namespaced => known_namespace(request),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::admission::plugins::tests::{mutated_beside, pod, refused};

    #[test]
    fn a_namespace_has_to_be_there() {
        let stored = [("namespaces", json!({"metadata": {"name": "n"}}))];
        for plugin in [PLUGIN, EXISTS] {
            assert_eq!(refused(&plugin, "pods", &pod()), "namespaces \"n\" not found");
            assert_eq!(mutated_beside(&plugin, "pods", &pod(), &stored).unwrap(), None);
        }
    }
}
