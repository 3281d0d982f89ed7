//! How large a question may grow: in bytes, so that no rule makes more of itself than there is room for, and in steps, so that
//! what is combined again and again ends even where it makes nothing new.

use super::document::{Node, World};
use super::value::Value;
use super::{Undecided, undecided};

/// Bytes of the terms, nodes and lists of one question. Its text takes about as many, and is there up to three times.
const MOST_BYTES: usize = 64 << 20;
/// Steps of one question: expressions that are evaluated, and alternatives that are gone through.
const MOST_STEPS: usize = 20_000_000;
/// Items of a list that expressions make.
const MOST_MADE: usize = 4_096;
/// What a node takes: itself, room to grow, and its form.
const NODE: usize = 3 * size_of::<Node<'static>>();

impl World<'_> {
    /// Counts a step; fails where the question is too large.
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

    /// About how much memory the question takes.
    fn bytes(&self) -> usize {
        self.terms.bytes().saturating_add(self.count_nodes().saturating_mul(NODE))
    }

    /// Counts the memory of a list that an expression makes; fails where it is too long.
    pub(super) fn make_room(&mut self, items: usize) -> Result<(), Undecided> {
        if items > MOST_MADE {
            return Err(undecided(format!("too large: a list of more than {MOST_MADE} items")));
        }
        self.terms.charge(items.saturating_mul(size_of::<Value>().saturating_add(size_of::<usize>())));
        self.check_size()
    }
}
