//! Judges each document as the servers of the releases would, and merges equal findings of several releases.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use admit_policy::manifest::{Document, LoadError, Position};
use admit_policy::{LoadOptions, PolicySet, release};
use serde_json::Value;

use super::boundaries::{self, is_format, is_of_server};
use super::facts::{self, FACTS, Subject};
use super::reason::{self, Cause};
use super::{Release, Releases};

/// A document is judged by itself, regardless of others.
const OPTIONS: LoadOptions = LoadOptions { ignore_unknown: true };

/// A finding of some releases about a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The releases, in ascending order.
    pub releases: Vec<Release>,
    /// What they do.
    pub cause: Cause,
    /// Where, and in which words.
    pub error: LoadError,
    /// The release that added what is missing; empty if unknown.
    pub because: String,
}

/// The findings of all releases about one document.
#[derive(Clone, Debug)]
pub struct DocumentReport {
    /// `CustomResourceDefinition hosts.example.com`.
    pub name: String,
    /// The position at which it begins.
    pub position: Position,
    /// The findings, by cause, then by position.
    pub found: Vec<Found>,
}

/// The findings of all releases about one file.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// Its name.
    pub file: Arc<str>,
    /// The releases that take all of it.
    pub taken: Vec<Release>,
    /// The first release from which on the whole file is accepted; None if the last one rejects something.
    pub first: Option<Release>,
    /// Documents with findings.
    pub documents: Vec<DocumentReport>,
    /// The number of documents that were not judged because time was up: the result for the file is incomplete.
    pub late: usize,
}

/// The findings of all releases about all documents.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The files, in the order of the documents.
    pub files: Vec<FileReport>,
    /// The number of runs: at most one per document and release.
    pub runs: usize,
}

/// Judges each definition, policy, binding, and configuration of webhooks and of servers by itself; other documents are skipped. Once
/// `over` returns true, the remaining ones are counted but not judged.
#[must_use]
pub fn judge(documents: &[Document], releases: &Releases, over: &dyn Fn() -> bool) -> Report {
    let mut report = Report::default();
    for document in documents.iter().filter(|document| is_judged(&document.value)) {
        let file = match report.files.iter_mut().find(|file| file.file == document.file) {
            Some(file) => file,
            None => {
                report.files.push(FileReport {
                    file: Arc::clone(&document.file),
                    taken: releases.iter().collect(),
                    first: None,
                    documents: Vec::new(),
                    late: 0,
                });
                let Some(file) = report.files.last_mut() else { continue };
                file
            }
        };
        if over() {
            file.late = file.late.saturating_add(1);
            continue;
        }
        let (found, runs) = judge_document(document, releases);
        report.runs = report.runs.saturating_add(runs);
        let refused = found.iter().filter(|found| found.cause.refuses());
        let refusing: Vec<Release> = refused.flat_map(|found| found.releases.iter().copied()).collect();
        file.taken.retain(|release| !refusing.contains(release));
        if !found.is_empty() {
            let (name, position) = (name(&document.value), document.here());
            file.documents.push(DocumentReport { name, position, found });
        }
    }
    for file in &mut report.files {
        let trailing = releases.iter().rev().take_while(|release| file.taken.contains(release));
        file.first = trailing.last();
    }
    report
}

/// Returns the documents whose kind a release does not serve, with the error that clients get.
#[must_use]
pub fn not_served(documents: &[Document], release: Release) -> Vec<LoadError> {
    let unknown = |document: &&Document| served(document).is_some_and(|fact| release < fact.from);
    documents.iter().filter(unknown).map(no_match).collect()
}

fn served(document: &Document) -> Option<&'static facts::Fact> {
    let kind = format!("{} {}", text(&document.value, "/apiVersion"), text(&document.value, "/kind"));
    facts::about(Subject::Kind, &kind)
}

fn no_match(document: &Document) -> LoadError {
    let (kind, version) = (text(&document.value, "/kind"), text(&document.value, "/apiVersion"));
    let why = match is_of_server(&document.value) {
        true => format!("no kind \"{kind}\" is registered for version \"{version}\""),
        false => format!("no matches for kind \"{kind}\" in version \"{version}\""),
    };
    LoadError { position: document.position("kind"), field: "kind".to_owned(), ..document.mistake(why) }
}

/// The releases in groups, one after the other, whose members take these documents, and decide with them, alike.
#[must_use]
pub fn groups(documents: &[Document], releases: &Releases) -> Vec<Vec<Release>> {
    let mut boundaries = BTreeSet::new();
    for document in documents {
        boundaries.extend(boundaries::of(&document.value));
        boundaries.extend(boundaries::of_decisions(&document.value));
    }
    let mut groups: Vec<Vec<Release>> = Vec::new();
    for release in releases.iter() {
        match groups.last_mut() {
            Some(group) if !boundaries.contains(&release) => group.push(release),
            _ => groups.push(vec![release]),
        }
    }
    groups
}

