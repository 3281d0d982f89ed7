//! Sums up which expressions the cases of a run evaluated, by file and position, so that a file that several suites load
//! counts once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use admit_apimachinery::pointer;
use admit_cel::Coverage;
use admit_policy::manifest::Document;
use admit_policy::{Expression, ExpressionId, Origin, Recorded};
use indexmap::IndexMap;
use serde_json::Value;

use crate::cli::render::coverage::{CoverageReport, Covered};

/// The documents that contain the expressions, to find their lines.
#[derive(Debug, Default)]
pub(in crate::cli) struct Places {
    /// The documents by kind and name.
    documents: HashMap<(String, String), Document>,
}

/// The coverage counts so far.
#[derive(Debug, Default)]
pub(in crate::cli) struct Ledger {
    entries: Mutex<BTreeMap<Place, Entry>>,
}

/// File, line and path, which is the order of reports.
type Place = (Arc<str>, usize, String);

#[derive(Debug)]
struct Entry {
    origin: Origin,
    text: String,
    evaluations: u64,
    cost: u64,
    coverage: Coverage,
}

impl Places {
    pub(super) fn new(documents: impl IntoIterator<Item = Document>) -> Self {
        let text = |document: &Document, pointer: &str| pointer::text(&document.value, pointer).to_owned();
        let named =
            documents.into_iter().map(|d| ((text(&d, "/kind"), text(&d, "/metadata/name")), d)).collect();
        Self { documents: named }
    }

    /// Returns all documents in the order of files and lines.
    pub(super) fn documents(&self) -> Vec<&Document> {
        let mut documents: Vec<&Document> = self.documents.values().collect();
        documents.sort_by_key(|document| (Arc::clone(&document.file), document.here().line));
        documents
    }

    fn of(&self, id: &ExpressionId) -> Option<Place> {
        let key = (id.origin.kind().to_owned(), id.origin.name().to_owned());
        let document = self.documents.get(&key)?;
        let path = as_written(id, document);
        Some((Arc::clone(&document.file), document.position(&path).line, path))
    }
}

/// Corrects a path: a definition that was narrowed to the version under test has that version first; the file may not.
fn as_written(id: &ExpressionId, document: &Document) -> String {
    let Origin::Definition { version, .. } = &id.origin else { return id.path.clone() };
    let versions = document.value.pointer("/spec/versions").and_then(Value::as_array);
    let at = versions.into_iter().flatten().position(|v| v.get("name").is_some_and(|name| name == version));
    match (id.path.strip_prefix("spec.versions[").and_then(|rest| rest.split_once(']')), at) {
        (Some((_, below)), Some(at)) => format!("spec.versions[{at}]{below}"),
        _ => id.path.clone(),
    }
}

impl Ledger {
    /// Registers `expressions`, so that those that are never evaluated count.
    pub(super) fn open<'e>(&self, places: &Places, expressions: impl IntoIterator<Item = Expression<'e>>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for Expression { id, text, program } in expressions {
            let Some(place) = places.of(&id) else { continue };
            entries.entry(place).or_insert_with(|| Entry {
                origin: id.origin,
                text: text.to_owned(),
                evaluations: 0,
                cost: 0,
                coverage: Coverage::new(program),
            });
        }
    }

    pub(super) fn add(&self, places: &Places, recorded: &IndexMap<ExpressionId, Recorded>) {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, recorded) in recorded {
            let Some(entry) = places.of(id).and_then(|place| entries.get_mut(&place)) else { continue };
            entry.evaluations = entry.evaluations.saturating_add(recorded.evaluations);
            entry.cost = entry.cost.max(recorded.cost);
            entry.coverage.merge(&recorded.coverage);
        }
    }

    /// Returns kind and name of each policy and definition that had an expression evaluated.
    pub(super) fn reached(&self) -> BTreeSet<(String, String)> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let evaluated = entries.values().filter(|entry| entry.evaluations > 0);
        evaluated.map(|entry| (entry.origin.kind().to_owned(), entry.origin.name().to_owned())).collect()
    }

    pub(super) fn report(&self) -> CoverageReport {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let covered = entries.iter().map(|((file, line, path), entry)| Covered {
            file: file.to_string(),
            line: *line,
            path: path.clone(),
            text: entry.text.clone(),
            evaluations: entry.evaluations,
            cost: entry.cost,
            branches: entry.coverage.branches().map(|(branch, hit)| (*branch, hit)).collect(),
        });
        CoverageReport { expressions: covered.collect() }
    }
}
