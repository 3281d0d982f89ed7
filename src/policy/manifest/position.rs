//! The position of every field of a document in its text: a tree of the same shape as the document.

use std::collections::HashMap;

use crate::weight;

/// A line and column in a text; both count from 1, columns in code points.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Default for Position {
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

/// The position of a node and of all nodes in it. The position of a map entry is that of its key.
#[derive(Clone, Debug, Default)]
pub struct Positions {
    here: Position,
    below: Below,
}

#[derive(Clone, Debug, Default)]
enum Below {
    #[default]
    Nothing,
    Items(Vec<Positions>),
    Entries(HashMap<String, Positions>),
}

/// What the position of an item weighs, without those below it. Half of what a list has grown by last may be unused.
const ITEM: usize = size_of::<Positions>() + size_of::<Positions>() / 2;

/// The same of an entry, without its key; a table is 7/16 to 7/8 full.
const MEMBER: usize = size_of::<(String, Positions)>() * 8 / 5;

pub(super) const fn of_item() -> usize {
    ITEM
}

pub(super) const fn of_member(key: &str) -> usize {
    MEMBER.saturating_add(weight::of_text(key.len()))
}

impl Positions {
    pub(super) fn scalar(here: Position) -> Self {
        Self { here, below: Below::Nothing }
    }

    pub(super) fn list(here: Position, items: Vec<Self>) -> Self {
        Self { here, below: Below::Items(items) }
    }

    pub(super) fn map(here: Position, entries: HashMap<String, Self>) -> Self {
        Self { here, below: Below::Entries(entries) }
    }

    /// What the positions below this one weigh. Depth is bounded by whoever made it.
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

    /// The same subtree at another place: what an alias or a map's value looks like from its key.
    #[must_use]
    pub(super) fn at(self, here: Position) -> Self {
        Self { here, ..self }
    }

    #[must_use]
    pub fn here(&self) -> Position {
        self.here
    }

    #[must_use]
    pub fn child(&self, key: &str) -> Option<&Self> {
        match &self.below {
            Below::Entries(entries) => entries.get(key),
            Below::Nothing | Below::Items(_) => None,
        }
    }

    #[must_use]
    pub fn item(&self, index: usize) -> Option<&Self> {
        match &self.below {
            Below::Items(items) => items.get(index),
            Below::Nothing | Below::Entries(_) => None,
        }
    }

    /// The entries of a map, taken out; nothing for other nodes.
    pub(super) fn into_entries(self) -> HashMap<String, Self> {
        match self.below {
            Below::Entries(entries) => entries,
            Below::Nothing | Below::Items(_) => HashMap::new(),
        }
    }

    /// Follows a field path as far as the document goes.
    ///
    /// What all versions of a definition share stands at the top of Kubernetes' internal form, and so in its messages;
    /// in the text it stands under each version.
    #[must_use]
    pub fn find(&self, field: &str) -> Position {
        const SHARED: [(&str, &str); 4] = [
            ("validation", "schema"),
            ("subresources", "subresources"),
            ("additionalPrinterColumns", "additionalPrinterColumns"),
            ("selectableFields", "selectableFields"),
        ];
        let moved = field.strip_prefix("spec.").and_then(|below| {
            let (_, name) = SHARED.into_iter().find(|(shared, _)| below.starts_with(shared))?;
            let (_, rest) = below.split_at_checked(below.find(['.', '['])?)?;
            let versions = self.child("spec")?.child("versions")?;
            versions.item(0)?.child(name)?;
            Some(format!("spec.versions[0].{name}{rest}"))
        });
        let mut node = self;
        for segment in segments(moved.as_deref().unwrap_or(field)) {
            let below = node.child(segment).or_else(|| node.item(segment.parse().ok()?));
            let Some(below) = below else { break };
            node = below;
        }
        node.here
    }
}

/// `spec.list[0].map[a.b].c` in parts: dots divide outside of brackets only.
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
