//! What a caller may want of evaluations beside their outcome: to be told what they did, and to stop them in time. The
//! clock is the caller's, since there is none here.

use std::cell::Cell;
use std::fmt;

use crate::recording::Recording;

/// What a caller may want of a decision beside its outcome.
#[derive(Clone, Copy, Debug, Default)]
pub struct Oversight<'a> {
    /// Where the evaluations are noted.
    pub recording: Option<&'a Recording>,
    /// When to stop.
    pub deadline: Option<Deadline<'a>>,
    /// What the expressions of policies cost is added here; rules of definitions are not counted.
    pub spent: Option<&'a Cell<u64>>,
}

impl<'a> From<Option<&'a Recording>> for Oversight<'a> {
    /// Without a deadline.
    fn from(recording: Option<&'a Recording>) -> Self {
        Self { recording, ..Self::default() }
    }
}

/// Says whether it is time to stop. Asked before every expression and at least every hundred rounds within one; what is
/// not decided by then is an error, `operation interrupted`, on which failurePolicy has its say.
#[derive(Clone, Copy)]
pub struct Deadline<'a> {
    passed: &'a (dyn Fn() -> bool + 'a),
}

impl<'a> Deadline<'a> {
    /// Once `passed` says so it has to go on saying so.
    pub const fn new(passed: &'a (dyn Fn() -> bool + 'a)) -> Self {
        Self { passed }
    }

    pub fn has_passed(self) -> bool {
        (self.passed)()
    }

    pub(crate) const fn as_fn(self) -> &'a (dyn Fn() -> bool + 'a) {
        self.passed
    }
}

impl fmt::Debug for Deadline<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deadline").finish_non_exhaustive()
    }
}
