//! What is answered about files.

use std::ops::Range;

use admit_policy::lint::Severity;

use crate::symbols::SymbolKind;
use crate::text::Place;

/// A mistake, or a part without effect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    /// What it is about.
    pub range: Range<Place>,
    /// How bad it is.
    pub severity: Severity,
    /// Which kind of finding.
    pub code: &'static str,
    /// What is wrong; may have further lines.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
}

/// What is told of a place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hover {
    /// What it is about.
    pub range: Range<Place>,
    /// Markdown.
    pub text: String,
}

/// A part of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Location {
    /// The name of the file.
    pub file: String,
    /// The part.
    pub range: Range<Place>,
}

/// A part of a file, and what is to stand there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Edit {
    /// The part.
    pub range: Range<Place>,
    /// What is to stand there.
    pub text: String,
}

/// A change that mends a mistake.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fix {
    /// What it does.
    pub title: String,
    /// What is changed.
    pub edit: Edit,
}

/// A part of a file that editors list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Symbol {
    /// What it is called: on one line, and never empty.
    pub name: String,
    /// More of it; may be empty.
    pub detail: String,
    /// What it is.
    pub kind: SymbolKind,
    /// All of it.
    pub range: Range<Place>,
    /// What names it, within the range.
    pub named: Range<Place>,
    /// The parts of it, in order.
    pub parts: Vec<Self>,
}
