//! Judges every mutation: runs the test cases against it, and searches for a detecting case if none of them detects it.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use admit_analysis::mutate::{Cases, Fate, Mutant, Settled, Survey, Tally, Trial, mutants};
use admit_analysis::prove::Solver;
use admit_apimachinery::pointer;
use admit_apiserver::BuiltinKinds;
use admit_policy::manifest::{Document, Position};
use serde_json::Value;

use super::material::{Group, Material, Tests};
use super::place;
use super::report::{Judged, Open, Report, Survivor};
use super::since::Lines;
use crate::cli::load;
use crate::cli::process::Fault;
use crate::cli::progress::Progress;
use crate::cli::prove::Program;
use crate::cli::suite::parallel;

/// The least share of the time limit that one undetected mutation gets: of 60 seconds 300 milliseconds. Most proofs take far less.
const LEAST_PART: u32 = 200;
/// The share of the time limit that all undetected mutations together get if they are few.
const SHARED_PART: u32 = 10;
/// The largest share of the time limit for one of them.
const MOST_PART: u32 = 20;
/// How many variants of existing cases are tried before a solver is called.
const TRIES: usize = 1_000;

/// The settings by which mutations are judged.
#[derive(Debug)]
pub(super) struct Judging<'a> {
    pub(super) definitions: &'a [Document],
    pub(super) since: Option<&'a str>,
    pub(super) solver: Option<&'a str>,
    pub(super) items: usize,
    /// The time limit for the whole run, and when it is over.
    pub(super) timeout: Duration,
    pub(super) end: Option<Instant>,
}

/// A document with all cases that are about it, and its mutations.
struct Subject<'m> {
    document: &'m Document,
    trial: Trial<'m>,
    mutants: Vec<(Mutant, Position)>,
    loaded: Vec<String>,
}

/// A mutation: the index of its document, and its own.
type At = (usize, usize);

