//! Reports test results. This module has the data, and there is one renderer for each format.
//!
//! | drawing | for |
//! |---|---|
//! | `text` | people, in the manner of `go test` |
//! | `json` | programs; its schema is part of the command's contract |
//! | `junit` | CI servers |
//! | `sarif` | code scanning |
//! | `github` | annotations of GitHub Actions |
//! | `tap` | harnesses of the Test Anything Protocol |

mod github;
mod json;
mod junit;
mod sarif;
mod tap;
mod text;

use std::time::Duration;

use admit_policy::manifest::{LoadError, Position};
use admit_policy::suite::{CaseResult, Outcome};

pub(in crate::cli) use self::github::github;
pub(in crate::cli) use self::json::json;
pub(in crate::cli) use self::junit::junit;
pub(in crate::cli) use self::sarif::sarif;
pub(in crate::cli) use self::tap::tap;
pub(in crate::cli) use self::text::text;
use crate::cli::Exit;
use crate::cli::process::Fault;

/// The results of all suites, in order.
#[derive(Debug)]
pub(in crate::cli) struct Report {
    pub(in crate::cli) suites: Vec<SuiteReport>,
    /// Documents that must be reached by a case and are not.
    pub(in crate::cli) untested: Vec<LoadError>,
}

/// The results of one suite.
#[derive(Debug)]
pub(in crate::cli) struct SuiteReport {
    pub(in crate::cli) file: String,
    pub(in crate::cli) cases: Vec<CaseReport>,
    /// Why the suite could not be run.
    pub(in crate::cli) fault: Option<Fault>,
    /// Warnings about the suite, for standard error.
    pub(in crate::cli) warnings: Vec<String>,
    /// The time for reading, loading and running.
    pub(in crate::cli) duration: Duration,
}

/// The result of one case.
#[derive(Debug)]
pub(in crate::cli) struct CaseReport {
    pub(in crate::cli) name: String,
    /// The position of the case in its file.
    pub(in crate::cli) place: Position,
    pub(in crate::cli) expected: Outcome,
    pub(in crate::cli) result: CaseResult,
    /// The expressions that decided a failed case.
    pub(in crate::cli) rules: Vec<RuleValues>,
    pub(in crate::cli) duration: Duration,
}

/// An expression with the values of its parts.
#[derive(Debug)]
pub(in crate::cli) struct RuleValues {
    /// Its owner, and its path there.
    pub(in crate::cli) place: String,
    pub(in crate::cli) text: String,
    /// Parts with their values, in the order of evaluation.
    pub(in crate::cli) values: Vec<(String, String)>,
    /// How many parts are left out.
    pub(in crate::cli) omitted: u64,
    /// The value of the whole expression.
    pub(in crate::cli) outcome: String,
}

/// The totals of a report.
#[derive(Clone, Copy, Debug)]
struct Summary {
    cases: usize,
    failed: usize,
    /// Suites that could not be run.
    errored: usize,
}

impl Report {
    /// Returns the most severe exit code of all suites.
    pub(in crate::cli) fn exit(&self) -> Exit {
        let untested = if self.untested.is_empty() { Exit::Expected } else { Exit::Differs };
        self.suites.iter().map(SuiteReport::exit).max().unwrap_or(Exit::Expected).max(untested)
    }

    /// Whether nothing was run, and nothing went wrong.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.shown().next().is_none()
    }

    /// Returns the suites to show: those without a fault and without selected cases are left out.
    fn shown(&self) -> impl Iterator<Item = &SuiteReport> {
        self.suites.iter().filter(|suite| suite.fault.is_some() || !suite.cases.is_empty())
    }

    /// Returns every case with its suite.
    fn cases(&self) -> impl Iterator<Item = (&SuiteReport, &CaseReport)> {
        self.suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)))
    }

    fn summary(&self) -> Summary {
        Summary {
            cases: self.cases().count(),
            failed: self.cases().filter(|(_, case)| !case.result.passed()).count(),
            errored: self.suites.iter().filter(|suite| suite.fault.is_some()).count(),
        }
    }
}

impl SuiteReport {
    pub(in crate::cli) fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            cases: Vec::new(),
            fault: None,
            warnings: Vec::new(),
            duration: Duration::ZERO,
        }
    }

    pub(in crate::cli) fn exit(&self) -> Exit {
        match &self.fault {
            Some(fault) => fault.exit,
            None if self.cases.iter().all(|case| case.result.passed()) => Exit::Expected,
            None => Exit::Differs,
        }
    }

    fn failures(&self) -> impl Iterator<Item = &CaseReport> {
        self.cases.iter().filter(|case| !case.result.passed())
    }
}
