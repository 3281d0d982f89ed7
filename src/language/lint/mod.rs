//! Implements `admit lint` for files, with positions of single tokens; the command and editors share it.
//!
//! ```text
//! texts ──Reading──► documents, comments that silence ──Layers──► lint, each ──► Linted: findings where they stand, costs
//!             └────► templates, by the charts that they are of
//! ```

mod allowed;
mod codes;
mod layers;
mod templates;
mod token;

use std::sync::Arc;

use admit_apimachinery::yaml::Layout;
use admit_policy::lint::{self, Finding, Memory, Report, Severity};
use admit_policy::manifest::{self, Document, LoadError, Position};
use admit_policy::{LoadErrorKind, LoadOptions, Types};
use serde_json::Value;

use self::allowed::Allowed;
pub use self::codes::{OF_FILES, REFUSED, TAKEN, codes};
use self::layers::Layers;
use self::templates::Templates;
pub use self::token::Tokens;
use crate::text::{Text, Texts};

/// The advice on an [unknown kind](is_unknown_kind).
pub const IGNORE_UNKNOWN: &str = "--ignore-unknown passes over objects of kinds that no policy uses";

/// The files to lint.
///
/// ```
/// use admit_language::lint::Reading;
/// use admit_policy::{Documents, LoadOptions};
///
/// let policy = "
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingAdmissionPolicy
/// metadata: {name: named}
/// spec:
///   matchConstraints:
///     resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
///   validations:
///   - expression: >-
///       object.metadata.name
///       != nam
/// ";
/// let mut reading = Reading::allowing(&["no-binding".to_owned()]);
/// reading.file("policy.yaml", policy.to_owned(), true);
/// assert!(!reading.is_empty());
/// let linted = reading.lint(LoadOptions::default(), &Documents::default(), |_, _| {});
/// let position = linted.report.findings[0].mistake.position;
/// assert_eq!((position.line, position.column), (11, 10));
/// ```
#[derive(Debug)]
pub struct Reading {
    documents: Vec<Arc<Document>>,
    /// Findings about files themselves.
    findings: Vec<Finding>,
    allowed: Allowed,
    texts: Texts,
    templates: Templates,
}

/// The result of linting.
#[derive(Debug)]
pub struct Linted {
    /// The findings.
    pub report: Report,
    /// The number of suppressed findings, which are not in the report.
    pub silenced: usize,
    /// The texts, for callers that show findings in them.
    pub texts: Texts,
}

impl Reading {
    /// Starts without files; findings with these codes are suppressed everywhere.
    ///
    /// [`Reading`] has an example.
    #[must_use]
    pub fn allowing(codes: &[String]) -> Self {
        Self {
            documents: Vec::new(),
            findings: Vec::new(),
            allowed: Allowed::of(codes),
            texts: Texts::default(),
            templates: Templates::default(),
        }
    }

    /// Adds a file. If it was not `named` but found in a folder, documents that are no manifests are skipped, and templates entirely.
    pub fn file(&mut self, name: &str, text: String, named: bool) {
        self.templates.file(name);
        match parse(name, &text) {
            Ok(documents) => {
                self.allowed.read(name, &text);
                for document in documents {
                    self.document(Arc::new(document), named);
                }
                self.texts.insert(name.to_owned(), Text::new(text));
            }
            Err(mistakes) if !named && is_template(&text) => self.templates.add(name, &mistakes),
            Err(mistakes) => {
                self.allowed.read(name, &text);
                for mistake in mistakes {
                    self.find("not-yaml", Severity::Error, mistake, "");
                }
                self.texts.insert(name.to_owned(), Text::new(text));
            }
        }
    }

    /// Adds a file that is already parsed.
    pub(crate) fn known(&mut self, name: &str, text: &Text, documents: &[Arc<Document>]) {
        self.allowed.read(name, text.as_str());
        self.documents.extend(documents.iter().cloned());
    }

    /// Adds a document only as context: bindings, policies and kinds are looked up in it.
    pub(crate) fn beside(&mut self, document: Arc<Document>) {
        self.documents.push(document);
    }

    /// Folders of manifests also contain values of charts, test data and unused patches.
    fn document(&mut self, document: Arc<Document>, named: bool) {
        let why = if is_no_manifest(&document.value) {
            "is no manifest: it lacks `apiVersion` or `kind`"
        } else if is_part(&document.value) {
            "is a part of a CustomResourceDefinition: it has no group, no names and no versions"
        } else {
            ""
        };
        if named || why.is_empty() {
            self.documents.push(document);
            return;
        }
        self.find("no-manifest", Severity::Note, document.mistake(why), "");
    }

    /// Records a file that is part of another one, as a patch of an overlay, and is not linted alone.
    pub fn part(&mut self, name: &str, of: &str) {
        let mistake = LoadError {
            file: name.into(),
            position: Position::default(),
            field: String::new(),
            message: format!("is a patch that {of} applies to others"),
        };
        self.find("no-manifest", Severity::Note, mistake, "");
    }

    /// Adds a finding about a file.
    pub fn find(&mut self, code: &'static str, severity: Severity, mistake: LoadError, help: &str) {
        self.findings.push(Finding { code, severity, mistake, help: help.to_owned() });
    }

