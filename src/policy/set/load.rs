//! Loads the documents of manifest files into a [`PolicySet`], and reports every mistake in any of them with its
//! location.

use std::collections::HashMap;
use std::sync::Arc;

use admit_apimachinery::field_error::FieldError;
use admit_apimachinery::pointer;
use admit_apimachinery::suggest::did_you_mean;
use serde_json::Value;

use crate::crd::CompiledCrd;
use crate::exception;
use crate::read::manifest::{self, Document, LoadError};
use crate::request::GroupVersionKind;
use crate::server_config;
use crate::set::strict;
pub(crate) use crate::set::strict::UnknownField;
use crate::set::{LoadErrorKind, PolicySet};
use crate::set::{kinds, static_manifests};

/// Options that relax the checks of loading.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LoadOptions {
    /// Skip objects of kinds that no policy uses; otherwise they are an error.
    pub ignore_unknown: bool,
}

impl PolicySet {
    /// Compiles policies, bindings, CRDs, and the objects that policies use as params. Test suites are skipped, as
    /// are kustomize's own files and the API server's configuration of admission, so that a folder can hold all of them.
    ///
    /// # Errors
    /// Every mistake of every document; none is loaded then.
    pub fn load<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Result<Self, Vec<LoadError>> {
        Self::load_with(documents, LoadOptions::default())
    }

    /// Like [`Self::load`], with `options`.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_with<'a>(
        documents: impl IntoIterator<Item = &'a Document>,
        options: LoadOptions,
    ) -> Result<Self, Vec<LoadError>> {
        let mut errors = Vec::new();
        let set = Self::compiled(documents.into_iter().map(Loaded::of), options, &mut errors);
        if errors.is_empty() { Ok(set) } else { Err(errors) }
    }

    /// Returns the errors in documents that are partly known already, as [`Self::load_with`] reports them.
    pub(crate) fn mistakes<'a>(
        documents: impl IntoIterator<Item = Loaded<'a>>,
        options: LoadOptions,
    ) -> Vec<LoadError> {
        let mut errors = Vec::new();
        Self::compiled(documents, options, &mut errors);
        errors
    }

    /// Like [`Self::load`], for files, each with its name and text.
    ///
    /// # Errors
    /// Every error in every document, and the first syntax error of each file.
    pub fn load_files<'f>(
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
        options: LoadOptions,
    ) -> Result<Self, Vec<LoadError>> {
        let (mut documents, mut errors) = (Vec::new(), Vec::new());
        for (name, text) in files {
            match manifest::read(name, text) {
                Ok(found) => documents.extend(found),
                Err(found) => errors.extend(found),
            }
        }
        let set = Self::compiled(documents.iter().map(Loaded::of), options, &mut errors);
        if errors.is_empty() {
            return Ok(set);
        }
        errors.sort_by(|a, b| (&a.file, a.position).cmp(&(&b.file, b.position)));
        Err(errors)
    }

    fn compiled<'a>(
        documents: impl IntoIterator<Item = Loaded<'a>>,
        options: LoadOptions,
        errors: &mut Vec<LoadError>,
    ) -> Self {
        let mut builder = Self::builder();
        // Objects that are there twice, which matters only where they are params.
        let mut repeated: Vec<(&Document, LoadErrorKind)> = Vec::new();
        // The documents that the builder counts, in order.
        let mut counted: Vec<&Document> = Vec::new();
        for Loaded { document, known } in documents {
            // Half a name is no manifest, unless it is that of configuration.
            let is_nameless =
                || kind_of(document).kind.is_empty() && kinds::misnamed(&document.value).is_none();
            if is_aside(document) || options.ignore_unknown && is_nameless() {
                continue;
            }
            counted.push(document);
            let unknown = known.map_or_else(|| unknown_fields(document), |known| known.unknown.to_vec());
            let unknown = unknown.into_iter().filter(|field| field.refused);
            errors.extend(unknown.map(|field| unknown_field(document, field)));
            let definition = || match known.and_then(|known| known.definition) {
                Some(made) => made.clone(),
                None => CompiledCrd::compile(&document.value).map(Arc::new),
            };
            if let Err(kinds) = builder.add_compiled(&document.value, definition) {
                let (twice, others): (Vec<_>, Vec<_>) =
                    kinds.into_iter().partition(|kind| matches!(kind, LoadErrorKind::Duplicate(_)));
                errors.extend(others.iter().map(|kind| placed(document, kind)));
                repeated.extend(twice.into_iter().map(|kind| (document, kind)));
            }
        }
        // Unused documents were skipped, or already reported.
        let of_use: Vec<&Document> =
            counted.iter().copied().filter(|document| builder.is_of_use(&kind_of(document))).collect();
        errors.extend(static_manifests::problems(&of_use));
        repeated.retain(|(document, _)| !options.ignore_unknown || builder.is_of_use(&kind_of(document)));
        let mut firsts = HashMap::new();
        if !repeated.is_empty() {
            for document in &counted {
                firsts.entry(identity(document)).or_insert(document);
            }
        }
        errors.extend(repeated.iter().map(|(document, kind)| {
            let mut error = placed(document, kind);
            if let Some(first) = firsts.get(&identity(document)) {
                let line = first.position("").line;
                error.message.push_str(&format!(", at {}:{line}", first.file));
            }
            error
        }));
        // If a policy is missing, its params would seem unused.
        if errors.is_empty() && !options.ignore_unknown {
            let exceptions = counted.iter().filter(|document| is_exception(document));
            let without_effect = exceptions.filter_map(|document| {
                Some(placed(document, &LoadErrorKind::Field(builder.without_effect(&document.value)?)))
            });
            errors.extend(without_effect);
            let unused = builder.unused();
            errors.extend(unused.filter_map(|(number, kind)| Some(placed(counted.get(number)?, &kind))));
        }
        builder.finish()
    }
}

