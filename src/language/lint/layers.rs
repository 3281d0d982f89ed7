//! Handles several documents with one name, as overlays, charts and examples in a repository have. A cluster holds the one applied
//! last, so each is linted as if it were the only one.
//!
//! ```text
//! documents ──Layers::of──► first of each name · second of each name · … ──lint, each──► findings of those that are new in it
//! ```
//!
//! Policies and bindings are linted together with the last document of each other name; definitions need no others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use admit_apimachinery::pointer;
use admit_policy::lint::{Finding, Report, Severity};
use admit_policy::manifest::{Document, Position};
use admit_policy::{GroupVersionKind, PolicySet, is_exception};
use serde_json::Value;

/// The maximum number of policies or bindings of one name to lint: each needs a run with all other documents.
const MAX_LAYERS: usize = 8;
/// The same for documents that need no others.
const MAX_ALONE: usize = 1_000;
/// The code of findings about duplicate names.
pub(super) const CODE: &str = "duplicate";

/// What identifies a document in a cluster: group, kind, namespace and name.
type Identity = (String, String, String, String);

/// Layers of documents, each without duplicate names.
pub(super) struct Layers {
    layers: Vec<Vec<Arc<Document>>>,
    /// The layer that reports on a document, by its file and position.
    of: HashMap<Arc<str>, BTreeMap<Position, usize>>,
    /// Findings about duplicate names.
    found: Vec<Finding>,
}

/// How a document is linted.
enum Place {
    Everywhere,
    /// As the n-th of its name.
    Among(Identity, usize),
    Nowhere,
}

impl Place {
    /// Returns the layer that reports on it.
    const fn first(&self) -> Option<usize> {
        match self {
            Self::Everywhere => Some(0),
            Self::Among(_, number) => Some(*number),
            Self::Nowhere => None,
        }
    }
}

/// The documents of one name that are linted.
struct Named<'d> {
    first: &'d Document,
    values: HashSet<&'d Value>,
}

impl Layers {
    pub(super) fn of(documents: &[Arc<Document>]) -> Self {
        let mut named: HashMap<Identity, Named<'_>> = HashMap::new();
        let mut found = Vec::new();
        let places: Vec<Place> =
            documents.iter().map(|document| place(document, &mut named, &mut found)).collect();
        let count = named.values().map(|named| named.values.len()).max().unwrap_or_default().max(1);
        let needs_others: BTreeSet<usize> = documents
            .iter()
            .zip(&places)
            .filter(|(document, _)| is_of_admission(&kind_of(document)))
            .filter_map(|(_, place)| place.first())
            .collect();
        let mut layers = vec![Vec::new(); count];
        let mut of: HashMap<Arc<str>, BTreeMap<Position, usize>> = HashMap::new();
        for (document, place) in documents.iter().zip(&places) {
            let Some(first) = place.first() else { continue };
            let is_last = match place {
                Place::Among(identity, number) => {
                    named.get(identity).is_none_or(|all| all.values.len() == number.saturating_add(1))
                }
                Place::Everywhere | Place::Nowhere => true,
            };
            let others = needs_others.range(first.saturating_add(1)..).filter(|_| is_last);
            for number in std::iter::once(&first).chain(others) {
                layers.get_mut(*number).into_iter().for_each(|layer| layer.push(Arc::clone(document)));
            }
            of.entry(Arc::clone(&document.file)).or_default().insert(document.here(), first);
        }
        Self { layers, of, found }
    }

    /// Reports whether no name is duplicated.
    pub(super) fn is_single(&self) -> bool {
        self.layers.len() == 1
    }

    /// Lints one layer after the other.
    pub(super) fn lint(self, mut lint: impl FnMut(&[Arc<Document>]) -> Report) -> Report {
        let mut report = Report::default();
        for (number, documents) in self.layers.iter().enumerate() {
            let Report { findings, costs } = lint(documents);
            let is_own = |file: &Arc<str>, position: Position| {
                let layer = self.of.get(file).and_then(|all| all.range(..=position).next_back());
                layer.map_or(0, |(_, layer)| *layer) == number
            };
            report
                .findings
                .extend(findings.into_iter().filter(|one| is_own(&one.mistake.file, one.mistake.position)));
            report.costs.extend(costs.into_iter().filter(|one| is_own(&one.file, one.position)));
        }
        if !self.is_single() || !self.found.is_empty() {
            report.findings.extend(self.found);
            report.findings.sort_by(|a, b| {
                (&a.mistake.file, a.mistake.position).cmp(&(&b.mistake.file, b.mistake.position))
            });
        }
        report
    }
}

