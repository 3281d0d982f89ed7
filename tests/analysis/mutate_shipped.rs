//! What cases say of changes to shipped policies and definitions, found out the short way and the long one.

use std::fs;
use std::path::{Path, PathBuf};

use admit_analysis::mutate::{Cases, Fate, Mutant, Seed, Trial, World, mutants};
use admit_policy::manifest::{self, Document};
use admit_policy::suite::{self, Case, Suite};
use admit_policy::{LoadOptions, PolicySet};
use serde_json::Value;

/// Of the changes of all documents, every so many.
const EVERY: usize = 9;

/// A suite with what it loads.
struct Shipped {
    documents: Vec<Document>,
    written: Value,
    cases: Vec<Case>,
}

fn read(path: &Path) -> Vec<Document> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    manifest::read(&path.display().to_string(), &text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The suites of our own kinds: of built-in kinds one needs to know more.
fn suites() -> Vec<Shipped> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies");
    let folders =
        ["clusteroperator", "cyndi", "datagather", "mustgather", "observability"].map(|name| root.join(name));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).expect("a folder").flatten());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).collect();
    files.retain(|path| path.to_string_lossy().ends_with(".suite.yaml"));
    files.sort();
    files.iter().filter_map(|file| shipped(file)).collect()
}

fn shipped(file: &Path) -> Option<Shipped> {
    let written = read(file).remove(0).value;
    let suite = Suite::decode(&written).expect("a suite");
    let paths: Vec<PathBuf> = suite.documents.iter().map(|path| file.with_file_name(path)).collect();
    let are_files = !paths.is_empty() && paths.iter().all(|path| path.is_file());
    let documents = are_files.then(|| paths.iter().flat_map(|path| read(path)).collect())?;
    Some(Shipped { documents, written, cases: suite.cases })
}

/// Compiles the whole document, and runs every case from its beginning. Cases that name policies are about no definition.
fn judged_in_full(set: &PolicySet, document: &Value, mutant: &Mutant, cases: &[Case]) -> &'static str {
    let names_policies = document["kind"] != "CustomResourceDefinition";
    let mut cases = cases.iter().filter(|case| names_policies || case.policies.is_empty());
    match set.with(&mutant.of(document)) {
        Err(_) => "refused",
        Ok(other) if cases.all(|case| suite::run(case, &other).passed()) => "survived",
        Ok(_) => "killed",
    }
}

#[test]
fn changes_are_judged_as_whole_documents_and_all_cases_would() {
    let (mut count, mut told) = (0, Vec::new());
    for Shipped { documents, written, mut cases } in suites() {
        let set = PolicySet::load_with(&documents, LoadOptions { ignore_unknown: true }).expect("documents");
        let mut own = written["cases"].as_array().cloned().unwrap_or_default();
        // Those that ask how objects are converted fail here, where nobody does.
        let mut passes =
            cases.iter().map(|case| suite::run(case, &set).passed()).collect::<Vec<_>>().into_iter();
        own.retain(|_| passes.next().expect("as many"));
        cases.retain(|case| suite::run(case, &set).passed());
        let seeds =
            cases.iter().zip(&own).map(|(case, own)| (case, Seed::new(case, own, &written["defaults"])));
        let world = World::new(&set, seeds);
        for document in &documents {
            let trial = Trial::new(&document.value, vec![Cases::World(&world)]);
            for mutant in mutants(&document.value).expect("changes").iter().filter(|_| trial.case_count() > 0)
            {
                count += 1;
                if count % EVERY != 0 {
                    continue;
                }
                let found = match trial.judge(mutant, &|| false).0 {
                    Fate::Killed { by } => {
                        let case = cases.iter().find(|case| case.name == by).expect("a case");
                        let other = set.with(&mutant.of(&document.value)).expect("a document");
                        assert!(!suite::run(case, &other).passed(), "{}: {mutant:?}: {by}", document.file);
                        "killed"
                    }
                    Fate::Survived => "survived",
                    Fate::Refused => "refused",
                    Fate::Unfinished => "unfinished",
                };
                let expected = judged_in_full(&set, &document.value, mutant, &cases);
                assert_eq!(found, expected, "{}: {mutant:?}", document.file);
                told.push(found);
            }
        }
    }
    // Suites that load a definition for its kind alone see little of its rules.
    let number = |what: &str| told.iter().filter(|found| **found == what).count();
    assert!(
        number("killed") > 100 && number("survived") > 5,
        "{} killed of {}",
        number("killed"),
        told.len()
    );
}
