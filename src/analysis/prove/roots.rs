//! Models whole objects, and what the old and the new object of an update have in common.

use admit_policy::schema::{Checks, Schema};
use serde_json::Value;

use super::Undecided;
use super::document::{NodeId, World};
use super::subject::Subject;

/// The depth to which required properties are created.
pub(super) const DEPTH: usize = 24;

pub(super) fn root<'s>(world: &mut World<'s>, schema: &'s Schema) -> Result<NodeId, Undecided> {
    let root = world.root(schema);
    if let Some(metadata) = world.property(root, "metadata")? {
        world.mark_metadata(metadata);
    }
    Ok(root)
}

/// Assumes that an update keeps name, namespace and the kind's immutable fields.
pub(super) fn kept(
    world: &mut World<'_>,
    subject: &Subject,
    new: NodeId,
    old: NodeId,
) -> Result<(), Undecided> {
    same_identity(world, new, old)?;
    subject.fixed.iter().try_for_each(|path| world.keep(new, old, path))
}

/// Assumes that an update keeps name and namespace.
fn same_identity(world: &mut World<'_>, new: NodeId, old: NodeId) -> Result<(), Undecided> {
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

impl World<'_> {
    /// Gives an object the `kept` properties of another one; metadata stays its own, since only name and namespace are equal.
    pub(super) fn share(
        &mut self,
        new: NodeId,
        old: NodeId,
        kept: impl Fn(&str) -> bool,
    ) -> Result<(), Undecided> {
        self.force(new)?;
        let schema = self.node(old)?.schema;
        for name in schema.properties.keys().filter(|name| &***name != "metadata" && kept(name)) {
            if let Some(child) = self.property(old, name)? {
                self.insert(new, name, child);
            }
        }
        Ok(())
    }
}

impl World<'_> {
    /// Removes the status fields that a new object does not have.
    pub(super) fn limit_status(&mut self, object: NodeId, fresh: &[String]) -> Result<(), Undecided> {
        let Some(status) = self.property(object, "status")? else { return Ok(()) };
        let schema = self.node(status)?.schema;
        for name in schema.properties.keys().filter(|name| !fresh.iter().any(|fresh| **fresh == ***name)) {
            self.forget(status, name)?;
        }
        Ok(())
    }

    /// Shares a field of another object if both surely have its parents.
    pub(super) fn keep(&mut self, new: NodeId, old: NodeId, path: &str) -> Result<(), Undecided> {
        let (mut new, mut old, mut rest) = (new, old, path);
        while let Some((outer, below)) = rest.split_once('.') {
            let (Some(one), Some(other)) = (self.property(new, outer)?, self.property(old, outer)?) else {
                return Ok(());
            };
            for node in [one, other] {
                if self.terms.known_bool(self.node(node)?.here) != Some(true) {
                    return Ok(());
                }
            }
            (new, old, rest) = (one, other, below);
        }
        self.force(new)?;
        if let Some(child) = self.property(old, rest)? {
            self.insert(new, rest, child);
        }
        Ok(())
    }
}

/// Reports whether a schema makes one constraint depend on another.
pub(super) fn has_alternatives(schema: &Schema) -> bool {
    let checks = &schema.checks;
    let lists = [&checks.all_of, &checks.any_of, &checks.one_of];
    let below = schema.properties.values().chain(schema.items.as_deref()).chain(schema.additional_schema());
    lists.iter().any(|list| !list.is_empty())
        || checks.not.as_deref().is_some_and(|but| !is_scalar(but))
        || below.into_iter().any(has_alternatives)
}

/// Reports whether a schema only lists values without children.
fn is_scalar(schema: &Schema) -> bool {
    let enumeration = schema.checks.enumeration.clone();
    let is_one = |member: &Value| !member.is_array() && !member.is_object();
    let are_scalars = enumeration.iter().next().is_some() && enumeration.iter().all(is_one);
    let only = Checks { enumeration, ..Checks::default() };
    are_scalars && *schema == Schema { checks: only.into(), ..Schema::default() }
}
