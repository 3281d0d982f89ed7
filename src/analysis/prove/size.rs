//! Limits the size of a query: in bytes, so that no rule exhausts the memory, and in steps, so that repeated combination ends even if
//! it creates nothing new.

use super::document::{Node, World};
use super::value::Value;
use super::{Undecided, undecided};

/// Bytes of the terms, nodes and lists of a query. Its script has about the same size and exists up to three times.
const MOST_BYTES: usize = 64 << 20;
/// The maximum number of steps: evaluated expressions and visited alternatives.
const MOST_STEPS: usize = 20_000_000;
/// The maximum length of a list that expressions create.
const MOST_MADE: usize = 4_096;
/// Bytes per node: the node, spare capacity, and its value.
const NODE: usize = 3 * size_of::<Node<'static>>();

impl World<'_> {
    /// Counts a step; fails if the query is too large.
    pub(super) fn check_size(&mut self) -> Result<(), Undecided> {
        self.steps = self.steps.saturating_add(1);
        if self.steps > MOST_STEPS {
            return Err(undecided(format!(
                "too large: more than {MOST_STEPS} steps; fewer --items may help"
            )));
        }
        if self.bytes() > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            return Err(undecided(format!(
                "too large: terms of more than {most} MiB; fewer --items may help"
            )));
        }
        Ok(())
    }

    /// Leaves so many steps for the query.
    pub(super) fn limit_steps(&mut self, left: usize) {
        self.steps = MOST_STEPS.saturating_sub(left);
    }

    /// Estimates the memory of the query.
    fn bytes(&self) -> usize {
        self.terms.bytes().saturating_add(self.count_nodes().saturating_mul(NODE))
    }

    /// Counts the memory of a list that an expression creates; fails if it is too long.
    pub(super) fn make_room(&mut self, items: usize) -> Result<(), Undecided> {
        if items > MOST_MADE {
            return Err(undecided(format!("too large: a list of more than {MOST_MADE} items")));
        }
        self.terms.charge(items.saturating_mul(size_of::<Value>().saturating_add(size_of::<usize>())));
        self.check_size()
    }
}
