//! Builds path sets from their leaves, in any order, and from other sets. Adding path by path would walk a long name as often as there are
//! paths through it.

use super::element::Element;
use super::set::{FieldSet, Node};
use crate::interrupt;

/// Elements with the paths below them; entries for the same element are merged.
#[derive(Debug, Default)]
pub struct Parts {
    nodes: Vec<(Element, Node)>,
    /// They are in order, and each is there once.
    sorted: bool,
}

impl Parts {
    /// Room for so many elements.
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

    /// Adds all that is in the set.
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

    /// The set, which takes no more room than it needs.
    #[must_use]
    pub fn into_set(mut self) -> FieldSet {
        if !self.sorted {
            self.nodes.sort_by(|(one, _), (two, _)| one.cmp(two));
            self.join_equals();
        }
        self.nodes.shrink_to_fit();
        FieldSet { nodes: self.nodes }
    }

    /// Makes one node of those that stand beside each other under one element. However many there are, what lies below
    /// them is put together once.
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
    /// The union of the sets.
    #[must_use]
    pub fn of_all(sets: impl IntoIterator<Item = Self>) -> Self {
        let mut parts = Parts::default();
        for set in sets {
            parts.absorb(set);
        }
        parts.into_set()
    }
}
