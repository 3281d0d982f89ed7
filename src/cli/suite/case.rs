//! Runs a test case: normally, with coverage recorded, and, if it failed, again with all values recorded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use admit_policy::manifest::{Document, Position};
use admit_policy::suite::crd::{self, CrdCase, Variant};
use admit_policy::suite::{
    self, Case, CaseResult, Mismatch, Outcome, PlaceCase, PlaceDocuments, PlaceError, StatesCase, StatesOf,
};
use admit_policy::{Keep, PolicySet, Recording};

use super::coverage::{Ledger, Places};
use super::definitions::Tested;
use super::values;
use crate::cli::render::suites::{CaseReport, RuleValues};
use crate::cli::states::Inputs;

/// The time limit for a picture that a suite expects; a search that exceeds it counts as a failure.
const PICTURE: Duration = Duration::from_mins(1);

/// A case with everything that it needs to run.
#[derive(Debug)]
pub(in crate::cli) struct PreparedCase {
    pub(in crate::cli) name: String,
    pub(in crate::cli) place: Position,
    pub(in crate::cli) test: Test,
}

/// A test, with the policies or definitions that it tests.
#[derive(Debug)]
pub(in crate::cli) enum Test {
    Policies {
        case: Box<Case>,
        loaded: Arc<Loaded>,
        /// `FILE:LINE` of the new object.
        object: String,
    },
    Definition {
        case: Box<CrdCase>,
        tested: Arc<[Arc<Tested>]>,
    },
    /// A test of tokens, authorizers, webhooks or devices.
    Place {
        case: Box<PlaceCase>,
        loaded: Arc<Loaded>,
    },
    /// A test of which values of a field follow one another.
    States {
        case: Box<StatesCase>,
        inputs: Arc<Inputs>,
    },
}

/// Compiled policies, with the positions of their expressions if these were requested.
#[derive(Debug)]
pub(in crate::cli) struct Loaded {
    pub(in crate::cli) set: PolicySet,
    /// The configuration of API servers beside policies, or why it cannot be used.
    pub(super) server: Result<PlaceDocuments, PlaceError>,
    pub(super) places: Option<Places>,
}

impl Loaded {
    /// Returns the loaded documents in the order of files and lines; empty unless positions were requested.
    pub(in crate::cli) fn documents(&self) -> Vec<&Document> {
        self.places.as_ref().map(Places::documents).unwrap_or_default()
    }

    fn run_place(&self, case: &PlaceCase, recording: Option<&Recording>) -> CaseResult {
        let why = match &self.server {
            Ok(server) => return suite::run_place(case, &self.set, server, recording),
            Err(why) => why.to_string(),
        };
        let mismatch =
            Mismatch { what: "documents", expected: "that can be used".to_owned(), actual: why.clone() };
        CaseResult {
            outcome: Outcome::Error,
            message: why,
            mismatches: vec![mismatch],
            ..CaseResult::default()
        }
    }
}

impl PreparedCase {
    pub(in crate::cli) fn run(&self, ledger: Option<&Ledger>) -> CaseReport {
        let start = Instant::now();
        let (expected, mut result) = match &self.test {
            Test::Policies { case, loaded, object } => {
                (case.expect.outcome, advised(against_policies(case, loaded, ledger), object))
            }
            Test::Definition { case, tested } => (case.expected(), against_definitions(case, tested, ledger)),
            Test::Place { case, loaded } => (case.expected(), against_server(case, loaded, ledger)),
            Test::States { case, inputs } => (Outcome::Allow, against_pictures(case, inputs)),
        };
        let duration = start.elapsed();
        let rules = if result.passed() { Vec::new() } else { self.deciding(&mut result) };
        CaseReport { name: self.name.clone(), place: self.place, expected, result, rules, duration }
    }

    /// Runs the case again, recording all values and why policies were skipped, which ordinary runs leave out for speed.
    fn deciding(&self, result: &mut CaseResult) -> Vec<RuleValues> {
        // A picture is not the result of a single request.
        if matches!(self.test, Test::States { .. }) {
            return Vec::new();
        }
        let recording = Recording::new(Keep::TRACES);
        let (_, observed) = self.observed(&recording);
        result.missed = observed.missed;
        values::deciding(&recording.finish(), result)
    }