fn is_judged(value: &Value) -> bool {
    let kind = text(value, "/kind");
    kind == "CustomResourceDefinition"
        || is_of_server(value)
        || ["AdmissionPolicy", "WebhookConfiguration"].iter().any(|part| kind.contains(part))
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn name(value: &Value) -> String {
    format!("{} {}", text(value, "/kind"), text(value, "/metadata/name"))
}

/// Returns the findings, and the number of runs of the engine.
fn judge_document(document: &Document, releases: &Releases) -> (Vec<Found>, usize) {
    let mut gathered = Gathered::default();
    let served = served(document);
    if let Some(fact) = served {
        for release in releases.iter().filter(|release| *release < fact.from) {
            let because = with_note(format!("it is served from {} on", fact.from), fact);
            gathered.add(release, Cause::NotServed, no_match(document), because);
        }
    }
    let boundaries = boundaries::of(&document.value);
    let mut runs = 0_usize;
    let mut last: Option<(Release, Vec<LoadError>)> = None;
    for release in releases.iter().filter(|release| served.is_none_or(|fact| *release >= fact.from)) {
        let crossed = last.as_ref().is_none_or(|(judged, _)| {
            boundaries.iter().any(|boundary| judged < boundary && *boundary <= release)
        });
        if crossed {
            runs = runs.saturating_add(1);
            let loaded = release::following(release.0, || PolicySet::load_with([document], OPTIONS));
            last = Some((release, loaded.err().unwrap_or_default()));
        }
        for error in last.iter().flat_map(|(_, errors)| errors) {
            gathered.add(release, reason::cause(&error.message), error.clone(), String::new());
        }
    }
    if text(&document.value, "/kind") == "CustomResourceDefinition" {
        unknown_parts(document, &document.value, "", releases, &mut gathered);
    }
    (gathered.into_found(), runs)
}

/// Fields that are dropped, and formats that are not checked.
fn unknown_parts(
    document: &Document,
    value: &Value,
    path: &str,
    releases: &Releases,
    gathered: &mut Gathered,
) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let at = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                for fact in FACTS {
                    let found = match (fact.subject, field) {
                        (Subject::Field, _) if fact.name == name => Cause::Dropped,
                        (Subject::Format, Value::String(written))
                            if name == "format" && is_format(fact.name, written) =>
                        {
                            Cause::Unchecked
                        }
                        _ => continue,
                    };
                    gathered.part(document, &at, (fact, found), releases);
                }
                unknown_parts(document, field, &at, releases, gathered);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                unknown_parts(document, item, &format!("{path}[{index}]"), releases, gathered);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn with_note(told: String, fact: &facts::Fact) -> String {
    if fact.note.is_empty() { told } else { format!("{told}; {}", fact.note) }
}

/// Findings by cause, position and message.
#[derive(Debug, Default)]
struct Gathered {
    found: BTreeMap<(Cause, usize, String, String), Found>,
}

impl Gathered {
    fn add(&mut self, release: Release, cause: Cause, error: LoadError, because: String) {
        let key = (cause, error.position.line, error.field.clone(), error.message.clone());
        let found = self.found.entry(key);
        let found = found.or_insert_with(|| Found { releases: Vec::new(), cause, error, because });
        if found.releases.last() != Some(&release) {
            found.releases.push(release);
        }
    }

    fn part(
        &mut self,
        document: &Document,
        path: &str,
        (fact, cause): (&facts::Fact, Cause),
        releases: &Releases,
    ) {
        for release in releases.iter().filter(|release| *release < fact.from) {
            let message = match cause {
                Cause::Unchecked => format!("format `{}` is not checked", fact.name),
                _ => format!("`{}` is dropped", fact.name),
            };
            let position = document.position(path);
            let error = LoadError { position, field: path.to_owned(), ..document.mistake(message) };
            let because = with_note(format!("it is known from {} on", fact.from), fact);
            self.add(release, cause, error, because);
        }
    }

    fn into_found(self) -> Vec<Found> {
        let mut all: Vec<Found> = self.found.into_values().collect();
        for found in all.iter_mut().filter(|found| matches!(found.cause, Cause::Refused | Cause::TooCostly)) {
            // What the last of the releases misses, the others miss.
            let told = found.releases.last().and_then(|last| reason::because(&found.error.message, *last));
            found.because = told.unwrap_or_default();
        }
        all
    }
}
