//! Scores the outcomes of corpora: expected and actual answers, and the sums.

use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};

use serde_json::{Value, json};

use crate::known::KnownFailures;
use crate::run::Outcome;

/// What a check is about. A case passes when all its checks hold; each aspect is also summed on its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Aspect {
    /// Allowed or denied, valid or not, the value.
    Verdict,
    /// Field path.
    Path,
    /// Message texts.
    Text,
    /// Costs and budgets.
    Cost,
}

/// One comparison of an answer with the recorded one.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) aspect: Aspect,
    pub(crate) expected: Value,
    pub(crate) actual: Value,
}

/// The score of one corpus.
#[derive(Debug)]
pub(crate) struct Score {
    name: String,
    total: usize,
    passed: usize,
    known_failing: usize,
    failures: Vec<Outcome>,
    /// Listed as failing, yet they pass, or no such case exists: the list must shrink.
    stale: Vec<String>,
    aspects: Vec<(Aspect, Tally)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    passed: usize,
    total: usize,
}

impl Aspect {
    const ALL: [Self; 4] = [Self::Verdict, Self::Path, Self::Text, Self::Cost];

    fn name(self) -> &'static str {
        match self {
            Self::Verdict => "verdict",
            Self::Path => "path",
            Self::Text => "text",
            Self::Cost => "cost",
        }
    }
}

impl Check {
    pub(crate) fn new(aspect: Aspect, expected: impl Into<Value>, actual: impl Into<Value>) -> Self {
        Self { aspect, expected: expected.into(), actual: actual.into() }
    }

    pub(crate) fn holds(&self) -> bool {
        self.expected == self.actual
    }
}

impl Score {
    /// Sums up `outcomes`. With `partial`, known failures that were not run are not called stale.
    pub(crate) fn of(name: &str, outcomes: Vec<Outcome>, known: &KnownFailures, partial: bool) -> Self {
        let total = outcomes.len();
        let aspects = Aspect::ALL.map(|aspect| (aspect, tally(&outcomes, aspect))).to_vec();
        let (passing, failing): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|outcome| outcome.checks.iter().all(Check::holds));
        let mut stale: Vec<String> =
            passing.iter().map(|outcome| &outcome.id).filter(|id| known.contains(id)).cloned().collect();
        if !partial {
            let run: HashSet<&String> = passing.iter().chain(&failing).map(|outcome| &outcome.id).collect();
            stale.extend(known.ids().filter(|id| !run.contains(id)).cloned());
        }
        stale.sort();
        let passed = passing.len();
        let (known_failing, failures): (Vec<_>, Vec<_>) =
            failing.into_iter().partition(|outcome| known.contains(&outcome.id));
        Self {
            name: name.to_owned(),
            total,
            passed,
            known_failing: known_failing.len(),
            failures,
            stale,
            aspects,
        }
    }

    /// No unknown failure, and no known failure that passes.
    pub(crate) fn holds(&self) -> bool {
        self.failures.is_empty() && self.stale.is_empty()
    }

    /// Writes one JSON line per failing case.
    pub(crate) fn write_failures(&self, out: &mut impl Write) -> io::Result<()> {
        for outcome in &self.failures {
            let checks: Vec<Value> = outcome
                .checks
                .iter()
                .filter(|check| !check.holds())
                .map(|check| {
                    json!({"aspect": check.aspect.name(), "expected": check.expected, "actual": check.actual})
                })
                .collect();
            writeln!(out, "{}", json!({"corpus": self.name, "id": outcome.id, "checks": checks}))?;
        }
        out.flush()
    }

    fn to_json(&self) -> Value {
        let mut object = json!({
            "name": self.name,
            "total": self.total,
            "passed": self.passed,
            "known_failing": self.known_failing,
            "failed": self.failures.len(),
        });
        if let Value::Object(fields) = &mut object {
            for (aspect, tally) in &self.aspects {
                let sums = json!({"passed": tally.passed, "total": tally.total});
                fields.insert(aspect.name().to_owned(), sums);
            }
        }
        object
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<20} {:>6} passed {:>4} known-failing {:>5} failed {:>6} total",
            self.name,
            self.passed,
            self.known_failing,
            self.failures.len(),
            self.total
        )?;
        for (aspect, tally) in self.aspects.iter().filter(|(_, tally)| tally.total > 0) {
            write!(f, "   {} {}/{}", aspect.name(), tally.passed, tally.total)?;
        }
        for id in &self.stale {
            write!(f, "\n  listed as a known failure, but passes or does not exist: {id}")?;
        }
        Ok(())
    }
}

/// The whole run as one document.
pub(crate) fn to_json(scores: &[Score]) -> Value {
    json!({"corpora": scores.iter().map(Score::to_json).collect::<Vec<_>>()})
}

/// Cases, not checks: a case with three texts counts once.
fn tally(outcomes: &[Outcome], aspect: Aspect) -> Tally {
    let of_aspect = |outcome: &&Outcome| outcome.checks.iter().any(|check| check.aspect == aspect);
    let holds =
        |outcome: &&Outcome| outcome.checks.iter().filter(|check| check.aspect == aspect).all(Check::holds);
    Tally {
        passed: outcomes.iter().filter(of_aspect).filter(holds).count(),
        total: outcomes.iter().filter(of_aspect).count(),
    }
}
