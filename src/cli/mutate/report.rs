//! Holds the results for all mutations, for `render`.

use std::collections::HashMap;
use std::str::FromStr;
use std::time::Duration;

use admit_analysis::mutate::{Killing, Mutant};
use admit_policy::manifest::Position;

use crate::cli::Exit;

/// The results of a run.
#[derive(Debug, Default)]
pub(in crate::cli) struct Report {
    pub(in crate::cli) documents: Vec<Judged>,
    /// Cases that were run, cases that were skipped since they cannot reach the mutation, and the time that they took.
    pub(in crate::cli) run: u64,
    pub(in crate::cli) apart: u64,
    pub(in crate::cli) took: Duration,
    /// The solver; without one, nothing is proved.
    pub(in crate::cli) solver: Option<String>,
    /// The contents of the files, to show their lines.
    pub(in crate::cli) texts: HashMap<String, String>,
}

/// The results for a policy, binding or definition.
#[derive(Debug)]
pub(in crate::cli) struct Judged {
    pub(in crate::cli) file: String,
    pub(in crate::cli) at: Position,
    pub(in crate::cli) kind: String,
    pub(in crate::cli) name: String,
    /// How many cases test it.
    pub(in crate::cli) cases: usize,
    pub(in crate::cli) killed: usize,
    pub(in crate::cli) equivalent: usize,
    /// Mutations that a server would reject.
    pub(in crate::cli) refused: usize,
    pub(in crate::cli) survivors: Vec<Survivor>,
    pub(in crate::cli) undecided: Vec<Open>,
    /// The files that its suites load.
    pub(in crate::cli) loaded: Vec<String>,
}

/// A mutation that no case detects, and a case that would.
#[derive(Debug)]
pub(in crate::cli) struct Survivor {
    pub(in crate::cli) mutant: Mutant,
    pub(in crate::cli) at: Position,
    pub(in crate::cli) killing: Killing,
}

/// A mutation about which nothing is known, and why.
#[derive(Debug)]
pub(in crate::cli) struct Open {
    pub(in crate::cli) mutant: Mutant,
    pub(in crate::cli) at: Position,
    pub(in crate::cli) why: Vec<String>,
}

/// How many mutations have each result.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(in crate::cli) struct Sums {
    pub(in crate::cli) killed: usize,
    pub(in crate::cli) survived: usize,
    pub(in crate::cli) undecided: usize,
    pub(in crate::cli) equivalent: usize,
    pub(in crate::cli) refused: usize,
}

/// A percentage, in hundredths of a per cent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Score(usize);

impl Score {
    const ALL: usize = 100 * 100;
}

impl FromStr for Score {
    type Err = &'static str;

    /// Parses `95`, `99.5` or `99.95`, with `%` or without.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "it is a number from 0 to 100, such as 95 or 99.5";
        let (whole, part) =
            text.trim_end_matches('%').split_once('.').unwrap_or((text.trim_end_matches('%'), "0"));
        let is_number = |digits: &str| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || whole.len() > 3 || part.len() > 2 {
            return Err(FORM);
        }
        let whole: usize = whole.parse().map_err(|_| FORM)?;
        let part: usize = format!("{part:0<2}").parse().map_err(|_| FORM)?;
        let score = whole * 100 + part;
        if score > Self::ALL { Err(FORM) } else { Ok(Self(score)) }
    }
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
    /// Returns how many mutations count: those neither rejected by a server nor proved equivalent.
    pub(in crate::cli) const fn counted(self) -> usize {
        self.killed + self.survived + self.undecided
    }

    /// Returns the share of detected mutations in tenths of a per cent, rounded down: 1000 only if all are, or there are none.
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

    /// Returns the exit code. If there is a minimum score, it alone decides.
    pub(super) fn exit(&self, min_score: Option<Score>) -> Exit {
        let sums = self.sums();
        if let Some(Score(min)) = min_score {
            let is_reached = sums.killed * Score::ALL >= min * sums.counted();
            return if is_reached { Exit::Expected } else { Exit::Differs };
        }
        match (sums.survived, sums.undecided) {
            (0, 0) => Exit::Expected,
            (0, _) => Exit::Undecided,
            _ => Exit::Differs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_written_as_people_write_them() {
        for (text, score) in [
            ("95", Some(9500)),
            ("99.5", Some(9950)),
            ("99.95%", Some(9995)),
            ("100", Some(10_000)),
            ("0", Some(0)),
        ] {
            assert_eq!(text.parse::<Score>().ok().map(|score| score.0), score, "{text}");
        }
        for text in ["101", "100.01", "-1", "", "x", "9.999", "1.", ".5", "1e2"] {
            assert!(text.parse::<Score>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_score_that_is_to_be_reached_decides_alone() {
        let judged = |killed, survivors| Judged {
            file: String::new(),
            at: Position::default(),
            kind: String::new(),
            name: String::new(),
            cases: 1,
            killed,
            equivalent: 9,
            refused: 9,
            survivors: Vec::new(),
            undecided: survivors,
            loaded: Vec::new(),
        };
        let report = |killed| Report { documents: vec![judged(killed, Vec::new())], ..Report::default() };
        assert_eq!(report(3).exit(None), Exit::Expected);
        assert_eq!(report(0).exit(Some(Score(10_000))), Exit::Expected, "nothing counts");
        let sums = Sums { killed: 19, survived: 0, undecided: 1, equivalent: 9, refused: 9 };
        assert_eq!((sums.counted(), sums.score()), (20, 950));
    }
}
