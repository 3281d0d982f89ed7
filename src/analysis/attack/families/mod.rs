//! The families of neighbours, a file each: from a request that is denied to requests that are admitted and reach the same.
//!
//! Each says in which sense they reach the same, and gives only what the engine admits.

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

/// What one family finds.
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

/// Those that can say something of a denied request: where its object does not matter, there is nothing of it to be elsewhere.
pub(super) fn of(scene: &Scene<'_>) -> &'static [Find] {
    match scene.base.operation {
        _ if !scene.offence.is_of_request() => &ALL,
        Operation::Connect => &[connections::find, bindings::find],
        Operation::Create | Operation::Update | Operation::Delete => &[connections::find],
    }
}
