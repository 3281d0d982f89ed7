//! Defines the answers to editors: diagnostics, hovers, locations, edits, fixes and symbols.

use std::ops::Range;

use admit_policy::lint::Severity;

use crate::symbols::SymbolKind;
use crate::text::Place;

/// A diagnostic: a mistake, or a part without effect.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Mistake {
    /// The part of the file that is underlined.
    pub range: Range<Place>,
    /// How bad it is.
    pub severity: Severity,
    /// The stable code of this kind of diagnostic.
    pub code: &'static str,
    /// What is wrong; may have further lines.
    pub message: String,
    /// What to do; may be empty.
    pub help: String,
}

/// The text that an editor shows over a place.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hover {
    /// The part of the file that the text is about.
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

/// A replacement of a part of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Edit {
    /// The part.
    pub range: Range<Place>,
    /// The new text.
    pub text: String,
}

/// A quick fix: an edit that removes a mistake.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fix {
    /// One line that says what the fix does.
    pub title: String,
    /// The edit.
    pub edit: Edit,
}

/// An entry of a file's outline.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Symbol {
    /// Its name: one line, never empty.
    pub name: String,
    /// Details beside the name; may be empty.
    pub detail: String,
    /// Its kind.
    pub kind: SymbolKind,
    /// The whole entry.
    pub range: Range<Place>,
    /// The name, within the range.
    pub named: Range<Place>,
    /// The entries below it, in order.
    pub parts: Vec<Self>,
}
