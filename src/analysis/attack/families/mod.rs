//! The families of neighbours, a file each: from a request that is denied to requests that are admitted and reach the same.
//!
//! Each says in which sense they reach the same, and gives only what the engine admits.

mod absent;
mod bindings;
mod errors;
mod labels;
mod operations;
mod siblings;
mod spellings;
mod subresources;
mod versions;
mod workloads;

use super::scene::{Neighbour, Scene};

/// What one family finds.
type Find = fn(&Scene<'_>, &mut Vec<Neighbour>);

/// All families.
pub(super) const ALL: [Find; 10] = [
    siblings::find,
    workloads::find,
    subresources::find,
    operations::find,
    versions::find,
    absent::find,
    labels::find,
    errors::find,
    bindings::find,
    spellings::find,
];
