//! Defines options of an evaluation that do not change its result: a recording, a deadline, a cost counter.

use std::cell::Cell;

use crate::deadline::Deadline;
use crate::report::recording::Recording;

/// Options of evaluations: recording, deadline, and a cost counter.
#[derive(Clone, Copy, Debug, Default)]
pub struct EvalOptions<'a> {
    /// Where evaluations are recorded.
    pub recording: Option<&'a Recording>,
    /// When evaluation has to stop.
    pub deadline: Option<Deadline<'a>>,
    /// A counter to which the cost of policies' expressions is added; rules of CRDs are not counted.
    pub spent: Option<&'a Cell<u64>>,
}

impl<'a> From<Option<&'a Recording>> for EvalOptions<'a> {
    /// Creates options without a deadline.
    fn from(recording: Option<&'a Recording>) -> Self {
        Self { recording, ..Self::default() }
    }
}
