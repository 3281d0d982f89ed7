//! Builds path sets from their elements, in any order, and from other sets. Inserting path by path would compare a long name once for
//! each path through it.

use super::element::Element;
use super::set::{FieldSet, Node};
use crate::interrupt;

/// Elements with the paths below them; entries for the same element are merged.
#[derive(Debug, Default)]
pub struct Parts {
    nodes: Vec<(Element, Node)>,
    /// Whether the elements are in order and unique.
    sorted: bool,
}

impl Parts {
    /// Allocates space for this number of elements.
    #[must_use]
    pub fn with_capacity(elements: usize) -> Self {
        Self { nodes: Vec::with_capacity(elements), sorted: false }
    }

    /// Adds an element with the paths below it.
    pub fn join(&mut self, element: Element, member: bool, below: FieldSet) {
        interrupt::checkpoint();
        let node = Node { member, below };
        if node.is_kept() {
            self.push(element, node);
        }
    }

    /// Like [`Self::join`], with a borrowed element, which is copied only if needed.
    pub fn join_with(&mut self, element: &Element, member: bool, below: FieldSet) {
        interrupt::checkpoint();
        let node = Node { member, below };
        if node.is_kept() {
            self.push(element.clone(), node);
        }
    }

    /// Adds all paths of the set.
    pub fn absorb(&mut self, set: FieldSet) {
        if self.nodes.is_empty() {
            (self.nodes, self.sorted) = (set.nodes, true);
            return;
        }
        for (element, node) in set.nodes {
            interrupt::checkpoint();
            self.push(element, node);
        }
    }

    fn push(&mut self, element: Element, node: Node) {
        self.sorted = match self.nodes.last() {
            Some((last, _)) => self.sorted && *last < element,
            None => true,
        };
        self.nodes.push((element, node));
    }

    /// Returns the set, with no spare capacity.
    #[must_use]
    pub fn into_set(mut self) -> FieldSet {
        if !self.sorted {
            self.nodes.sort_by(|(one, _), (two, _)| one.cmp(two));
            self.join_equals();
        }
        self.nodes.shrink_to_fit();
        FieldSet { nodes: self.nodes }
    }

    /// Merges adjacent nodes with the same element. The sets below equal elements are joined in one step, however many there
    /// are.
    fn join_equals(&mut self) {
        let equal = |at: usize| match (self.nodes.get(at), self.nodes.get(at + 1)) {
            (Some((one, _)), Some((two, _))) => one == two,
            _ => false,
        };
        if !(0..self.nodes.len()).any(equal) {
            return;
        }
        let mut joined: Vec<(Element, Node)> = Vec::with_capacity(self.nodes.len());
        let mut rest = std::mem::take(&mut self.nodes).into_iter().peekable();
        while let Some((element, mut node)) = rest.next() {
            interrupt::checkpoint();
            let mut below = vec![std::mem::take(&mut node.below)];
            while let Some((_, same)) = rest.next_if(|(next, _)| *next == element) {
                node.member |= same.member;
                below.push(same.below);
            }
            node.below = FieldSet::of_all(below.into_iter().filter(|set| !set.is_empty()));
            joined.push((element, node));
        }
        self.nodes = joined;
    }
}

impl FieldSet {
    /// Returns the union of the sets.
    #[must_use]
    pub fn of_all(sets: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = Parts::default();
        for set in sets {
            parts.absorb(set);
        }
        parts.into_set()
    }
}
