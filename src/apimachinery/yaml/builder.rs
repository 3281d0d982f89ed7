//! Builds trees from YAML parser events, in one pass with an explicit stack, so that depth only costs memory, and
//! within a budget for the number of values and for their size, including what aliases repeat.

use std::collections::{HashMap, HashSet};

use granit_parser::Event;
use serde_json::Value;

use super::map::{Duplicates, Key, Node, OpenMap, Spelling};
use super::position::{self, Position, Positions};
use super::scalar;
use super::tree::{Tree, YamlError};
use crate::weight::{self, Budget};

/// The most open collections. Kubernetes' own objects nest a few dozen deep.
const MAX_DEPTH: usize = 250;
/// The most nodes of a text, or of each document if documents are dropped one by one, including those that aliases repeat: a few
/// kilobytes of aliases can stand for gigabytes.
const MAX_NODES: usize = 1_000_000;
/// The memory for a file's values and positions per byte. Those of manifests take six to fourteen times
/// their length, but a file is in memory only once, while a request makes copies.
const PER_BYTE: usize = 16;

/// A collection that has not ended.
enum Open {
    List { anchor: usize, here: Position, values: Vec<Value>, positions: Vec<Positions> },
    Map(OpenMap),
}

/// A finished node that aliases may repeat.
struct Anchored {
    node: Node,
    nodes: usize,
    weight: usize,
}

pub(super) struct Builder {
    /// Whether positions are recorded.
    placed: bool,
    budget: Budget,
    /// The initial budget of each document, if they have separate ones: that of the text, without what outlives documents.
    fresh: Budget,
    open: Vec<Open>,
    /// Finished nodes by anchor; an unfinished node is not included, so a cycle cannot be built.
    anchors: HashMap<usize, Anchored>,
    /// The names of all anchors, including those of earlier documents.
    names: HashSet<String>,
    nodes: usize,
    duplicates: Duplicates,
    pub(super) trees: Vec<Tree>,
    /// The open lists whose items are returned one by one, the outermost first, each nested in the one before: the allowance
    /// of their items.
    items: Vec<Allowance>,
}

/// The budget of a document or of an item.
#[derive(Clone, Copy)]
struct Allowance {
    budget: Budget,
    nodes: usize,
}

impl Builder {
    pub(super) fn new(length: usize, placed: bool) -> Self {
        let budget = if placed { Budget::of(length, PER_BYTE) } else { Budget::of_text(length) };
        Self {
            placed,
            budget,
            fresh: budget,
            open: Vec::new(),
            anchors: HashMap::new(),
            names: HashSet::new(),
            nodes: 0,
            duplicates: Duplicates::default(),
            trees: Vec::new(),
            items: Vec::new(),
        }
    }

    /// Returns how much of the budget was used.
    pub(super) fn spent(&self) -> usize {
        self.budget.spent()
    }

    /// Returns the memory limit for a text of `length` bytes, including positions.
    pub(super) const fn most(length: usize) -> usize {
        Budget::of(length, PER_BYTE).left()
    }

    /// Whether the next node is the value of `items` in a document, or in an item that is returned by itself.
    pub(super) fn opens_items(&self) -> bool {
        match self.open.split_last() {
            Some((Open::Map(OpenMap { anchor: 0, key: Some(key), .. }), around)) => {
                key.name == "items" && around.len() == self.depth_of_items()
            }
            _ => false,
        }
    }

    /// Makes each item of the list that has just begun a tree of its own.
    pub(super) fn let_items_go(&mut self) {
        self.items.push(Allowance { budget: self.budget, nodes: self.nodes });
    }

    /// Resets the budget after a document or an item that is dropped; returns the number of lists around it.
    pub(super) fn renew(&mut self) -> usize {
        match self.items.last() {
            Some(Allowance { budget, nodes }) => (self.budget, self.nodes) = (*budget, *nodes),
            None => {
                self.anchors.clear();
                (self.budget, self.nodes) = (self.fresh, 0);
            }
        }
        self.items.len()
    }

    /// Returns the number of collections around an item or a document: a map and a list for each list.
    fn depth_of_items(&self) -> usize {
        self.items.len().saturating_mul(2)
    }

