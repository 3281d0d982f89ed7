//! What is known of a claim, as it is drawn.

use admit_analysis::prove::Verdict;
use admit_policy::manifest::Position;

/// One claim, and what is known of it.
#[derive(Debug)]
pub(in crate::cli) struct Answer {
    pub(in crate::cli) claim: &'static str,
    /// The names of what is compared, and where they stand.
    pub(in crate::cli) names: Vec<String>,
    pub(in crate::cli) places: Vec<(String, Position)>,
    pub(in crate::cli) kind: String,
    pub(in crate::cli) verdict: Verdict,
    /// The place of each thing that is undecided.
    pub(in crate::cli) undecided_at: Vec<(String, Position)>,
    pub(in crate::cli) is_policy: bool,
}
