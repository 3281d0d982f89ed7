//! Holds the result for a claim, for `render`.

use admit_analysis::prove::Verdict;
use admit_policy::manifest::Position;

/// A claim with its result.
#[derive(Debug)]
pub(in crate::cli) struct Answer {
    pub(in crate::cli) claim: &'static str,
    /// The names of the compared documents, and their positions.
    pub(in crate::cli) names: Vec<String>,
    pub(in crate::cli) places: Vec<(String, Position)>,
    pub(in crate::cli) kind: String,
    pub(in crate::cli) verdict: Verdict,
    /// The position of each reason why the claim is undecided.
    pub(in crate::cli) undecided_at: Vec<(String, Position)>,
    pub(in crate::cli) is_policy: bool,
    /// When two versions of a definition are compared, the part of the new one that rejects the object.
    pub(in crate::cli) at: Option<At>,
}

/// A keyword or rule of a definition, and the field of objects that it is about, without indices and keys.
#[derive(Debug)]
pub(in crate::cli) struct At {
    pub(in crate::cli) place: String,
    pub(in crate::cli) field: String,
}

impl Answer {
    /// Returns names that tell the compared documents apart: versions of one definition by their files.
    pub(in crate::cli) fn shown(&self) -> Vec<&str> {
        if matches!(self.claim, "create" | "update" | "status" | "serve") {
            self.places.iter().map(|(file, _)| file.as_str()).collect()
        } else {
            self.names.iter().map(String::as_str).collect()
        }
    }
}
