//! Parser events to trees. One pass with a stack of open collections, so that depth costs memory only, and that within
//! a budget.

use std::collections::{HashMap, HashSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, StrInput, Tag};
use serde_json::{Map, Value};
use thiserror::Error;

use super::position::{Position, Positions};
use super::scalar;

/// Open collections at one time. Kubernetes' own objects nest a few dozen deep.
const MAX_DEPTH: usize = 250;
/// Nodes of a file, those that aliases repeat included: a few kilobytes of aliases can stand for gigabytes.
const MAX_NODES: usize = 1_000_000;

/// One document of a file.
#[derive(Clone, Debug)]
pub struct Tree {
    pub value: Value,
    pub positions: Positions,
    /// Keys that a map has twice, in the order of the text; the last value counts.
    pub duplicates: Vec<Duplicate>,
}

/// A key that its map already had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Duplicate {
    pub key: String,
    pub position: Position,
}

/// Text that is no YAML, or more of it than is taken.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{}:{}: {message}", position.line, position.column)]
pub struct YamlError {
    pub position: Position,
    pub message: String,
}

/// All documents of `text`; an empty one is null.
///
/// # Errors
/// The first mistake.
pub fn parse(text: &str) -> Result<Vec<Tree>, YamlError> {
    let mut builder = Builder::default();
    let mut parser = Parser::<StrInput<'_>>::new_from_str(text);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| YamlError {
            position: position(error.marker()),
            message: format!("not YAML: {}", error.info()),
        })?;
        builder.event(event, position(&span.start))?;
    }
    Ok(builder.trees)
}

fn position(marker: &Marker) -> Position {
    Position { line: marker.line(), column: marker.col().saturating_add(1) }
}

type Node = (Value, Positions);

/// A collection whose end has not been seen.
enum Open {
    List { anchor: usize, here: Position, values: Vec<Value>, positions: Vec<Positions> },
    Map(OpenMap),
}

struct OpenMap {
    anchor: usize,
    here: Position,
    values: Map<String, Value>,
    positions: HashMap<String, Positions>,
    /// The key whose value comes next; `None` before a key.
    key: Option<(String, Position)>,
    /// Keys that are written here, so that merged ones may be set once more.
    own: HashSet<String>,
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    /// Finished nodes by anchor; an anchor inside itself is not there yet, so a cycle cannot be built.
    anchors: HashMap<usize, (Node, usize)>,
    /// Anchors up to this one belong to documents before; they are numbered through the file.
    earlier: usize,
    /// The last anchor so far.
    last_anchor: usize,
    nodes: usize,
    duplicates: Vec<Duplicate>,
    trees: Vec<Tree>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, here: Position) -> Result<(), YamlError> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.anchors.clear();
                self.earlier = self.last_anchor;
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                let value = scalar_value(&text, style, tag.as_deref(), here)?;
                self.count(1, here)?;
                self.place((value, Positions::scalar(here)), anchor, Some(&text), here)
            }
            Event::Alias(anchor) => self.alias(anchor, here),
            Event::SequenceStart(anchor, _) => {
                self.begin(Open::List { anchor, here, values: Vec::new(), positions: Vec::new() }, here)
            }
            Event::MappingStart(anchor, _) => self.begin(
                Open::Map(OpenMap {
                    anchor,
                    here,
                    values: Map::new(),
                    positions: HashMap::new(),
                    key: None,
                    own: HashSet::new(),
                }),
                here,
            ),
            Event::SequenceEnd | Event::MappingEnd => self.end(here),
        }
    }

    fn begin(&mut self, collection: Open, here: Position) -> Result<(), YamlError> {
        if self.open.len() >= MAX_DEPTH {
            return Err(YamlError {
                position: here,
                message: format!("nested deeper than {MAX_DEPTH} levels"),
            });
        }
        self.count(1, here)?;
        self.open.push(collection);
        Ok(())
    }

    fn end(&mut self, here: Position) -> Result<(), YamlError> {
        match self.open.pop() {
            Some(Open::List { anchor, here, values, positions }) => {
                self.place((values.into(), Positions::list(here, positions)), anchor, None, here)
            }
            Some(Open::Map(OpenMap { anchor, here, values, positions, .. })) => {
                self.place((values.into(), Positions::map(here, positions)), anchor, None, here)
            }
            None => {
                Err(YamlError { position: here, message: "a collection ends that did not begin".to_owned() })
            }
        }
    }

    fn alias(&mut self, anchor: usize, here: Position) -> Result<(), YamlError> {
        let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
            let message = if anchor <= self.earlier {
                "an alias to an anchor of another document: anchors end with their document"
            } else {
                "an alias to a node that contains it"
            };
            return Err(YamlError { position: here, message: message.to_owned() });
        };
        self.count(size, here)?;
        let (value, positions) = node;
        self.place((value, positions.at(here)), 0, None, here)
    }

    fn count(&mut self, nodes: usize, here: Position) -> Result<(), YamlError> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            let message = format!("more than {MAX_NODES} values, aliases counted as often as they are used");
            return Err(YamlError { position: here, message });
        }
        Ok(())
    }

    /// Puts a finished node where it belongs: into the open collection, or at the end of the documents. `text` is the
    /// spelling of a scalar, which as a key keeps it where it is no boolean or null.
    fn place(
        &mut self,
        node: Node,
        anchor: usize,
        text: Option<&str>,
        here: Position,
    ) -> Result<(), YamlError> {
        if anchor != 0 {
            self.last_anchor = self.last_anchor.max(anchor);
            let size = size(&node.0);
            self.anchors.insert(anchor, (node.clone(), size));
        }
        match self.open.last_mut() {
            None => {
                let (value, positions) = node;
                self.trees.push(Tree { value, positions, duplicates: std::mem::take(&mut self.duplicates) });
                Ok(())
            }
            Some(Open::List { values, positions, .. }) => {
                values.push(node.0);
                positions.push(node.1);
                Ok(())
            }
            Some(Open::Map(map)) => match map.key.take() {
                None => {
                    map.key = Some((key_of(&node.0, text, here)?, here));
                    Ok(())
                }
                Some((key, at)) if key == "<<" => map.merge(node, at),
                Some((key, at)) => {
                    if !map.own.insert(key.clone()) {
                        self.duplicates.push(Duplicate { key: key.clone(), position: at });
                    }
                    map.values.insert(key.clone(), node.0);
                    map.positions.insert(key, node.1.at(at));
                    Ok(())
                }
            },
        }
    }
}

