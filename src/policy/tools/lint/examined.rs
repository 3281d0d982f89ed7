//! Examines each document by itself and caches the result: when an editor lints all documents on each keystroke, only one of them has
//! changed.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use admit_apimachinery::field_error::FieldError;
use serde_json::Value;

use super::answers::Answers;
use super::{Finding, PlacedCost, Severity, definitions};
use crate::crd::rules::{self, remembering};
use crate::crd::{CompiledCrd, Definition};
use crate::devices;
use crate::read::manifest::Document;
use crate::schema::Schema;
use crate::set::load::{self, Known, Loaded, UnknownField};

/// Nodes of schemas that are kept for the next run.
const MAX_NODES: usize = 100_000;

/// What earlier runs of [`lint_again`](super::lint_again) found out, within bounds.
#[derive(Debug, Default)]
pub struct Memory {
    compiled: rules::Memory,
    answers: Answers,
    /// By the address of the document, which is not reused while it is cached here.
    documents: HashMap<usize, Kept>,
}

#[derive(Debug)]
struct Kept {
    document: Weak<Document>,
    examined: Arc<Examined>,
    /// Whether it was of use in this run.
    is_used: bool,
}

/// The results for a single document.
#[derive(Debug, Default)]
pub(super) struct Examined {
    unknown: Vec<UnknownField>,
    definition: Option<Made>,
    /// Nodes of its schemas.
    nodes: usize,
    /// The costs of its rules.
    pub(super) costs: Vec<PlacedCost>,
    /// Fields that it does not have.
    pub(super) dropped: Vec<Finding>,
    /// All else that is found of it by itself: if it is a definition, or selects devices.
    pub(super) findings: Vec<Finding>,
}

#[derive(Debug)]
struct Made {
    compiled: Result<Arc<CompiledCrd>, Vec<FieldError>>,
    /// The parsed definition, if it is rejected.
    read: Option<Definition>,
}

impl Made {
    fn of(value: &Value) -> Self {
        let definition = match Definition::read(value) {
            Ok(definition) => definition,
            Err(errors) => return Self { compiled: Err(errors), read: None },
        };
        match CompiledCrd::of_read(value, definition, None) {
            Ok(compiled) => Self { compiled: Ok(Arc::new(compiled)), read: None },
            Err(refused) => {
                let (definition, errors) = *refused;
                Self { compiled: Err(errors), read: Some(definition) }
            }
        }
    }

    fn definition(&self) -> Option<&Definition> {
        self.compiled.as_ref().ok().map(|compiled| compiled.definition()).or(self.read.as_ref())
    }
}

impl Examined {
    pub(super) fn of(document: &Document, answers: &mut Answers) -> Self {
        let unknown = load::unknown_fields(document);
        let dropped = definitions::dropped(document, &unknown);
        let is_definition =
            document.value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition");
        let mut examined = Self { unknown, dropped, ..Self::default() };
        if is_definition {
            let made = Made::of(&document.value);
            if let Some(definition) = made.definition() {
                let schemas = definition.versions.iter().filter_map(|version| version.schema.as_deref());
                examined.nodes = schemas.map(nodes).fold(0, usize::saturating_add);
                examined.costs = definitions::costs(document, definition);
            }
            if let Ok(compiled) = &made.compiled {
                examined.findings = definitions::lint(document, compiled, answers);
            }
            examined.definition = Some(made);
        }
        let refused = devices::selector_errors(&document.value).into_iter();
        examined.findings.extend(refused.map(|error| Finding {
            code: "refused",
            severity: Severity::Error,
            mistake: document.error(&error),
            help: String::new(),
        }));
        examined
    }

    /// Returns the definition, even one that a server would reject.
    pub(super) fn definition(&self) -> Option<&Definition> {
        self.definition.as_ref()?.definition()
    }

    pub(super) fn compiled(&self) -> Option<&Arc<CompiledCrd>> {
        self.definition.as_ref()?.compiled.as_ref().ok()
    }

    /// Returns the document with its results.
    pub(super) fn loaded<'a>(&'a self, document: &'a Document) -> Loaded<'a> {
        let definition = self.definition.as_ref().map(|made| &made.compiled);
        Loaded { document, known: Some(Known { unknown: &self.unknown, definition }) }
    }
}

/// Counts the nodes; the recursion is as deep as schemas nest.
fn nodes(schema: &Schema) -> usize {
    schema.children().map(nodes).fold(1, usize::saturating_add)
}

impl Memory {
    /// Returns the results for the documents; new documents are examined now.
    pub(super) fn examine(&mut self, documents: &[Arc<Document>]) -> Vec<Arc<Examined>> {
        let Self { compiled, answers, documents: kept } = self;
        kept.values_mut().for_each(|kept| kept.is_used = false);
        let examined = remembering(compiled, || {
            let one = |document: &Arc<Document>| {
                let kept = kept.entry(Arc::as_ptr(document).addr()).or_insert_with(|| Kept {
                    document: Arc::downgrade(document),
                    examined: Arc::new(Examined::of(document, answers)),
                    is_used: true,
                });
                kept.is_used = true;
                Arc::clone(&kept.examined)
            };
            documents.iter().map(one).collect()
        });
        self.forget();
        examined
    }

    /// Drops documents that no longer exist, and if the definitions are too large together, those not used in this run.
    fn forget(&mut self) {
        self.documents.retain(|_, kept| kept.document.strong_count() > 0);
        if self.nodes() > MAX_NODES {
            self.documents.retain(|_, kept| kept.is_used);
        }
        if self.nodes() > MAX_NODES {
            self.documents.clear();
        }
    }

    fn nodes(&self) -> usize {
        self.documents.values().map(|kept| kept.examined.nodes).fold(0, usize::saturating_add)
    }

    /// Runs work with the cache of compiled expressions.
    pub(super) fn remembering<T>(&mut self, work: impl FnOnce() -> T) -> T {
        remembering(&mut self.compiled, work)
    }
}
