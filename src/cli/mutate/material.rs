//! Loads what suites test, with their cases: policies and definitions as compiled, and each case also as it is written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admit_analysis::mutate::{Narrowed, Seed, World};
use admit_policy::manifest::{self, Document};
use admit_policy::suite::Case;
use serde_json::Value;

use crate::cli::Exit;
use crate::cli::process::{self, Fault};
use crate::cli::progress::Progress;
use crate::cli::suite::{self, Loaded, PreparedCase, Source, SuiteLoader, Test, Tested, parallel};

/// The loaded suites.
#[derive(Debug)]
pub(super) struct Material {
    /// The cases, each with the index of its suite.
    cases: Vec<(usize, PreparedCase)>,
    /// For each suite, its cases as written, by name, each with the suite's defaults.
    written: Vec<HashMap<String, (Value, Value)>>,
}

/// Documents that are loaded together, with the cases that test them.
#[derive(Debug)]
pub(super) struct Group<'m> {
    pub(super) documents: Vec<&'m Document>,
    pub(super) tests: Tests<'m>,
}

#[derive(Debug)]
pub(super) enum Tests<'m> {
    World(World<'m>),
    Narrowed(Narrowed<'m>),
}

/// Loads the suites at `paths`, and runs them: a suite that fails says nothing about mutations.
///
/// # Errors
/// When a suite cannot be run, or a case fails.
pub(super) fn load(paths: &[PathBuf], crds: Option<&Path>) -> Result<Material, Fault> {
    let sources = suite::sources(paths, crds.is_some())?;
    let loader = SuiteLoader::placed(crds);
    let progress = Progress::of(Some(sources.len()), "loading");
    let (mut cases, mut written) = (Vec::new(), Vec::new());
    for (number, source) in sources.iter().enumerate() {
        let prepared = loader.prepare(source)?;
        prepared.warnings.iter().for_each(|warning| process::warn(warning));
        cases.extend(prepared.cases.into_iter().map(|case| (number, case)));
        written.push(as_written(source));
        progress.step();
    }
    drop(progress);
    let passes = |at: usize| cases.get(at).is_none_or(|(_, case)| case.run(None).result.passed());
    let passed = parallel::ordered(cases.len(), passes, |_| false);
    let mut failed = cases.iter().zip(passed).filter(|(_, passed)| !passed);
    if let Some(((number, case), _)) = failed.next() {
        let file = sources.get(*number).map_or("", |source| source.file.as_str());
        let more = failed.count();
        let more = if more == 0 { String::new() } else { format!(", and {more} more") };
        let message = format!(
            "{file}:{}: the case `{}` fails{more}; `admit test` says why, and changes are judged by cases that pass",
            case.place.line, case.name
        );
        return Err(Fault { exit: Exit::Differs, ..Fault::usage(message) });
    }
    Ok(Material { cases, written })
}

fn as_written(source: &Source) -> HashMap<String, (Value, Value)> {
    let documents = manifest::read_leniently(&source.file, &source.text).map(|(documents, _)| documents);
    let mut written = HashMap::new();
    for document in documents.unwrap_or_default() {
        let defaults = document.value.get("defaults").unwrap_or(&Value::Null);
        let cases = document.value.get("cases").and_then(Value::as_array);
        for case in cases.into_iter().flatten() {
            let name = case.get("name").and_then(Value::as_str).unwrap_or_default();
            written.insert(name.to_owned(), (case.clone(), defaults.clone()));
        }
    }
    written
}

impl Material {
    /// Returns the groups in the order of the suites.
    pub(super) fn groups(&self) -> Vec<Group<'_>> {
        let mut worlds: Vec<(&Loaded, Vec<(&Case, Seed)>)> = Vec::new();
        let mut narrowed: Vec<(&Tested, Narrowed<'_>)> = Vec::new();
        for (number, prepared) in &self.cases {
            match &prepared.test {
                Test::Policies { case, loaded, .. } => {
                    let known = self.written.get(*number).and_then(|written| written.get(&case.name));
                    let (own, defaults) =
                        known.map_or((&Value::Null, &Value::Null), |(own, defaults)| (own, defaults));
                    let entry = (&**case, Seed::new(case, own, defaults));
                    match worlds.iter_mut().find(|(known, _)| std::ptr::eq(*known, &raw const **loaded)) {
                        Some((_, cases)) => cases.push(entry),
                        None => worlds.push((loaded, vec![entry])),
                    }
                }
                Test::Definition { case, tested } => {
                    for tested in tested.iter().map(Arc::as_ref) {
                        match narrowed.iter_mut().find(|(known, _)| std::ptr::eq(*known, tested)) {
                            Some((_, narrowed)) => narrowed.cases.push(case),
                            None => {
                                let (file, version) = (tested.variant.file.as_str(), tested.version());
                                narrowed.push((tested, Narrowed { file, version, cases: vec![case] }));
                            }
                        }
                    }
                }
                Test::States { .. } | Test::Place { .. } => {}
            }
        }
        let mut groups: Vec<Group<'_>> = Vec::new();
        groups.extend(worlds.into_iter().map(|(loaded, cases)| Group {
            documents: loaded.documents(),
            tests: Tests::World(World::new(&loaded.set, cases)),
        }));
        groups.extend(narrowed.into_iter().map(|(tested, narrowed)| Group {
            documents: tested.documents(),
            tests: Tests::Narrowed(narrowed),
        }));
        groups
    }
}
