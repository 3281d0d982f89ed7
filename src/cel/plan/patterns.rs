//! How much memory constant patterns take: those that programs keep, and the one that is being compiled.

use std::collections::HashMap;

use crate::library::regex::{GoRegex, Unbuilt};
use crate::limits::{MAX_PATTERN_BYTES, PATTERN_MAKING};
use crate::value::EvalError;

/// The constant patterns of several programs, such as those of a policy, each of which counts once.
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
/// ```
#[derive(Clone, Debug)]
pub struct PatternSum {
    kept: HashMap<Box<str>, GoRegex>,
    bytes: usize,
    room: usize,
}

/// Why a pattern is not compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// It is none, in Go's words.
    Invalid(EvalError),
    /// There is no room for it beside the others.
    TooMuch,
}

impl Default for PatternSum {
    fn default() -> Self {
        Self::with_room(MAX_PATTERN_BYTES)
    }
}

impl PatternSum {
    /// What is wrong with a pattern that there is no room for.
    pub const TOO_MUCH: &str = "its patterns take more than 60 MiB while they are compiled; use fewer, or smaller classes and \
                                repeat counts";

    /// For patterns that take so many bytes together.
    #[must_use]
    pub fn with_room(room: usize) -> Self {
        Self { kept: HashMap::new(), bytes: 0, room }
    }

    /// Compiles a pattern, or shares what was compiled before.
    ///
    /// # Errors
    ///
    /// When it is none, or takes too much.
    pub fn compile(&mut self, text: &str) -> Result<GoRegex, PatternError> {
        if let Some(known) = self.kept.get(text) {
            return Ok(known.clone());
        }
        let left = self.room.saturating_sub(self.bytes);
        let made = GoRegex::within(text, left / PATTERN_MAKING);
        let regex = made.map_err(|unbuilt| match unbuilt {
            Unbuilt::Invalid(error) => PatternError::Invalid(error),
            Unbuilt::TooLarge => PatternError::TooMuch,
        })?;
        if regex.size() > left {
            return Err(PatternError::TooMuch);
        }
        self.bytes = self.bytes.saturating_add(regex.size());
        self.kept.insert(text.into(), regex.clone());
        Ok(regex)
    }

    /// How many patterns there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.kept.len()
    }
}