    pub(super) fn event(&mut self, event: Event<'_>, here: Position) -> Result<(), YamlError> {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Comment(..) => Ok(()),
            Event::Anchor(_, name) => {
                let weight = weight::of_member(&name);
                self.weigh(weight, here)?;
                if self.names.insert(name.into_owned()) {
                    let of_items = self.items.iter_mut().map(|item| &mut item.budget);
                    for budget in of_items.chain([&mut self.fresh]) {
                        budget.take(weight).map_err(|limit| YamlError::too_much(here, limit.to_string()))?;
                    }
                }
                Ok(())
            }
            Event::DocumentStart(..) => {
                self.anchors.clear();
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar::value(&text, style, tag.as_deref(), here)?;
                self.count(1, weight::of_text(text.len()), here)?;
                let merges = scalar::merges(&text, style, tag.as_deref());
                let spelling = Spelling { text: &text, merges };
                self.place((value, Positions::scalar(here)), anchor, Some(spelling), here)
            }
            Event::Alias(anchor) => self.alias(anchor, here),
            Event::UnresolvedAlias(name) if self.names.contains(&*name) => {
                let message = "an alias to an anchor of another document: anchors end with their document";
                Err(YamlError::new(here, message))
            }
            Event::UnresolvedAlias(_) => {
                Err(YamlError::new(here, "not YAML: while parsing node, found unknown anchor"))
            }
            Event::SequenceStart(_, anchor, _) => {
                self.begin(Open::List { anchor, here, values: Vec::new(), positions: Vec::new() }, here)
            }
            Event::MappingStart(_, anchor, _) => self.begin(Open::Map(OpenMap::new(anchor, here)), here),
            Event::SequenceEnd | Event::MappingEnd => self.end(here),
            // Events for parser options that are not set.
            _ => Ok(()),
        }
    }

    fn begin(&mut self, collection: Open, here: Position) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError::new(here, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.count(1, weight::of_map(), here)?;
        self.open.push(collection);
        Ok(())
    }

    fn end(&mut self, here: Position) -> Result<(), YamlError> {
        let closed = self.open.pop();
        if self.open.len() < self.depth_of_items() {
            self.items.pop();
        }
        match closed {
            Some(Open::List { anchor, here, values, positions }) => {
                self.place((values.into(), Positions::list(here, positions)), anchor, None, here)
            }
            Some(Open::Map(OpenMap { anchor, here, values, positions, .. })) => {
                self.place((values.into(), Positions::map(here, positions)), anchor, None, here)
            }
            None => Err(YamlError::new(here, "a collection ends that did not begin")),
        }
    }

    fn alias(&mut self, anchor: usize, here: Position) -> Result<(), YamlError> {
        let Some(anchored) = self.anchors.get(&anchor) else {
            return Err(YamlError::new(here, "an alias to a node that contains it"));
        };
        // Counted before it is copied.
        let (nodes, weight) = (anchored.nodes, anchored.weight);
        self.count(nodes, weight, here)?;
        let Some((value, positions)) = self.anchors.get(&anchor).map(|anchored| anchored.node.clone()) else {
            return Ok(());
        };
        self.place((value, positions.at(here)), 0, None, here)
    }

    fn count(&mut self, nodes: usize, weight: usize, here: Position) -> Result<(), YamlError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            let message = format!("more than {MAX_NODES} values, aliases counted as often as they are used");
            return Err(YamlError::too_much(here, message));
        }
        self.weigh(weight, here)
    }

    fn weigh(&mut self, weight: usize, here: Position) -> Result<(), YamlError> {
        let too_heavy = |limit| format!("{limit}; aliases count as often as they are used");
        self.budget.take(weight).map_err(|limit| YamlError::too_much(here, too_heavy(limit)))
    }

    /// Keeps a node for its aliases.
    fn keep(&mut self, node: &Node, anchor: usize, here: Position) -> Result<(), YamlError> {
        let nodes = size(&node.0);
        let weight = weight::of(&node.0).saturating_add(if self.placed { node.1.weight() } else { 0 });
        self.weigh(weight, here)?;
        // What is kept outlives the items that contain it.
        for item in &mut self.items {
            item.nodes = item.nodes.saturating_add(nodes);
            item.budget.take(weight).map_err(|limit| YamlError::too_much(here, limit.to_string()))?;
        }
        self.anchors.insert(anchor, Anchored { node: node.clone(), nodes, weight });
        Ok(())
    }

    /// Charges the budget for a position in the open collection.
    fn weigh_place(&mut self, here: Position) -> Result<(), YamlError> {
        let weight = match self.open.last() {
            Some(Open::List { .. }) if self.placed => weight::of_item().saturating_add(position::of_item()),
            Some(Open::List { .. }) => weight::of_item(),
            Some(Open::Map(OpenMap { key: Some(Key { name, .. }), .. })) if self.placed => {
                weight::of_member(name).saturating_add(position::of_member(name))
            }
            Some(Open::Map(OpenMap { key: Some(Key { name, .. }), .. })) => weight::of_member(name),
            Some(Open::Map(OpenMap { key: None, .. })) => return Ok(()),
            // The list of trees grows, and so does that of the documents made of them.
            None => size_of::<Tree>().saturating_mul(3),
        };
        self.weigh(weight, here)
    }

    /// Adds a finished node to the open collection, or to the documents. A scalar has a `spelling`, which it keeps as a key unless it
    /// is a boolean or null.
    fn place(
        &mut self,
        node: Node,
        anchor: usize,
        spelling: Option<Spelling<'_>>,
        here: Position,
    ) -> Result<(), YamlError> {
        if anchor != 0 {
            self.keep(&node, anchor, here)?;
        }
        self.weigh_place(here)?;
        if self.open.len() == self.depth_of_items() {
            let (value, positions) = node;
            let Duplicates { told, more } = std::mem::take(&mut self.duplicates);
            self.trees.push(Tree { value, positions, duplicates: told, more_duplicates: more });
            return Ok(());
        }
        match self.open.last_mut() {
            None => {}
            Some(Open::List { values, positions, .. }) => {
                values.push(node.0);
                if self.placed {
                    positions.push(node.1);
                }
            }
            Some(Open::Map(map)) => match map.key.take() {
                None => map.key = Some(Key::of(&node.0, spelling, here)?),
                Some(Key { here: at, merges: true, .. }) => map.merge(node, at, self.placed)?,
                Some(Key { name, here: at, .. }) => {
                    if map.is_duplicate(&name) {
                        self.duplicates.note(&name, at);
                    }
                    map.insert(name, (node.0, node.1.at(at)), self.placed);
                }
            },
        }
        Ok(())
    }
}

/// Returns the number of nodes of a value. The builder limits the depth, so the recursion is limited too.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(size).fold(1, usize::saturating_add),
        Value::Object(entries) => entries.values().map(size).fold(1, usize::saturating_add),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