/// Decides how a document is linted beside the previous ones of its name in `named`.
fn place<'d>(
    document: &'d Document,
    named: &mut HashMap<Identity, Named<'d>>,
    found: &mut Vec<Finding>,
) -> Place {
    let Some(identity) = identity(document) else { return Place::Everywhere };
    let Some(before) = named.get_mut(&identity) else {
        let first = Named { first: document, values: HashSet::from([&document.value]) };
        named.insert(identity.clone(), first);
        return Place::Among(identity, 0);
    };
    if !is_judged(document) {
        return Place::Nowhere;
    }
    let (number, is_new) = (before.values.len(), !before.values.contains(&document.value));
    let most = if is_of_admission(&kind_of(document)) { MAX_LAYERS } else { MAX_ALONE };
    let is_looked_at = is_new && number < most;
    found.push(told(document, before.first, is_new, (!is_looked_at).then_some(most)));
    if !is_looked_at {
        return Place::Nowhere;
    }
    before.values.insert(&document.value);
    Place::Among(identity, number)
}

/// Returns what identifies a document. `None` for one without a required name, which is always reported, and for static manifests,
/// where duplicates are errors.
fn identity(document: &Document) -> Option<Identity> {
    let text = |pointer: &str| pointer::text(&document.value, pointer);
    let (name, kind) = (text("/metadata/name"), kind_of(document));
    if name.is_empty() && is_judged(document) || name.ends_with(".static.k8s.io") {
        return None;
    }
    Some((kind.group, kind.kind, text("/metadata/namespace").to_owned(), name.to_owned()))
}

fn kind_of(document: &Document) -> GroupVersionKind {
    let text = |key: &str| document.value.get(key).and_then(Value::as_str).unwrap_or_default();
    GroupVersionKind::from_api_version(text("apiVersion"), text("kind"))
}

/// Reports whether lint checks documents of this kind: duplicates of others do not matter.
fn is_judged(document: &Document) -> bool {
    let kind = kind_of(document);
    kind.group == "admit" || is_exception(&kind.group, &kind.kind) || PolicySet::builder().is_of_use(&kind)
}

/// Reports whether it is a policy, a binding or an exception.
fn is_of_admission(kind: &GroupVersionKind) -> bool {
    let is_of_group = matches!(kind.group.as_str(), "admit" | "admissionregistration.k8s.io");
    (is_of_group || is_exception(&kind.group, &kind.kind)) && !kind.kind.ends_with("WebhookConfiguration")
}

/// Builds the finding; with `more_than`, the document exceeds that limit and is not linted.
fn told(document: &Document, first: &Document, is_new: bool, more_than: Option<usize>) -> Finding {
    let name = pointer::text(&document.value, "/metadata/name");
    let place = format!("{}:{}", first.file, first.here().line);
    let folder = |document: &Document| document.file.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let kind = kind_of(document);
    let named = format!("{} {name}", kind.kind);
    let (severity, message, help) = if !is_new {
        (Severity::Note, format!("{named}: the same is at {place}"), "")
    } else if let Some(most) = more_than {
        let message =
            format!("{named}: not looked at, as {most} others of this name are, the first at {place}");
        (Severity::Warning, message, "give it alone")
    } else {
        // Overlays are in folders of their own, and releases in files together with their definitions.
        let is_beside = is_of_admission(&kind) && folder(document) == folder(first);
        let severity = if is_beside { Severity::Warning } else { Severity::Note };
        let help = "a cluster holds the one that is applied last; each is looked at as if it were alone";
        (severity, format!("{named}: another of this name is at {place}"), help)
    };
    Finding { code: CODE, severity, mistake: document.mistake(message), help: help.to_owned() }
}
