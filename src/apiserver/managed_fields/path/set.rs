//! Sets of paths: which fields a manager owns, and the algebra over them.
//!
//! A set is a tree; a node says whether its path belongs to the set, and what lies below it. Membership of a parent says
//! nothing about its children, and the other way round.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::element::{Element, Path};
use crate::interrupt;

/// A set of paths. The empty path, the object itself, is never a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    nodes: BTreeMap<Element, Node>,
}

/// INVARIANT: a node that is kept is a member or has members below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Node {
    member: bool,
    below: FieldSet,
}

impl Node {
    fn is_kept(&self) -> bool {
        self.member || !self.below.is_empty()
    }
}

impl FieldSet {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub fn insert(&mut self, path: &[Element]) {
        interrupt::checkpoint();
        let Some((first, rest)) = path.split_first() else { return };
        let node = self.nodes.entry(first.clone()).or_default();
        if rest.is_empty() {
            node.member = true;
        } else {
            node.below.insert(rest);
        }
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
        self.nodes.get(element).is_some_and(|node| node.member)
    }

    /// The paths that go on from `element`, without it.
    #[must_use]
    pub fn below(&self, element: &Element) -> Option<&Self> {
        self.nodes.get(element).map(|node| &node.below).filter(|below| !below.is_empty())
    }

    /// The first elements of all paths in order, whether each is a member, and what goes on from it.
    pub fn entries(&self) -> impl Iterator<Item = (&Element, bool, &Self)> {
        self.nodes.iter().map(|(element, node)| (element, node.member, &node.below))
    }

    /// Sets an element and what goes on from it.
    pub(super) fn add(&mut self, element: Element, member: bool, below: Self) {
        interrupt::checkpoint();
        let node = Node { member, below };
        if node.is_kept() {
            self.nodes.insert(element, node);
        }
    }

    /// Adds an element and what goes on from it to what the set has of it. Sets are put together in this way, from their
    /// leaves: adding path by path would walk a long name as often as there are paths through it.
    pub fn join(&mut self, element: Element, member: bool, below: Self) {
        let node = Node { member, below };
        if !node.is_kept() {
            return;
        }
        match self.nodes.entry(element) {
            Entry::Vacant(place) => drop(place.insert(node)),
            Entry::Occupied(mut own) => {
                let own = own.get_mut();
                own.member |= node.member;
                own.below.absorb(&node.below);
            }
        }
    }

    /// Adds all that is in the other set.
    pub fn absorb(&mut self, other: &Self) {
        for (element, node) in &other.nodes {
            match self.nodes.get_mut(element) {
                Some(own) => {
                    own.member |= node.member;
                    own.below.absorb(&node.below);
                }
                None => drop(self.nodes.insert(element.clone(), node.clone())),
            }
        }
    }

    /// How many paths there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.values().map(|node| usize::from(node.member) + node.below.len()).sum()
    }

    /// All paths: on each level the members first, then what lies below each element.
    #[must_use]
    pub fn paths(&self) -> Vec<Path> {
        let mut left = usize::MAX;
        self.first_paths(&mut left)
    }

    /// The first paths that have together no more than `left` letters, which they are taken off from.
    #[must_use]
    pub fn first_paths(&self, left: &mut usize) -> Vec<Path> {
        let mut found = Vec::new();
        self.collect((&mut Vec::new(), 0), left, &mut found);
        found
    }

    fn collect(&self, (prefix, length): (&mut Path, usize), left: &mut usize, found: &mut Vec<Path>) {
        for (element, _, _) in self.entries().filter(|(_, member, _)| *member) {
            match left.checked_sub(length + element.len()) {
                Some(less) => *left = less,
                // Nothing shorter that comes later is told in its place.
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

    /// What is in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = self.clone();
        all.absorb(other);
        all
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut common = Self::default();
        for (element, node) in &self.nodes {
            if let Some(counterpart) = other.nodes.get(element) {
                let member = node.member && counterpart.member;
                common.add(element.clone(), member, node.below.intersection(&counterpart.below));
            }
        }
        common
    }

    /// What is in this set and not in the other. A parent in the other set takes none of its children away.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.without(other, |_, below, counterpart| below.difference(counterpart))
    }

    /// What is in this set, and neither in the other nor below a member of it.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        self.without(
            other,
            |covered, below, counterpart| {
                if covered { Self::default() } else { below.recursive_difference(counterpart) }
            },
        )
    }

    fn without(&self, other: &Self, below: impl Fn(bool, &Self, &Self) -> Self) -> Self {
        let mut left = Self::default();
        for (element, node) in &self.nodes {
            match other.nodes.get(element) {
                Some(counterpart) => {
                    let member = node.member && !counterpart.member;
                    let rest = below(counterpart.member, &node.below, &counterpart.below);
                    left.add(element.clone(), member, rest);
                }
                None => left.add(element.clone(), node.member, node.below.clone()),
            }
        }
        left
    }
}

impl<P: AsRef<[Element]>> FromIterator<P> for FieldSet {
    fn from_iter<I: IntoIterator<Item = P>>(paths: I) -> Self {
        let mut set = Self::default();
        for path in paths {
            set.insert(path.as_ref());
        }
        set
    }
}