    /// Reports whether there are neither documents nor findings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty() && self.findings.is_empty() && self.templates.is_empty()
    }

    /// Lints all documents together; `also` may add findings. Invalid YAML is a finding like any other, so that one bad file does not
    /// hide the rest.
    pub fn lint(
        self,
        options: LoadOptions,
        builtin: &dyn Types,
        also: impl FnOnce(&[Arc<Document>], &mut Report),
    ) -> Linted {
        let (mut report, silenced, texts) = self.told(|documents| {
            let layers = Layers::of(documents);
            let mut report = if layers.is_single() {
                layers.lint(|documents| lint::lint(documents, options, builtin))
            } else {
                // Layers share most documents.
                let mut memory = Memory::default();
                layers.lint(|documents| lint::lint_again(documents, options, builtin, &mut memory))
            };
            also(documents, &mut report);
            report
        });
        let mut tokens: Option<(Arc<str>, Tokens<'_>)> = None;
        for mistake in report.findings.iter_mut().map(|finding| &mut finding.mistake) {
            let Some(text) = texts.get(&mistake.file) else { continue };
            if tokens.as_ref().is_none_or(|(file, _)| *file != mistake.file) {
                tokens = Some((mistake.file.clone(), Tokens::of(text)));
            }
            if let Some((_, tokens)) = &tokens {
                tokens.place(mistake);
            }
        }
        drop(tokens);
        Linted { report, silenced, texts }
    }

    /// Lints with a cache, for callers that lint repeatedly and locate tokens themselves: positions are those of the documents.
    pub(crate) fn lint_again(self, options: LoadOptions, builtin: &dyn Types, memory: &mut Memory) -> Report {
        self.told(|documents| {
            Layers::of(documents).lint(|layer| lint::lint_again(layer, options, builtin, memory))
        })
        .0
    }

    /// Returns the report without suppressed findings, their number, and the texts.
    fn told(self, lint: impl FnOnce(&[Arc<Document>]) -> Report) -> (Report, usize, Texts) {
        let Self { documents, findings, mut allowed, texts, templates } = self;
        let mut report = lint(&documents);
        for finding in report.findings.iter_mut().filter(|finding| is_unknown_kind(&finding.mistake)) {
            finding.help = IGNORE_UNKNOWN.to_owned();
        }
        let aside = findings.into_iter().chain(templates.found()).chain(std::mem::take(&mut allowed.wrong));
        report.findings.splice(0..0, aside).for_each(drop);
        let silenced = allowed.take(&mut report.findings);
        (report, silenced, texts)
    }
}

/// Reports whether the document is not a Kubernetes manifest at all.
///
/// ```
/// use admit_language::lint::is_no_manifest;
/// use serde_json::json;
///
/// assert!(is_no_manifest(&json!({"replicas": 3})) && is_no_manifest(&json!({"apiVersion": "v2", "name": "chart"})));
/// assert!(!is_no_manifest(&json!({"apiVersion": "v1", "metadata": {"name": "a"}})), "its kind was forgotten");
/// ```
#[must_use]
pub fn is_no_manifest(document: &Value) -> bool {
    let has = |key: &str| document.get(key).is_some();
    let is_named = has("apiVersion") && has("kind");
    // Charts have a version and no kind, test reports the reverse.
    !is_named && (!has("apiVersion") && !has("kind") || !has("metadata") && !has("spec"))
}

/// Reports whether the error is an object of a kind that no policy uses.
///
/// ```
/// let documents = admit_policy::manifest::read("a.yaml", "{apiVersion: v1, kind: A, metadata: {name: a}}").unwrap();
/// let mistakes = admit_policy::PolicySet::load_with(&documents, admit_policy::LoadOptions::default()).unwrap_err();
/// assert!(admit_language::lint::is_unknown_kind(&mistakes[0]));
/// ```
#[must_use]
pub fn is_unknown_kind(mistake: &LoadError) -> bool {
    mistake.message.ends_with(&LoadErrorKind::UnknownKind(String::new()).to_string())
}

/// Parses the documents of a text.
///
/// ```
/// let mistakes = admit_language::lint::parse("a.yaml", "a: {{ .Values.a }}\nb: 'c\n").unwrap_err();
/// assert!(mistakes[0].message.ends_with("templates are to be rendered first"));
/// ```
///
/// # Errors
/// The errors of the text, each with its position.
pub fn parse(name: &str, text: &str) -> Result<Vec<Document>, Vec<LoadError>> {
    manifest::read(name, text).map_err(|mistakes| of_template(mistakes, text))
}

/// Parses the documents and the positions of all nodes.
pub(crate) fn parse_placed(name: &str, text: &str) -> Result<(Vec<Document>, Layout), Vec<LoadError>> {
    manifest::read_placed(name, text).map_err(|mistakes| of_template(mistakes, text))
}

/// Adds a hint to errors if the text is a template. [`parse`] has an example.
#[must_use]
pub fn of_template(mut mistakes: Vec<LoadError>, text: &str) -> Vec<LoadError> {
    if is_template(text)
        && let Some(last) = mistakes.last_mut()
    {
        last.message.push_str("; templates are to be rendered first");
    }
    mistakes
}

fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// Reports whether it is an overlay's patch of a definition.
fn is_part(document: &Value) -> bool {
    let is_definition = document.get("kind").is_some_and(|kind| kind == "CustomResourceDefinition");
    is_definition
        && ["group", "names", "versions"]
            .iter()
            .all(|field| document.pointer(&format!("/spec/{field}")).is_none())
}
