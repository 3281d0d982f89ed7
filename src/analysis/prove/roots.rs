//! Whole objects, and what an old and a new one have in common.

use super::Undecided;
use super::document::{NodeId, World};

/// How deep required properties are filled in.
pub(super) const DEPTH: usize = 24;

pub(super) fn root<'s>(
    world: &mut World<'s>,
    schema: &'s admit_policy::schema::Schema,
) -> Result<NodeId, Undecided> {
    let root = world.root(schema);
    if let Some(metadata) = world.property(root, "metadata")? {
        world.mark_metadata(metadata);
    }
    Ok(root)
}

/// An update keeps the name and the namespace.
pub(super) fn same_identity(world: &mut World<'_>, new: NodeId, old: NodeId) -> Result<(), Undecided> {
    let (Some(new), Some(old)) = (world.property(new, "metadata")?, world.property(old, "metadata")?) else {
        return Ok(());
    };
    for name in ["name", "namespace"] {
        if let (Some(a), Some(b)) = (world.property(new, name)?, world.property(old, name)?) {
            let (a, b) = (world.value_of(a)?, world.value_of(b)?);
            let same = world.surely_equal(&a, &b)?;
            world.assumed.push(same);
        }
    }
    Ok(())
}