/// A document that is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loaded<'a> {
    pub(crate) document: &'a Document,
    pub(crate) known: Option<Known<'a>>,
}

/// What is known of a document before it is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'a> {
    /// The fields that its kind does not have.
    pub(crate) unknown: &'a [UnknownField],
    /// The result of compiling it, if it is a definition.
    pub(crate) definition: Option<&'a Result<Arc<CompiledCrd>, Vec<FieldError>>>,
}

impl<'a> Loaded<'a> {
    const fn of(document: &'a Document) -> Self {
        Self { document, known: None }
    }
}

/// Returns the kind, without a name if the document has none.
fn kind_of(document: &Document) -> GroupVersionKind {
    let text = |key: &str| document.value.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        ("", _) => GroupVersionKind::new("", "", ""),
        (api_version, kind) => GroupVersionKind::from_api_version(api_version, kind),
    }
}

/// Returns what identifies a document.
fn identity(document: &Document) -> (String, String, String, String) {
    let GroupVersionKind { group, kind, .. } = kind_of(document);
    let text = |pointer: &str| pointer::text(&document.value, pointer);
    (group, kind, text("/metadata/namespace").to_owned(), text("/metadata/name").to_owned())
}

/// The fields that the kind of `document` does not have.
pub(crate) fn unknown_fields(document: &Document) -> Vec<UnknownField> {
    let kind = kind_of(document);
    strict::unknown_fields(&kind.group, &kind.kind, &document.value)
}

fn is_exception(document: &Document) -> bool {
    let kind = kind_of(document);
    exception::is_exception(&kind.group, &kind.kind)
}

/// Whether `document` is a test suite, by its `apiVersion` and `kind`.
pub(crate) fn is_suite(document: &Value) -> bool {
    let text = |key: &str| document.get(key).and_then(Value::as_str).unwrap_or_default();
    text("kind") == "Suite" && text("apiVersion").starts_with("admit/")
}

fn is_aside(document: &Document) -> bool {
    let api_version = document.value.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let group = api_version.split('/').next().unwrap_or_default();
    let of_server = || !server_config::is_read(&kind_of(document).kind);
    match group {
        "kustomize.config.k8s.io" | "apiserver.k8s.io" => true,
        server_config::GROUP => of_server(),
        _ => is_suite(&document.value),
    }
}

fn unknown_field(document: &Document, UnknownField { path, nearest, .. }: UnknownField) -> LoadError {
    let mut error = placed(document, &LoadErrorKind::UnknownField(path));
    if nearest.is_some() {
        error.message.push_str(&format!("; {}", did_you_mean(nearest)));
    }
    error
}

fn placed(document: &Document, kind: &LoadErrorKind) -> LoadError {
    match kind {
        LoadErrorKind::Field(error) => document.error(error),
        LoadErrorKind::UnknownField(field) => LoadError {
            field: field.clone(),
            position: document.position(field),
            ..document.mistake(kind.to_string())
        },
        LoadErrorKind::NoKind
        | LoadErrorKind::Version(..)
        | LoadErrorKind::UnknownKind(_)
        | LoadErrorKind::NoSuchKind(..)
        | LoadErrorKind::Duplicate(_) => document.mistake(kind.to_string()),
    }
}
