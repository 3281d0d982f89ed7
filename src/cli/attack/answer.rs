//! What was found of one policy, and what of it is accepted.

use admit_analysis::attack::{Attacked, Finding};
use admit_policy::manifest::Position;

use crate::cli::Exit;

/// One policy.
#[derive(Debug)]
pub(in crate::cli) struct Answer {
    pub(in crate::cli) policy: String,
    pub(in crate::cli) file: String,
    pub(in crate::cli) at: Position,
    /// Without what is accepted.
    pub(in crate::cli) attacked: Attacked,
    /// Each with the reason for which it is.
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
