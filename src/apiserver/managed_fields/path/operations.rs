//! Implements operations on sets of paths: union, intersection, differences. Most consume their sets and move the contents, since
//! sets can be as large as their objects.

use super::element::Element;
use super::parts::Parts;
use super::set::{FieldSet, Node};
use crate::interrupt;

impl FieldSet {
    /// Adds one path. To build a set of many use [`Parts`].
    pub fn insert(&mut self, path: &[Element]) {
        if !path.is_empty() {
            *self = std::mem::take(self).union(Self::of_path(path));
        }
    }

    /// Builds a set of one path.
    fn of_path(path: &[Element]) -> Self {
        let Some((first, rest)) = path.split_first() else { return Self::default() };
        let node = Node { member: rest.is_empty(), below: Self::of_path(rest) };
        Self { nodes: vec![(first.clone(), node)] }
    }

    /// Returns the union of both sets.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        if self.is_empty() {
            return other;
        }
        Self::of_all([self, other])
    }

    /// Returns the intersection of both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut common = Parts::default();
        for (element, node) in &self.nodes {
            interrupt::checkpoint();
            if let Some(counterpart) = other.node(element) {
                let member = node.member && counterpart.member;
                common.join_with(element, member, node.below.intersection(&counterpart.below));
            }
        }
        common.into_set()
    }

    /// Returns the members of this set that are not in the other. A parent in the other set does not remove its children.
    #[must_use]
    pub fn difference(self, other: &Self) -> Self {
        self.without(other, |_, below, counterpart| below.difference(counterpart))
    }

    /// Returns the members of this set that are neither in the other nor below a member of it.
    #[must_use]
    pub fn recursive_difference(self, other: &Self) -> Self {
        self.without(
            other,
            |covered, below, counterpart| {
                if covered { Self::default() } else { below.recursive_difference(counterpart) }
            },
        )
    }

    fn without(mut self, other: &Self, below: impl Fn(bool, Self, &Self) -> Self) -> Self {
        if other.is_empty() {
            return self;
        }
        self.nodes.retain_mut(|(element, node)| {
            interrupt::checkpoint();
            if let Some(counterpart) = other.node(element) {
                node.member &= !counterpart.member;
                let rest = std::mem::take(&mut node.below);
                node.below = below(counterpart.member, rest, &counterpart.below);
            }
            node.is_kept()
        });
        self
    }
}

impl<P: AsRef<[Element]>> FromIterator<P> for FieldSet {
    fn from_iter<I: IntoIterator<Item = P>>(paths: I) -> Self {
        Self::of_all(paths.into_iter().map(|path| Self::of_path(path.as_ref())))
    }
}
