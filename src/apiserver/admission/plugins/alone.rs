//! Decides whether a plugin runs where there is no cluster, only some of its objects. A plugin that looks something up runs only
//! where that is given; an object that is named but not given is assumed to exist, and the assumption is reported.

use admit_apimachinery::go;

use super::pods::text;
use super::request::Request;
use crate::admission::review::Operation;

/// How a plugin acts without a cluster.
#[derive(Clone, Copy)]
pub(in crate::admission) enum Alone {
    /// Runs on the object and the given objects.
    Acts,
    /// Runs only if enabled by name: it looks nothing up and changes every object of a kind alike.
    WhereAsked,
    /// Never runs: it needs an authorizer, a backend or the clock, or writes objects.
    Never,
    /// Runs if this function says so for the request.
    By(fn(&Request<'_>) -> Turn),
}

/// Says how a plugin treats one request without a cluster.
pub(in crate::admission) enum Turn {
    Acts,
    /// The plugin is not run: what it needs is not given.
    Passes,
    /// The plugin is not run, as it would look up an object that is not given: `PriorityClass "high"`.
    Assumes(String),
}

impl Turn {
    pub(super) const fn acts_if(acts: bool) -> Self {
        if acts { Self::Acts } else { Self::Passes }
    }

    /// Requires that the named object is given; a request that names none goes on.
    pub(super) fn named(request: &Request<'_>, plural: &str, namespace: &str, name: &str) -> Self {
        if name.is_empty() || request.stored(plural, namespace, name).is_some() {
            return Self::Acts;
        }
        let resources = request.cluster.resources();
        let kind = resources.rows().iter().find(|row| row.builtin && row.plural == plural);
        let kind = kind.map_or(plural, |row| row.kind.as_str());
        let whole = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        Self::Assumes(format!("{kind} {}", go::quote(&whole)))
    }
}

/// Runs the plugin if the Namespace of the request is given.
pub(super) fn known_namespace(request: &Request<'_>) -> Turn {
    Turn::acts_if(request.stored("namespaces", "", request.namespace()).is_some())
}

/// Runs the plugin for pod resizes whose node is given.
pub(super) fn known_node(request: &Request<'_>) -> Turn {
    if !request.is(Operation::Update, ("", "pods", "resize")) {
        return Turn::Passes;
    }
    Turn::named(request, "nodes", "", text(request.object(), "/spec/nodeName"))
}
