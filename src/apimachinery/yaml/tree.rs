//! Defines the result of parsing a text.

use serde_json::Value;
use thiserror::Error;

use super::position::{Position, Positions};

/// One document of a file.
#[derive(Clone, Debug)]
pub struct Tree {
    /// The value of the document.
    pub value: Value,
    /// The positions of its parts.
    pub positions: Positions,
    /// Duplicate keys of maps, in the order of the text, only the first of very many; the last value counts.
    pub duplicates: Vec<Duplicate>,
    /// How many more duplicate keys there are.
    pub more_duplicates: usize,
}

/// A key that its map already had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Duplicate {
    /// The key, shortened for display.
    pub key: String,
    /// The position of the repetition.
    pub position: Position,
}

/// The error for a text that is not YAML, or exceeds a limit.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{}:{}: {message}", position.line, position.column)]
pub struct YamlError {
    /// The position of the error.
    pub position: Position,
    /// The error message.
    pub message: String,
    /// Whether the text exceeds a limit; it may be valid.
    pub too_much: bool,
}

impl YamlError {
    pub(super) fn new(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into(), too_much: false }
    }

    pub(super) fn too_much(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into(), too_much: true }
    }
}
