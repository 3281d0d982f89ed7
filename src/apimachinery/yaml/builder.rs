//! Builds trees from YAML parser events, in one pass with an explicit stack, so that depth costs memory only, and
//! that within a budget: of the number of values, and of their size including what aliases repeat.

use std::collections::{HashMap, HashSet};

use granit_parser::Event;
use serde_json::Value;

use super::map::{Duplicates, Key, Node, OpenMap, Spelling};
use super::position::{self, Position, Positions};
use super::scalar;
use super::tree::{Tree, YamlError};
use crate::weight::{self, Budget};

/// Open collections at one time. Kubernetes' own objects nest a few dozen deep.
const MAX_DEPTH: usize = 250;
/// Nodes of a text, or of a document where each is let go before the next, those that aliases repeat included: a few kilobytes
/// of aliases can stand for gigabytes.
const MAX_NODES: usize = 1_000_000;
/// What a file's values and positions may weigh for each of its bytes. Those of manifests weigh six to fourteen times
/// their text, and a file is held but once, while a request makes copies.
const PER_BYTE: usize = 16;

/// A collection whose end has not been seen.
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
    /// Whether anybody asks where things stand.
    placed: bool,
    budget: Budget,
    /// What a document has where each has a budget of its own: that of the text, without what outlasts documents.
    fresh: Budget,
    open: Vec<Open>,
    /// Finished nodes by anchor; an anchor inside itself is not there yet, so a cycle cannot be built.
    anchors: HashMap<usize, Anchored>,
    /// How anchors are called, those of documents before included.
    names: HashSet<String>,
    nodes: usize,
    duplicates: Duplicates,
    pub(super) trees: Vec<Tree>,
    /// The lists that are open and whose items are let go one by one, the outermost first, which stand in each other: what an
    /// item of each has.
    items: Vec<Allowance>,
}

/// What a document or an item of one may still be.
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

    /// What was taken of the budget.
    pub(super) fn spent(&self) -> usize {
        self.budget.spent()
    }

    /// How much a text of `length` bytes may weigh, with its places.
    pub(super) const fn most(length: usize) -> usize {
        Budget::of(length, PER_BYTE).left()
    }

    /// Whether what begins next are the `items` of a document, or of an item that is let go.
    pub(super) fn opens_items(&self) -> bool {
        match self.open.split_last() {
            Some((Open::Map(OpenMap { anchor: 0, key: Some(key), .. }), around)) => {
                key.name == "items" && around.len() == self.depth_of_items()
            }
            _ => false,
        }
    }

    /// Each item of the list that has just begun becomes a tree of its own.
    pub(super) fn let_items_go(&mut self) {
        self.items.push(Allowance { budget: self.budget, nodes: self.nodes });
    }

    /// Begins to count anew, where a document or an item is over and will be let go. Answers in how many lists it stands.
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

    /// Collections around an item that is let go, or around a document: a map and a list for each list.
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
            // Events that are asked for by options of the parser which are not set.
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
        // What is kept outlasts the items that it stands in.
        for item in &mut self.items {
            item.nodes = item.nodes.saturating_add(nodes);
            item.budget.take(weight).map_err(|limit| YamlError::too_much(here, limit.to_string()))?;
        }
        self.anchors.insert(anchor, Anchored { node: node.clone(), nodes, weight });
        Ok(())
    }

    /// Spends what a place takes in the collection that is open.
    fn weigh_place(&mut self, here: Position) -> Result<(), YamlError> {
        let weight = match self.open.last() {
            Some(Open::List { .. }) if self.placed => weight::of_item().saturating_add(position::of_item()),
            Some(Open::List { .. }) => weight::of_item(),
            Some(Open::Map(OpenMap { key: Some(Key { name, .. }), .. })) if self.placed => {
                weight::of_member(name).saturating_add(position::of_member(name))
            }
            Some(Open::Map(OpenMap { key: Some(Key { name, .. }), .. })) => weight::of_member(name),
            Some(Open::Map(OpenMap { key: None, .. })) => return Ok(()),
            // In the list of trees, which grows, and in that of the documents that are made of them.
            None => size_of::<Tree>().saturating_mul(3),
        };
        self.weigh(weight, here)
    }

    /// Puts a finished node where it belongs: into the open collection, or at the end of the documents. A scalar has a
    /// `spelling`, which as a key it keeps where it is no boolean or null.
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

/// The number of nodes of a value. Depth is bounded by the builder, so recursion is too.
fn size(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(size).fold(1, usize::saturating_add),
        Value::Object(entries) => entries.values().map(size).fold(1, usize::saturating_add),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}