impl Judging<'_> {
    /// Judges all mutations of `material`.
    ///
    /// # Errors
    /// Files that cannot be read, unknown git revisions and solvers, and counterexamples that the engine does not
    /// confirm.
    pub(super) fn of(&self, material: &Material) -> Result<Report, Fault> {
        let groups = material.groups();
        let mut texts = HashMap::new();
        let subjects = self.subjects(&groups, &mut texts)?;
        let all: Vec<At> = subjects
            .iter()
            .enumerate()
            .flat_map(|(at, subject)| (0..subject.mutants.len()).map(move |mutant| (at, mutant)))
            .collect();
        let begun = Instant::now();
        let fates = self.fates(&subjects, &all);
        let took = begun.elapsed();
        let sum = |of: fn(&Tally) -> u64| fates.iter().map(|(_, tally)| of(tally)).sum();
        let (run, apart) = (sum(|tally| tally.run), sum(|tally| tally.apart));
        let left: Vec<At> = all
            .iter()
            .zip(&fates)
            .filter(|(_, (fate, _))| *fate == Fate::Survived)
            .map(|(at, _)| *at)
            .collect();
        let settled = self.settled(&subjects, &left)?;
        let solver = Program::find(self.solver, None).map_err(Fault::usage)?.map(|solver| solver.name());
        let mut report = Report { documents: Vec::new(), run, apart, took, solver, texts };
        report.documents.extend(subjects.iter().map(Subject::judged));
        for (at, (fate, _)) in all.iter().zip(fates) {
            let Some(judged) = report.documents.get_mut(at.0) else { continue };
            match fate {
                Fate::Killed { .. } => judged.killed += 1,
                Fate::Refused => judged.refused += 1,
                Fate::Unfinished => judged.open(&subjects, *at, vec![LATE.to_owned()]),
                Fate::Survived => {}
            }
        }
        for (at, settled) in left.into_iter().zip(settled) {
            if let Some(judged) = report.documents.get_mut(at.0) {
                judged.settle(&subjects, at, settled);
            }
        }
        Ok(report)
    }

    fn subjects<'m>(
        &self,
        groups: &'m [Group<'m>],
        texts: &mut HashMap<String, String>,
    ) -> Result<Vec<Subject<'m>>, Fault> {
        let mut known: BTreeMap<(PathBuf, usize), (&'m Document, Vec<&'m Group<'m>>)> = BTreeMap::new();
        for group in groups {
            for document in group.documents.iter().copied() {
                // Suites may name the same file by different paths.
                let path = Path::new(&*document.file);
                let path =
                    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| load::normal(&path));
                let place = (path, document.here().line);
                known.entry(place).or_insert((document, Vec::new())).1.push(group);
            }
        }
        let mut subjects = Vec::new();
        for (document, groups) in known.into_values() {
            let cases = groups.iter().map(|group| match &group.tests {
                Tests::World(world) => Cases::World(world),
                Tests::Narrowed(narrowed) => Cases::Narrowed(narrowed),
            });
            let trial = Trial::new(&document.value, cases.collect());
            if trial.case_count() == 0 {
                continue;
            }
            let file = document.file.to_string();
            if !texts.contains_key(&file) {
                texts.insert(file.clone(), load::text(Path::new(&file))?);
            }
            let text = texts.get(&file).map_or("", String::as_str);
            let mut loaded: Vec<String> = groups
                .iter()
                .flat_map(|group| group.documents.iter().map(|document| document.file.to_string()))
                .collect();
            loaded.sort();
            loaded.dedup();
            let mutants = self.mutants(document, text)?;
            if !mutants.is_empty() {
                subjects.push(Subject { document, trial, mutants, loaded });
            }
        }
        Ok(subjects)
    }

    /// Returns the mutations of a document with their positions; with `since`, only those of changed lines.
    fn mutants(&self, document: &Document, text: &str) -> Result<Vec<(Mutant, Position)>, Fault> {
        let lines = self.since.map(|revision| Lines::since(revision, &document.file)).transpose()?;
        let all =
            mutants(&document.value).map_err(|error| Fault::usage(format!("{}: {error}", document.file)))?;
        let mut placed = Vec::new();
        for mutant in all {
            let key = document.position(&mutant.field);
            let expression = mutant.expression(&document.value).unwrap_or_default();
            if let Some(lines) = &lines
                && !lines.touch(&(key.line..=place::last_line(text, key, expression)))
            {
                continue;
            }
            let at = mutant.span.map_or(key, |span| {
                place::token(text, key, expression, usize::try_from(span.start).unwrap_or_default())
            });
            placed.push((mutant, at));
        }
        Ok(placed)
    }

    fn over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn fates(&self, subjects: &[Subject<'_>], all: &[At]) -> Vec<(Fate, Tally)> {
        let progress = Progress::of(Some(all.len()), "judging");
        let judge = |number: usize| {
            let fate = all.get(number).and_then(|at| {
                let subject = subjects.get(at.0)?;
                let (mutant, _) = subject.mutants.get(at.1)?;
                Some(subject.trial.judge(mutant, &|| self.over()))
            });
            progress.step();
            fate.unwrap_or((Fate::Unfinished, Tally::default()))
        };
        parallel::ordered(all.len(), judge, |_| false)
    }

    /// Searches, for each mutation that no case detects, a case that would, or a proof that there is none.
    fn settled(&self, subjects: &[Subject<'_>], left: &[At]) -> Result<Vec<Settled>, Fault> {
        let definitions: Vec<&Value> = self.definitions.iter().map(|document| &document.value).collect();
        let progress = Progress::of(Some(left.len()), "looking for cases");
        let one = self.time_of_one(left.len());
        let settle = |number: usize| {
            let found = left.get(number).and_then(|at| {
                let subject = subjects.get(at.0)?;
                Some((subject, subject.mutants.get(at.1)?))
            });
            let Some((subject, (mutant, _))) = found else { return Ok(late()) };
            if self.over() {
                return Ok(late());
            }
            let end = self.end.into_iter().chain(Instant::now().checked_add(one)).min();
            let over = || end.is_some_and(|end| Instant::now() >= end);
            let mut solver = Program::find(self.solver, end).map_err(Fault::usage)?;
            let solver = solver.as_mut().map(|solver| solver as &mut dyn Solver);
            let survey = Survey {
                trial: &subject.trial,
                definitions: &definitions,
                builtins: Some(&BuiltinKinds),
                items: self.items,
                tries: TRIES,
            };
            let settled = survey.settle(mutant, solver, &over).map_err(Fault::internal);
            progress.step();
            settled
        };
        parallel::ordered(left.len(), settle, Result::is_err).into_iter().collect()
    }

    /// Returns the time limit for one of `count` undetected mutations.
    fn time_of_one(&self, count: usize) -> Duration {
        let part = |part| self.timeout.checked_div(part).unwrap_or_default();
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        part(SHARED_PART.saturating_mul(count)).clamp(part(LEAST_PART), part(MOST_PART))
    }
}

const LATE: &str = "the time was over (--timeout)";

fn late() -> Settled {
    Settled::Undecided(vec![LATE.to_owned()])
}

impl Subject<'_> {
    fn judged(&self) -> Judged {
        let text = |pointer: &str| pointer::text(&self.document.value, pointer).to_owned();
        Judged {
            file: self.document.file.to_string(),
            at: self.document.here(),
            kind: text("/kind"),
            name: text("/metadata/name"),
            cases: self.trial.case_count(),
            killed: 0,
            equivalent: 0,
            refused: 0,
            survivors: Vec::new(),
            undecided: Vec::new(),
            loaded: self.loaded.clone(),
        }
    }
}

impl Judged {
    fn open(&mut self, subjects: &[Subject<'_>], at: At, why: Vec<String>) {
        let placed = subjects.get(at.0).and_then(|subject| subject.mutants.get(at.1));
        self.undecided.extend(placed.map(|(mutant, at)| Open { mutant: mutant.clone(), at: *at, why }));
    }

    fn settle(&mut self, subjects: &[Subject<'_>], at: At, settled: Settled) {
        match settled {
            Settled::Equivalent => self.equivalent += 1,
            Settled::Undecided(why) => self.open(subjects, at, why),
            Settled::Killable(killing) => {
                let placed = subjects.get(at.0).and_then(|subject| subject.mutants.get(at.1));
                self.survivors.extend(placed.map(|(mutant, at)| Survivor {
                    mutant: mutant.clone(),
                    at: *at,
                    killing: *killing,
                }));
            }
        }
    }
}
