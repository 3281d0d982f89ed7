//! Records the positions of all fields of a document in a tree of the same shape.

use std::collections::HashMap;

use crate::weight;

/// A position in a text; both numbers count from 1, columns in code points.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Position {
    /// The line in the text.
    pub line: usize,
    /// The column in the line.
    pub column: usize,
}

impl Default for Position {
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

/// The position of a node and those of its descendants. The position of a map entry is that of its key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Positions {
    here: Position,
    below: Below,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
enum Below {
    #[default]
    Nothing,
    Items(Vec<Positions>),
    Entries(HashMap<String, Positions>),
}

/// The memory of the position of an item, without its descendants. Half of the last growth of a list may be unused.
const ITEM: usize = size_of::<Positions>() + size_of::<Positions>() / 2;

/// The memory of an entry of a map, without its key; a table is 7/16 to 7/8 full.
const MEMBER: usize = size_of::<(String, Positions)>() * 8 / 5;

pub(super) const fn of_item() -> usize {
    ITEM
}

pub(super) const fn of_member(key: &str) -> usize {
    MEMBER.saturating_add(weight::of_text(key.len()))
}

impl Positions {
    /// Creates the position of a node without children.
    #[must_use]
    pub fn scalar(here: Position) -> Self {
        Self { here, below: Below::Nothing }
    }

    pub(super) fn list(here: Position, items: Vec<Self>) -> Self {
        Self { here, below: Below::Items(items) }
    }

    pub(super) fn map(here: Position, entries: HashMap<String, Self>) -> Self {
        Self { here, below: Below::Entries(entries) }
    }

    /// Returns the memory of the positions below this one. Its creator has limited the depth.
    pub(super) fn weight(&self) -> usize {
        match &self.below {
            Below::Nothing => 0,
            Below::Items(items) => items
                .iter()
                .map(|item| of_item().saturating_add(item.weight()))
                .fold(0, usize::saturating_add),
            Below::Entries(entries) => entries
                .iter()
                .map(|(key, entry)| of_member(key).saturating_add(entry.weight()))
                .fold(0, usize::saturating_add),
        }
    }

    /// Returns the same subtree at another position, for an alias, or for a map entry at its key.
    #[must_use]
    pub(super) fn at(self, here: Position) -> Self {
        Self { here, ..self }
    }

    /// Follows keys of maps and indexes of items.
    pub(super) fn follow(&self, steps: &[&str]) -> Option<&Self> {
        steps.iter().try_fold(self, |node, step| node.child(step).or_else(|| node.item(step.parse().ok()?)))
    }

    /// Does the same for changing the node.
    fn at_mut(&mut self, steps: &[&str]) -> Option<&mut Self> {
        steps.iter().try_fold(self, |node, step| match &mut node.below {
            Below::Entries(entries) => entries.get_mut(*step),
            Below::Items(items) => items.get_mut(step.parse::<usize>().ok()?),
            Below::Nothing => None,
        })
    }

    /// Replaces the positions of a part that was parsed again; false if the part does not exist.
    pub(super) fn put(&mut self, steps: &[&str], new: Self) -> bool {
        self.at_mut(steps).map(|node| *node = new).is_some()
    }

    /// Moves the positions from line `from` on. Recursive, as deep as documents nest.
    pub(super) fn shift(&mut self, from: usize, by: isize) {
        if self.here.line >= from {
            self.here.line = self.here.line.saturating_add_signed(by);
        }
        match &mut self.below {
            Below::Nothing => {}
            Below::Items(items) => items.iter_mut().for_each(|item| item.shift(from, by)),
            Below::Entries(entries) => entries.values_mut().for_each(|entry| entry.shift(from, by)),
        }
    }

    /// Returns the position of the node.
    #[must_use]
    pub fn here(&self) -> Position {
        self.here
    }

    /// Returns the positions of a map entry.
    #[must_use]
    pub fn child(&self, key: &str) -> Option<&Self> {
        match &self.below {
            Below::Entries(entries) => entries.get(key),
            Below::Nothing | Below::Items(_) => None,
        }
    }

    /// Returns the positions of a list item.
    #[must_use]
    pub fn item(&self, index: usize) -> Option<&Self> {
        match &self.below {
            Below::Items(items) => items.get(index),
            Below::Nothing | Below::Entries(_) => None,
        }
    }

    /// Returns the position of a field (`spec.list[0].map[a.b].c`), or of the nearest existing parent.
    ///
    /// ```
    /// let trees = admit_apimachinery::yaml::parse("rules:\n- verbs: [get]\n  users: [ann]\n")?;
    /// let positions = &trees[0].positions;
    /// assert_eq!((positions.find("rules[0].users[0]").line, positions.find("rules[0].groups").line), (3, 2));
    /// # Ok::<(), admit_apimachinery::yaml::YamlError>(())
    /// ```
    #[must_use]
    pub fn find(&self, field: &str) -> Position {
        self.find_or(field, |_, _| None)
    }

    /// Does the same, with other nodes for a part of the path: `other` is called for parts that the document does not have.
    /// [`Self::find`] has an example.
    pub fn find_or<'p>(
        &'p self,
        field: &str,
        other: impl Fn(&'p Self, &str) -> Option<&'p Self>,
    ) -> Position {
        let mut node = self;
        for segment in segments(field) {
            let below = node.child(segment).or_else(|| node.item(segment.parse().ok()?));
            let Some(below) = below.or_else(|| other(node, segment)) else { break };
            node = below;
        }
        node.here
    }

    /// Takes the entries of a map; empty for other nodes.
    pub(super) fn into_entries(self) -> HashMap<String, Self> {
        match self.below {
            Below::Entries(entries) => entries,
            Below::Nothing | Below::Items(_) => HashMap::new(),
        }
    }
}

/// Splits `spec.list[0].map[a.b].c` into parts: dots in brackets do not separate.
fn segments(field: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    field
        .split(move |c: char| match c {
            '[' => {
                depth = depth.saturating_add(1);
                depth == 1
            }
            ']' => {
                depth = depth.saturating_sub(1);
                depth == 0
            }
            '.' => depth == 0,
            _ => false,
        })
        .filter(|segment| !segment.is_empty())
}