impl OpenMap {
    /// `<<: map` or `<<: [map, …]`: entries that the map does not have; earlier maps win.
    fn merge(&mut self, (value, positions): Node, at: Position) -> Result<(), YamlError> {
        let sources: Vec<Node> = match value {
            Value::Object(_) => vec![(value, positions)],
            Value::Array(items) => items
                .into_iter()
                .enumerate()
                .map(|(index, item)| (item, positions.item(index).cloned().unwrap_or_default()))
                .collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
        };
        if sources.is_empty() {
            let message = "a merge key takes a map, or a list of maps".to_owned();
            return Err(YamlError { position: at, message });
        }
        for (source, positions) in sources {
            let Value::Object(entries) = source else {
                let message = "a merge key takes maps only".to_owned();
                return Err(YamlError { position: at, message });
            };
            let mut positions = positions.into_entries();
            for (key, value) in entries {
                if !self.values.contains_key(&key) {
                    let position = positions.remove(&key).unwrap_or_default();
                    self.positions.insert(key.clone(), position);
                    self.values.insert(key, value);
                }
            }
        }
        Ok(())
    }
}

/// A key in JSON is text: a boolean's is `true` or `false`, a number keeps its spelling.
fn key_of(value: &Value, text: Option<&str>, here: Position) -> Result<String, YamlError> {
    match value {
        Value::String(key) => Ok(key.clone()),
        Value::Bool(flag) => Ok(flag.to_string()),
        Value::Number(number) => Ok(text.map_or_else(|| number.to_string(), ToOwned::to_owned)),
        Value::Null => Ok("null".to_owned()),
        Value::Array(_) | Value::Object(_) => {
            Err(YamlError { position: here, message: "a map's key must be a scalar".to_owned() })
        }
    }
}

fn scalar_value(
    text: &str,
    style: ScalarStyle,
    tag: Option<&Tag>,
    here: Position,
) -> Result<Value, YamlError> {
    let core = tag.filter(|tag| tag.is_yaml_core_schema()).map(|tag| tag.suffix.as_str());
    match core {
        Some("str") => Ok(text.into()),
        // The bytes count as text.
        Some("binary") => match BASE64.decode(text.replace(['\r', '\n'], "")) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned().into()),
            Err(_) => {
                let message = "!!binary value contains invalid base64 data".to_owned();
                Err(YamlError { position: here, message })
            }
        },
        _ if style != ScalarStyle::Plain => Ok(text.into()),
        _ => scalar::resolve(text).map_err(|message| YamlError { position: here, message }),
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
