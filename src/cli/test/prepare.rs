//! A suite's text to cases that can be run: read, filtered by name, with what they test loaded and compiled.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use admit_policy::PolicySet;
use admit_policy::manifest::{self, Document, LoadError, Position};
use admit_policy::recording::Recording;
use admit_policy::suite::crd::{self, CrdCase, CrdSuite, Variant};
use admit_policy::suite::{self, Case, Suite, SuiteError};
use regex_automata::meta::Regex;

use super::cache::Cache;
use super::definitions::Definitions;
use super::discover::Source;
use crate::cli::Exit;
use crate::cli::load;
use crate::cli::process::Fault;
use crate::cli::render::suites::CaseReport;

/// How the OpenShift API project names the folder of its definitions, beside that of the suites.
const GENERATED: &str = "zz_generated.crd-manifests";

/// A case with all it needs.
#[derive(Debug)]
pub(super) struct Ready {
    name: String,
    place: Position,
    test: Test,
}

#[derive(Debug)]
enum Test {
    Policies { case: Box<Case>, set: Arc<PolicySet> },
    Definition { case: Box<CrdCase>, variants: Arc<[Arc<Variant>]> },
}

/// The cases of one file.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) cases: Vec<Ready>,
    /// What is odd about the file and does not keep it from being run.
    pub(super) warnings: Vec<String>,
}

/// Prepares suites; what several of them name is loaded once.
#[derive(Debug)]
pub(super) struct Workshop {
    crds: Option<PathBuf>,
    pattern: Option<Regex>,
    sets: Cache<Vec<PathBuf>, Result<Arc<PolicySet>, Fault>>,
    definitions: Cache<PathBuf, Result<Arc<Definitions>, Fault>>,
}

impl Ready {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn run(&self) -> CaseReport {
        self.run_recorded(None)
    }

    /// The same, and what every expression did is added to `recording`.
    pub(super) fn run_recorded(&self, recording: Option<&Recording>) -> CaseReport {
        let start = Instant::now();
        let (expected, result) = match &self.test {
            Test::Policies { case, set } => {
                let result = match recording {
                    Some(recording) => suite::run_recorded(case, set, recording),
                    None => suite::run(case, set),
                };
                (case.expect.outcome, result)
            }
            Test::Definition { case, variants } => {
                let variants: Vec<&Variant> = variants.iter().map(AsRef::as_ref).collect();
                (case.expected(), crd::run(case, &variants, recording))
            }
        };
        CaseReport { name: self.name.clone(), place: self.place, expected, result, duration: start.elapsed() }
    }
}

impl Workshop {
    pub(super) fn new(crds: Option<&Path>, pattern: Option<Regex>) -> Self {
        Self {
            crds: crds.map(ToOwned::to_owned),
            pattern,
            sets: Cache::default(),
            definitions: Cache::default(),
        }
    }

    /// The cases of a file that were asked for.
    ///
    /// # Errors
    /// What keeps the file from being run.
    pub(super) fn prepare(&self, source: &Source) -> Result<Prepared, Fault> {
        let (documents, duplicates) =
            manifest::read_leniently(&source.file, &source.text).map_err(|errors| unreadable(&errors))?;
        if documents.is_empty() {
            return Err(Fault::usage(format!("`{}` is empty", source.file)));
        }
        let mut prepared = Prepared::default();
        for document in &documents {
            if CrdSuite::is(&document.value) {
                self.of_definition(document, source, &mut prepared)?;
                // This format's own reader takes the last value.
                prepared.warnings.extend(duplicates.iter().map(ToString::to_string));
            } else if duplicates.is_empty() {
                prepared.cases.extend(self.of_policies(document, source)?);
            } else {
                return Err(unreadable(&duplicates));
            }
        }
        Ok(prepared)
    }

    fn of_policies(&self, document: &Document, source: &Source) -> Result<Vec<Ready>, Fault> {
        if !Suite::is(&document.value) {
            let problem = "is no suite; one begins with `apiVersion: admit/v1` and `kind: Suite`, or has `crdName` \
                           and `tests`";
            return Err(unreadable(&[document.mistake(problem)]));
        }
        let suite = Suite::decode(&document.value).map_err(|error| misplaced(document, &error))?;
        let documents = documents_of(&suite, source);
        let numbered = suite.cases.into_iter().enumerate();
        let wanted: Vec<(usize, Case)> = numbered.filter(|(_, case)| self.wants(&case.name)).collect();
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        let set = self.sets.get(documents.clone(), || load::policies(&documents).map(Arc::new))?;
        let ready = |(index, case): (usize, Case)| Ready {
            name: case.name.clone(),
            place: document.position(&format!("cases[{index}]")),
            test: Test::Policies { case: Box::new(case), set: Arc::clone(&set) },
        };
        Ok(wanted.into_iter().map(ready).collect())
    }

    fn of_definition(
        &self,
        document: &Document,
        source: &Source,
        prepared: &mut Prepared,
    ) -> Result<(), Fault> {
        let mut suite = CrdSuite::decode(&document.value).map_err(|error| misplaced(document, &error))?;
        let cases: Vec<CrdCase> =
            std::mem::take(&mut suite.cases).into_iter().filter(|case| self.wants(&case.name)).collect();
        if cases.is_empty() {
            return Ok(());
        }
        let unread = suite.unread.iter().map(|field| {
            let place = LoadError { position: document.position(field), ..document.mistake("") };
            format!("{place}`{field}` is no field of such a suite, and is not read")
        });
        prepared.warnings.extend(unread);
        let folder = self.folder_of_definitions(source);
        let definitions =
            self.definitions.get(folder.clone(), || Definitions::open(&folder).map(Arc::new))?;
        let placed = |fault: Fault| Fault { message: format!("{}: {}", source.file, fault.message), ..fault };
        let variants: Arc<[Arc<Variant>]> = definitions.of(&suite).map_err(placed)?.into();
        let ready = |case: CrdCase| Ready {
            name: case.name.clone(),
            place: document.position(&case.path),
            test: Test::Definition { case: Box::new(case), variants: Arc::clone(&variants) },
        };
        prepared.cases.extend(cases.into_iter().map(ready));
        Ok(())
    }

    fn wants(&self, name: &str) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(name))
    }

    fn folder_of_definitions(&self, source: &Source) -> PathBuf {
        if let Some(folder) = &self.crds {
            return folder.clone();
        }
        let generated = source.folder.join("../..").join(GENERATED);
        if generated.is_dir() { generated } else { beside(source) }
    }
}

fn unreadable(errors: &[LoadError]) -> Fault {
    Fault { exit: Exit::Usage, ..load::not_compiled(errors) }
}

fn misplaced(document: &Document, error: &SuiteError) -> Fault {
    unreadable(&[LoadError {
        position: document.position(error.path()),
        field: error.path().to_owned(),
        ..document.mistake(error.to_string())
    }])
}

/// What the suite names, or all that stands beside it.
fn documents_of(suite: &Suite, source: &Source) -> Vec<PathBuf> {
    if suite.documents.is_empty() {
        return vec![beside(source)];
    }
    suite.documents.iter().map(|path| source.folder.join(path)).collect()
}

fn beside(source: &Source) -> PathBuf {
    if source.folder.as_os_str().is_empty() { PathBuf::from(".") } else { source.folder.clone() }
}
