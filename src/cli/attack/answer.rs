//! Defines the results for one policy: what was found, and which of it is accepted.

use admit_analysis::attack::{Attacked, Finding};
use admit_policy::manifest::Position;

use crate::cli::Exit;

/// The results for one policy.
#[derive(Debug)]
pub(in crate::cli) struct Answer {
    pub(in crate::cli) policy: String,
    pub(in crate::cli) file: String,
    pub(in crate::cli) at: Position,
    /// The findings that are not accepted.
    pub(in crate::cli) attacked: Attacked,
    /// Accepted findings, each with the reason.
    pub(in crate::cli) accepted: Vec<(Finding, String)>,
}

impl Answer {
    pub(super) fn exit(&self) -> Exit {
        if !self.attacked.findings.is_empty() {
            Exit::Differs
        } else if self.attacked.undecided.is_some() {
            Exit::Undecided
        } else {
            Exit::Expected
        }
    }
}
