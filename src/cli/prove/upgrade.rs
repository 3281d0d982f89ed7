//! Checks claims about two versions of a definition: creations, updates of stored objects, and updates of their status.

use std::time::{Duration, Instant};

use admit_analysis::prove::{
    Break, Counterexample, Inquiry, Question, Report, Said, Side, Step, Subject, Undecided, Upgrade, Verdict,
};
use admit_apimachinery::pointer;
use admit_policy::manifest::Document;

use super::answer::{Answer, At};
use super::refused::not_compiled;
use super::solver::Program;
use crate::cli::process::Fault;

/// The settings for checking definitions.
pub(super) struct Asked<'a> {
    pub(super) items: usize,
    pub(super) solver: Option<&'a str>,
    /// The time limit of each claim.
    pub(super) timeout: Duration,
}

/// One API version in both definitions.
struct Pair<'d> {
    old: &'d Document,
    new: &'d Document,
    kind: String,
}

impl Asked<'_> {
    /// Answers each step of each version; a step that breaks at several places has an answer for each.
    pub(super) fn answers(&self, old: &Document, new: &Document) -> Result<Vec<Answer>, Fault> {
        let upgrade = Upgrade::new(&old.value, &new.value).map_err(|error| not_compiled(new, &error))?;
        let mut answers = Vec::new();
        for version in upgrade.removed() {
            let why = format!("there is no version {version} that is served");
            answers.push(self.removed(&Pair::new(old, new, &version), &version, ("serve", "", why))?);
        }
        for version in upgrade.without_status() {
            let why = format!("there is no status subresource in version {version}");
            answers.push(self.removed(
                &Pair::new(old, new, &version),
                &version,
                ("status", "status", why),
            )?);
        }
        for version in upgrade.versions() {
            let pair = Pair::new(old, new, &version);
            for step in upgrade.steps(&version) {
                let (mut solver, end) = self.solver()?;
                let over = || end.is_some_and(|end| Instant::now() >= end);
                let report = upgrade.decide(&version, step, self.items, &mut solver, &over);
                answers.extend(pair.told(step, report));
            }
        }
        Ok(answers)
    }

    fn solver(&self) -> Result<(Program, Option<Instant>), Fault> {
        let end = Instant::now().checked_add(self.timeout);
        let found = Program::find(self.solver, end).map_err(Fault::usage)?;
        let found = found.ok_or_else(|| Fault::usage("there is neither z3 nor cvc5 on the PATH"))?;
        Ok((found, end))
    }

    /// Answers for a version, or a status subresource, that is no longer served, with an object that is accepted now.
    fn removed(
        &self,
        pair: &Pair<'_>,
        version: &str,
        (claim, subresource, why): (&'static str, &str, String),
    ) -> Result<Answer, Fault> {
        let fault = |error: admit_analysis::prove::SideError| not_compiled(pair.old, &error);
        let subject = Subject::new(&pair.old.value, Some(version)).map_err(fault)?;
        let left = Side::definition(&pair.old.value, &subject).map_err(fault)?;
        let (question, right, that) = (Question::AlwaysDenies, None, None);
        let inquiry = Inquiry { question, subject: &subject, left: &left, right, that, items: self.items };
        let (mut solver, end) = self.solver()?;
        let over = || end.is_some_and(|end| Instant::now() >= end);
        let verdict = match inquiry.decide(Some(&mut solver), &over).map_err(Fault::internal)? {
            Verdict::Refuted(found) => {
                let refused = Said { denied: true, failed: false, messages: vec![why] };
                let said = vec![Said::default(), refused];
                let old_object =
                    if subresource.is_empty() { found.old_object } else { Some(found.object.clone()) };
                let subresource = subresource.to_owned();
                Verdict::Refuted(Box::new(Counterexample { said, subresource, old_object, ..*found }))
            }
            verdict => verdict,
        };
        let at = At { place: "spec.versions".to_owned(), field: String::new() };
        Ok(pair.answer(claim, verdict, Some(at)))
    }
}

impl<'d> Pair<'d> {
    fn new(old: &'d Document, new: &'d Document, version: &str) -> Self {
        let text = |pointer: &str| pointer::text(&new.value, pointer);
        let kind = format!("{}.{version}.{}", text("/spec/names/kind"), text("/spec/group"));
        Self { old, new, kind }
    }

    fn told(&self, step: Step, report: Report) -> Vec<Answer> {
        let claim = match step {
            Step::Create => "create",
            Step::Update => "update",
            Step::Status => "status",
        };
        let mut answers = Vec::new();
        for Break { place, field, found } in report.breaks {
            let verdict = Verdict::Refuted(Box::new(found));
            answers.push(self.answer(claim, verdict, Some(At { place, field })));
        }
        if !report.undecided.is_empty() {
            answers.push(self.answer(claim, Verdict::Undecided(report.undecided), None));
        }
        if answers.is_empty() {
            answers.push(self.answer(claim, Verdict::Holds { up_to: report.up_to }, None));
        }
        answers
    }

    fn answer(&self, claim: &'static str, verdict: Verdict, at: Option<At>) -> Answer {
        let name = |document: &Document| pointer::text(&document.value, "/metadata/name").to_owned();
        let position = |document: &Document, place: Option<&String>| {
            let at = place.map_or_else(|| document.here(), |place| document.position(place));
            (document.file.to_string(), at)
        };
        let new_place = at.as_ref().map(|at| &at.place);
        let undecided_at = match &verdict {
            Verdict::Undecided(undecided) => undecided
                .iter()
                .map(|one: &Undecided| {
                    let document = if one.side == 0 { self.old } else { self.new };
                    position(document, one.field.as_ref())
                })
                .collect(),
            Verdict::Holds { .. } | Verdict::Refuted(_) => Vec::new(),
        };
        Answer {
            claim,
            names: vec![name(self.old), name(self.new)],
            places: vec![position(self.old, None), position(self.new, new_place)],
            kind: self.kind.clone(),
            verdict,
            undecided_at,
            is_policy: false,
            at,
        }
    }
}
