//! What a plugin goes by where there is no cluster, only some of its objects. One that looks something up acts where that is given;
//! where an object names another that is not given, that one is taken as being there, and is told.

use admit_apimachinery::go;

use super::pods::text;
use super::request::Request;
use crate::admission::review::Operation;

/// How a plugin acts without a cluster.
#[derive(Clone, Copy)]
pub(in crate::admission) enum Alone {
    /// By the object, and by what is given.
    Acts,
    /// It looks nothing up and changes every object of a kind alike: where it is asked for by name.
    WhereAsked,
    /// Never: it asks an authorizer, a backend or the clock, or writes, and nobody of these is here.
    Never,
    /// As this says of the request.
    By(fn(&Request<'_>) -> Turn),
}

/// What a plugin does about a request.
pub(in crate::admission) enum Turn {
    Acts,
    /// It has nothing to go by.
    Passes,
    /// It would look up something that is not given: `PriorityClass "high"`.
    Assumes(String),
}

impl Turn {
    pub(super) const fn acts_if(acts: bool) -> Self {
        if acts { Self::Acts } else { Self::Passes }
    }

    /// What is named has to be there; a request that names nothing goes on.
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

/// Where the Namespace of the request is given.
pub(super) fn known_namespace(request: &Request<'_>) -> Turn {
    Turn::acts_if(request.stored("namespaces", "", request.namespace()).is_some())
}

/// Of pods that are resized, where their node is given.
pub(super) fn known_node(request: &Request<'_>) -> Turn {
    if !request.is(Operation::Update, ("", "pods", "resize")) {
        return Turn::Passes;
    }
    Turn::named(request, "nodes", "", text(request.object(), "/spec/nodeName"))
}
