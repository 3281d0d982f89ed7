//! Generates neighbours: from a denied request, admitted requests with the same effect. Each family is one file.
//!
//! Each file's head says in which sense the effect is the same; only requests that the engine admits are returned.

mod absent;
mod bindings;
mod connections;
mod errors;
mod labels;
mod operations;
mod siblings;
mod spellings;
mod subresources;
mod versions;
mod workloads;

use admit_policy::Operation;

use super::scene::{Neighbour, Scene};

/// Adds what one family finds.
type Find = fn(&Scene<'_>, &mut Vec<Neighbour>);

const ALL: [Find; 11] = [
    siblings::find,
    workloads::find,
    subresources::find,
    connections::find,
    operations::find,
    versions::find,
    absent::find,
    labels::find,
    errors::find,
    bindings::find,
    spellings::find,
];

/// Returns the families that apply to a denied request: fewer where its object does not matter.
pub(super) fn of(scene: &Scene<'_>) -> &'static [Find] {
    match scene.base.operation {
        _ if !scene.offence.is_of_request() => &ALL,
        Operation::Connect => &[connections::find, bindings::find],
        Operation::Create | Operation::Update | Operation::Delete => &[connections::find],
    }
}
