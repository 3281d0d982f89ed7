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
    /// What of the new definition refuses the object, where two versions of one are compared.
    pub(in crate::cli) at: Option<At>,
}

/// A keyword or rule of a definition, and the field of objects that it is about, without indices and keys.
#[derive(Debug)]
pub(in crate::cli) struct At {
    pub(in crate::cli) place: String,
    pub(in crate::cli) field: String,
}

impl Answer {
    /// How what is compared is told apart: versions of one definition by their files.
    pub(in crate::cli) fn shown(&self) -> Vec<&str> {
        if matches!(self.claim, "create" | "update" | "status" | "serve") {
            self.places.iter().map(|(file, _)| file.as_str()).collect()
        } else {
            self.names.iter().map(String::as_str).collect()
        }
    }
}
