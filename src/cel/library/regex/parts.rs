//! Represents a pattern as a tree, for callers that analyse which strings match instead of matching one.

use regex_syntax::hir::{Class, Hir, HirKind, Look};

use super::{parse, refusal};
use crate::value::EvalError;

/// A part of a pattern in Go's syntax.
///
/// ```
/// use admit_cel::PatternPart;
///
/// let part = PatternPart::of("^a[b-d]*$").unwrap();
/// let PatternPart::Concat(parts) = part else { panic!() };
/// assert_eq!(parts[0], PatternPart::Start);
/// assert_eq!(parts[1], PatternPart::Text("a".into()));
/// assert!(matches!(&parts[2], PatternPart::Repeat { least: 0, most: None, .. }));
/// assert_eq!(parts[3], PatternPart::End);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternPart {
    /// The empty string.
    Empty,
    /// These characters, one after another.
    Text(Box<str>),
    /// A character in one of these ranges, bounds included; without ranges, nothing matches.
    OneOf(Vec<(char, char)>),
    /// All, one after another.
    Concat(Vec<Self>),
    /// One of these alternatives.
    Either(Vec<Self>),
    /// A number of times.
    Repeat {
        /// At least.
        least: u32,
        /// The maximum; unlimited if None.
        most: Option<u32>,
        /// What is repeated.
        part: Box<Self>,
    },
    /// The beginning of the string.
    Start,
    /// The end of the string.
    End,
    /// A condition on the surroundings: line ends, word boundaries.
    Around,
}

impl PatternPart {
    /// Parses a pattern.
    ///
    /// # Errors
    ///
    /// Go's error message.
    pub fn of(pattern: &str) -> Result<Self, EvalError> {
        let hir = parse::parse(pattern).map_err(refusal)?;
        Ok(part(&hir))
    }
}

/// The parser limits the height of its result, and so this recursion.
fn part(hir: &Hir) -> PatternPart {
    match hir.kind() {
        HirKind::Empty => PatternPart::Empty,
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => PatternPart::Text(text.into()),
            Err(_) => PatternPart::Around,
        },
        HirKind::Class(Class::Unicode(class)) => {
            PatternPart::OneOf(class.iter().map(|range| (range.start(), range.end())).collect())
        }
        HirKind::Class(Class::Bytes(class)) => PatternPart::OneOf(
            class.iter().map(|range| (char::from(range.start()), char::from(range.end()))).collect(),
        ),
        HirKind::Look(Look::Start) => PatternPart::Start,
        HirKind::Look(Look::End) => PatternPart::End,
        HirKind::Look(_) => PatternPart::Around,
        HirKind::Repetition(repetition) => PatternPart::Repeat {
            least: repetition.min,
            most: repetition.max,
            part: Box::new(part(&repetition.sub)),
        },
        HirKind::Capture(capture) => part(&capture.sub),
        HirKind::Concat(parts) => PatternPart::Concat(parts.iter().map(part).collect()),
        HirKind::Alternation(parts) => PatternPart::Either(parts.iter().map(part).collect()),
    }
}
