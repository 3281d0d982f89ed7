//! Evaluates cells that show the value at a path; `values.txt` lists them.

use jiff::Timestamp;
use serde_json::Value;

use super::computed;
use super::texts::{age, count, each, labels, name, or, plain};

/// The rule for a cell's value.
pub(super) enum Cell {
    Name,
    Age,
    Count(&'static str),
    Labels(&'static str),
    /// The value at a path, and the fallback if there is none.
    At(&'static str, &'static str),
    /// Like `At`, with the value unchanged.
    Raw(&'static str, &'static str),
    /// The values at a path of each item of a list.
    Each(&'static str, &'static str, &'static str),
    Computed(computed::Cell),
}

impl Cell {
    pub(super) fn read(text: &'static str) -> Option<Self> {
        if let Some(name) = text.strip_prefix('=') {
            return computed::cell(name).map(Self::Computed);
        }
        if let Some(path) = text.strip_prefix("labels") {
            return Some(Self::Labels(path));
        }
        if let Some(path) = text.strip_prefix("raw") {
            let (path, fallback) = path.split_once('?').unwrap_or((path, "null"));
            return Some(Self::Raw(path, fallback));
        }
        if let Some(path) = text.strip_prefix('#') {
            return Some(Self::Count(path));
        }
        match text {
            "@name" => return Some(Self::Name),
            "@age" => return Some(Self::Age),
            _ if !text.starts_with('/') => return None,
            _ => {}
        }
        let (path, fallback) = text.split_once('?').unwrap_or((text, ""));
        Some(match path.split_once("[]") {
            Some((list, inner)) => Self::Each(list, inner, fallback),
            None => Self::At(path, fallback),
        })
    }

    /// Evaluates the cell for a column of type `kind`.
    pub(super) fn value(&self, kind: &str, object: &Value, now: Timestamp) -> Value {
        match self {
            Self::Name => name(object),
            Self::Age => age(object, now).into(),
            Self::Count(path) => count(object, path).into(),
            Self::Labels(path) => labels(object.pointer(path)).into(),
            Self::At(path, fallback) => match object.pointer(path).filter(|value| !value.is_null()) {
                Some(value) if kind == "string" => or(&plain(value), fallback).into(),
                Some(value) => value.clone(),
                None if kind == "string" => (*fallback).into(),
                None => serde_json::from_str(fallback).unwrap_or_else(|_| (*fallback).into()),
            },
            Self::Raw(path, fallback) => {
                let value = object.pointer(path).filter(|value| !value.is_null()).cloned();
                value.unwrap_or_else(|| serde_json::from_str(fallback).unwrap_or_default())
            }
            Self::Each(list, path, fallback) => or(&each(object, list, path).join(","), fallback).into(),
            Self::Computed(cell) => cell(object).into(),
        }
    }
}