    /// Does the same, and adds what every expression did to `recording`.
    pub(super) fn run_recorded(&self, recording: &Recording) -> CaseReport {
        let start = Instant::now();
        let (expected, result) = self.observed(recording);
        let duration = start.elapsed();
        CaseReport {
            name: self.name.clone(),
            place: self.place,
            expected,
            result,
            rules: Vec::new(),
            duration,
        }
    }

    /// Runs the case under each definition; returns the first result that differs from the expected one, else the first.
    fn observed(&self, recording: &Recording) -> (Outcome, CaseResult) {
        match &self.test {
            Test::Policies { case, loaded, object } => {
                let result = suite::run_recorded(case, &loaded.set, recording);
                (case.expect.outcome, advised(result, object))
            }
            Test::Definition { case, tested } => {
                let differs = |tested: &&Arc<Tested>| !crd::run(case, &[&tested.variant], None).passed();
                let variant = tested.iter().find(differs).or(tested.first()).map(|tested| &tested.variant);
                (case.expected(), crd::run(case, variant.as_slice(), Some(recording)))
            }
            Test::Place { case, loaded } => (case.expected(), loaded.run_place(case, Some(recording))),
            Test::States { case, inputs } => (Outcome::Allow, against_pictures(case, inputs)),
        }
    }
}

/// Adds advice for the author if the object would be rejected by any server.
fn advised(mut result: CaseResult, object: &str) -> CaseResult {
    if result.refused {
        result.notes.push(format!(
            "a server refuses the object at {object}, and asks no policy: complete it, or expect `outcome: deny` with the \
             `message` or `field` of the refusal"
        ));
    }
    result
}

fn against_policies(case: &Case, loaded: &Loaded, ledger: Option<&Ledger>) -> CaseResult {
    let (Some(ledger), Some(places)) = (ledger, &loaded.places) else { return suite::run(case, &loaded.set) };
    let recording = Recording::new(Keep::COVERAGE);
    let result = suite::run_recorded(case, &loaded.set, &recording);
    ledger.add(places, &recording.finish());
    result
}

fn against_server(case: &PlaceCase, loaded: &Loaded, ledger: Option<&Ledger>) -> CaseResult {
    let (Some(ledger), Some(places)) = (ledger, &loaded.places) else { return loaded.run_place(case, None) };
    let recording = Recording::new(Keep::COVERAGE);
    let result = loaded.run_place(case, Some(&recording));
    ledger.add(places, &recording.finish());
    result
}

/// Checks that the values of a field follow one another as expected.
fn against_pictures(case: &StatesCase, inputs: &Inputs) -> CaseResult {
    let end = Instant::now().checked_add(PICTURE);
    let over = || end.is_some_and(|end| Instant::now() >= end);
    let differences = match inputs.differences(case, &over) {
        Ok(differences) => differences,
        Err(fault) => vec![fault.message],
    };
    let mismatch =
        |actual| Mismatch { what: "states", expected: "as listed under `expect`".to_owned(), actual };
    CaseResult {
        outcome: if differences.is_empty() { Outcome::Allow } else { Outcome::Error },
        field: match &case.subject {
            StatesOf::Field(field) => field.clone(),
            StatesOf::State(_) => "state".to_owned(),
        },
        mismatches: differences.into_iter().map(mismatch).collect(),
        ..CaseResult::default()
    }
}

fn against_definitions(case: &CrdCase, tested: &[Arc<Tested>], ledger: Option<&Ledger>) -> CaseResult {
    if let Some(ledger) = ledger {
        for tested in tested {
            if let Some(places) = &tested.places {
                let recording = Recording::new(Keep::COVERAGE);
                crd::run(case, &[&tested.variant], Some(&recording));
                ledger.add(places, &recording.finish());
            }
        }
    }
    let variants: Vec<&Variant> = tested.iter().map(|tested| &tested.variant).collect();
    crd::run(case, &variants, None)
}
