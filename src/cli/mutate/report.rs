//! What is known of all changes, as it is drawn.

use std::collections::HashMap;
use std::time::Duration;

use admit_analysis::mutate::{Killing, Mutant};
use admit_policy::manifest::Position;

use crate::cli::Exit;

/// Everything that was judged.
#[derive(Debug, Default)]
pub(in crate::cli) struct Report {
    pub(in crate::cli) documents: Vec<Judged>,
    /// Cases that were run, and how long all of them took together.
    pub(in crate::cli) runs: u64,
    pub(in crate::cli) took: Duration,
    /// Null where there is none: then nothing is proved.
    pub(in crate::cli) solver: Option<String>,
    /// The texts of the files, to show their lines.
    pub(in crate::cli) texts: HashMap<String, String>,
}

/// A policy, binding or definition.
#[derive(Debug)]
pub(in crate::cli) struct Judged {
    pub(in crate::cli) file: String,
    pub(in crate::cli) at: Position,
    pub(in crate::cli) kind: String,
    pub(in crate::cli) name: String,
    /// How many cases are about it.
    pub(in crate::cli) cases: usize,
    pub(in crate::cli) killed: usize,
    pub(in crate::cli) equivalent: usize,
    /// Changes that a server would not take.
    pub(in crate::cli) refused: usize,
    pub(in crate::cli) survivors: Vec<Survivor>,
    pub(in crate::cli) undecided: Vec<Open>,
    /// The files that its suites load.
    pub(in crate::cli) loaded: Vec<String>,
}

/// A change that no case sees, and the case that would.
#[derive(Debug)]
pub(in crate::cli) struct Survivor {
    pub(in crate::cli) mutant: Mutant,
    pub(in crate::cli) at: Position,
    pub(in crate::cli) killing: Killing,
}

/// A change of which it is not known.
#[derive(Debug)]
pub(in crate::cli) struct Open {
    pub(in crate::cli) mutant: Mutant,
    pub(in crate::cli) at: Position,
    pub(in crate::cli) why: Vec<String>,
}

/// How many changes of each kind there are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::cli) struct Sums {
    pub(in crate::cli) killed: usize,
    pub(in crate::cli) survived: usize,
    pub(in crate::cli) undecided: usize,
    pub(in crate::cli) equivalent: usize,
    pub(in crate::cli) refused: usize,
}

impl Judged {
    pub(in crate::cli) fn sums(&self) -> Sums {
        Sums {
            killed: self.killed,
            survived: self.survivors.len(),
            undecided: self.undecided.len(),
            equivalent: self.equivalent,
            refused: self.refused,
        }
    }
}

impl Sums {
    /// Changes that count: neither refused by a server nor proved to make no difference.
    pub(in crate::cli) const fn counted(self) -> usize {
        self.killed + self.survived + self.undecided
    }

    /// The share that cases see, in tenths of per cent, rounded down: 1000 only where they see all. Of none, all are seen.
    pub(in crate::cli) const fn score(self) -> usize {
        match self.counted() {
            0 => 1000,
            counted => self.killed * 1000 / counted,
        }
    }

    const fn and(self, other: Self) -> Self {
        Self {
            killed: self.killed + other.killed,
            survived: self.survived + other.survived,
            undecided: self.undecided + other.undecided,
            equivalent: self.equivalent + other.equivalent,
            refused: self.refused + other.refused,
        }
    }
}

impl Report {
    pub(in crate::cli) fn sums(&self) -> Sums {
        self.documents.iter().map(Judged::sums).fold(Sums::default(), Sums::and)
    }

    /// With a score that is to be reached, that decides alone.
    pub(super) fn exit(&self, min_score: Option<f64>) -> Exit {
        let sums = self.sums();
        if let Some(min) = min_score {
            #[expect(clippy::cast_precision_loss, reason = "counts of changes are far below 2^52")]
            let (killed, counted) = (sums.killed as f64, sums.counted() as f64);
            return if killed * 100.0 >= min * counted { Exit::Expected } else { Exit::Differs };
        }
        match (sums.survived, sums.undecided) {
            (0, 0) => Exit::Expected,
            (0, _) => Exit::Undecided,
            _ => Exit::Differs,
        }
    }
}
