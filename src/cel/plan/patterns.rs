//! Limits the memory of constant patterns: those that programs keep, and the one being compiled.

use std::collections::HashMap;

use crate::library::regex::{GoRegex, Unbuilt};
use crate::limits::{MAX_PATTERN_BYTES, PATTERN_MAKING};
use crate::value::EvalError;

/// The constant patterns of several programs, such as those of a policy; equal ones count once.
///
/// ```
/// use admit_cel::{PatternError, PatternSum};
///
/// let mut patterns = PatternSum::with_room(1 << 20);
/// let digits = patterns.compile("^[0-9]+$").unwrap();
/// assert!(digits.is_match("17") && digits.size() < 1 << 20);
/// patterns.compile("^[0-9]+$").unwrap();
/// assert_eq!(patterns.count(), 1, "the same one counts once");
/// assert!(matches!(patterns.compile("("), Err(PatternError::Invalid(_))));
/// assert_eq!(PatternSum::with_room(1).compile("a+").unwrap_err(), PatternError::TooMuch);
///
/// // What was compiled once counts elsewhere without being compiled again.
/// let (_, known) = patterns.watching(|patterns| patterns.compile("^[0-9]+$").is_ok());
/// let mut others = PatternSum::with_room(1 << 20);
/// assert!(others.adopt(&known[0]).is_some_and(|digits| digits.is_match("17")) && others.count() == 1);
/// assert!(known[0].size() > 8 && PatternSum::with_room(1).adopt(&known[0]).is_none());
/// ```
#[derive(Clone, Debug)]
pub struct PatternSum {
    kept: HashMap<Box<str>, Kept>,
    bytes: usize,
    room: usize,
    /// The patterns used since watching began.
    watched: Option<Vec<KnownPattern>>,
}

/// A pattern that was compiled, with all that decides whether it may be used in the place of compiling it once more. [`PatternSum`]
/// has an example.
#[derive(Clone, Debug)]
pub struct KnownPattern {
    text: Box<str>,
    kept: Kept,
}

#[derive(Clone, Debug)]
struct Kept {
    regex: GoRegex,
    /// The memory limit under which it was compiled: under a lower one that might fail.
    making: usize,
}

/// Why a pattern is not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It is invalid; the error is in Go's words.
    Invalid(EvalError),
    /// There is no room for it beside the others.
    TooMuch,
}

impl Default for PatternSum {
    fn default() -> Self {
        Self::with_room(MAX_PATTERN_BYTES)
    }
}

impl KnownPattern {
    /// The bytes that it takes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.text.len().saturating_add(self.kept.regex.size())
    }
}

impl PatternSum {
    /// The error for a pattern that exceeds the memory limit.
    pub const TOO_MUCH: &str = "its patterns take more than 60 MiB while they are compiled; use fewer, or smaller classes and \
                                repeat counts";

    /// Creates a set of patterns limited to that many bytes.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        Self { kept: HashMap::new(), bytes: 0, room, watched: None }
    }

    /// Compiles a pattern, or shares an equal one.
    ///
    /// # Errors
    ///
    /// If it is invalid, or exceeds the limit.
    pub fn compile(&mut self, text: &str) -> Result<GoRegex, PatternError> {
        if let Some(kept) = self.kept.get(text).cloned() {
            self.note(text, &kept);
            return Ok(kept.regex);
        }
        let making = self.making();
        let made = GoRegex::within(text, making);
        let regex = made.map_err(|unbuilt| match unbuilt {
            Unbuilt::Invalid(error) => PatternError::Invalid(error),
            Unbuilt::TooLarge => PatternError::TooMuch,
        })?;
        self.keep(text, Kept { regex, making }).ok_or(PatternError::TooMuch)
    }

    /// Adds an already compiled pattern, if compiling it here would give the same result.
    pub fn adopt(&mut self, known: &KnownPattern) -> Option<GoRegex> {
        let KnownPattern { text, kept } = known;
        if let Some(kept) = self.kept.get(text).cloned() {
            self.note(text, &kept);
            return Some(kept.regex);
        }
        if self.making() < kept.making { None } else { self.keep(text, kept.clone()) }
    }

    /// Runs `work`, and returns the patterns that it compiled successfully, in order.
    pub fn watching<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> (T, Vec<KnownPattern>) {
        let before = self.watched.replace(Vec::new());
        let done = work(self);
        let seen = std::mem::replace(&mut self.watched, before).unwrap_or_default();
        (done, seen)
    }

    fn making(&self) -> usize {
        self.room.saturating_sub(self.bytes) / PATTERN_MAKING
    }

    /// Returns None if the limit is exceeded.
    fn keep(&mut self, text: &str, kept: Kept) -> Option<GoRegex> {
        let bytes = self.bytes.checked_add(kept.regex.size()).filter(|bytes| *bytes <= self.room)?;
        self.bytes = bytes;
        self.note(text, &kept);
        self.kept.insert(text.into(), kept.clone());
        Some(kept.regex)
    }

    fn note(&mut self, text: &str, kept: &Kept) {
        if let Some(watched) = &mut self.watched {
            watched.push(KnownPattern { text: text.into(), kept: kept.clone() });
        }
    }

    /// Returns the number of patterns.
    #[must_use]
    pub fn count(&self) -> usize {
        self.kept.len()
    }
}
