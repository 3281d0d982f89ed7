//! Represents sets of paths (which fields a manager owns), and queries on them.
//!
//! A set is a tree; each node holds whether its own path is a member, and the paths below it. Membership of a parent
//! does not imply that of its children, nor the reverse.
//!
//! The sets of an object with many small fields are as large as the object, so a node takes no more memory than it
//! needs.

use super::element::{Element, Path};
use crate::interrupt;

/// A set of paths. The empty path, which is the object itself, is never a member.
///
/// INVARIANT: the nodes are sorted by element, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    pub(super) nodes: Vec<(Element, Node)>,
}

/// INVARIANT: a stored node is a member or has members below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) member: bool,
    pub(super) below: FieldSet,
}

impl Node {
    pub(super) fn is_kept(&self) -> bool {
        self.member || !self.below.is_empty()
    }
}

impl FieldSet {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn node(&self, element: &Element) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|(known, _)| known.cmp(element)).ok()?;
        self.nodes.get(at).map(|(_, node)| node)
    }

    #[must_use]
    pub fn has(&self, path: &[Element]) -> bool {
        match path {
            [] => false,
            [only] => self.is_member(only),
            [first, rest @ ..] => self.below(first).is_some_and(|below| below.has(rest)),
        }
    }

    /// Whether the path of this one element is in the set.
    #[must_use]
    pub fn is_member(&self, element: &Element) -> bool {
        self.node(element).is_some_and(|node| node.member)
    }

    /// Returns the paths below `element`, without the element itself; None if there are none.
    #[must_use]
    pub fn below(&self, element: &Element) -> Option<&Self> {
        self.node(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// Returns the first elements of all paths in order, whether each is a member, and the paths below it.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&Element, bool, &Self)> {
        self.nodes.iter().map(|(element, node)| (element, node.member, &node.below))
    }

    /// Consumes the set and returns its entries.
    pub fn into_entries(self) -> impl ExactSizeIterator<Item = (Element, bool, Self)> {
        self.nodes.into_iter().map(|(element, node)| (element, node.member, node.below))
    }

    /// Replaces each element's membership and the paths below it by what `change` returns. Elements left with neither are
    /// removed.
    #[must_use]
    pub(crate) fn mapped(mut self, change: impl Fn(&Element, bool, Self) -> (bool, Self)) -> Self {
        self.nodes.retain_mut(|(element, node)| {
            interrupt::checkpoint();
            let below = std::mem::take(&mut node.below);
            (node.member, node.below) = change(element, node.member, below);
            node.is_kept()
        });
        self
    }

    /// Whether this is a subset of the other set.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.nodes.iter().all(|(element, node)| {
            interrupt::checkpoint();
            let counterpart = other.node(element);
            counterpart.is_some_and(|other| other.member >= node.member && node.below.is_within(&other.below))
        })
    }

    /// Counts the paths.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|(_, node)| usize::from(node.member) + node.below.len()).sum()
    }

    /// Returns all paths: on each level the members first, then the paths below each element.
    #[must_use]
    pub fn paths(&self) -> Vec<Path> {
        let mut left = usize::MAX;
        self.first_paths(&mut left)
    }

    /// Returns the first paths whose texts have together at most `left` bytes, and subtracts their length from `left`.
    #[must_use]
    pub fn first_paths(&self, left: &mut usize) -> Vec<Path> {
        let mut found = Vec::new();
        self.collect((&mut Vec::new(), 0), left, &mut found);
        found
    }

    fn collect(&self, (prefix, length): (&mut Path, usize), left: &mut usize, found: &mut Vec<Path>) {
        for (element, _, _) in self.entries().filter(|(_, member, _)| *member) {
            interrupt::checkpoint();
            match left.checked_sub(length + element.len()) {
                Some(less) => *left = less,
                // After the first path that does not fit, shorter ones are not listed either.
                None => {
                    *left = 0;
                    return;
                }
            }
            found.push(prefix.iter().chain([element]).cloned().collect());
        }
        for (element, _, below) in self.entries().filter(|(_, _, below)| !below.is_empty()) {
            if *left == 0 {
                return;
            }
            prefix.push(element.clone());
            below.collect((prefix, length + element.len()), left, found);
            prefix.pop();
        }
    }
}
