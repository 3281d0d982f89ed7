//! What a text is read as.

use serde_json::Value;
use thiserror::Error;

use super::position::{Position, Positions};

/// One document of a file.
#[derive(Clone, Debug)]
pub struct Tree {
    /// What it says.
    pub value: Value,
    /// Where it says that.
    pub positions: Positions,
    /// Keys that a map has twice, in the order of the text, of very many the first; the last value counts.
    pub duplicates: Vec<Duplicate>,
    /// How many more there are.
    pub more_duplicates: usize,
}

/// A key that its map already had.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Duplicate {
    /// As much of it as is shown.
    pub key: String,
    /// Where it stands again.
    pub position: Position,
}

/// Text that is no YAML, or more of it than is taken.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{}:{}: {message}", position.line, position.column)]
pub struct YamlError {
    /// Where that was seen.
    pub position: Position,
    /// What is wrong.
    pub message: String,
    /// The text may be sound, and is more than is taken.
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
