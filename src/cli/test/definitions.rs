//! The definitions that suites name by `crdName`, found in a folder: a file is read as YAML only when its text has the
//! name in it, and each definition is compiled once for each version under test.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use admit_policy::manifest::{self, LoadError};
use admit_policy::suite::crd::{CrdSuite, FeatureGates, Variant};
use serde_json::Value;

use super::cache::Cache;
use crate::cli::load;
use crate::cli::process::Fault;

/// A definition as written.
#[derive(Clone, Debug)]
struct Found {
    file: Arc<str>,
    manifest: Arc<Value>,
}

/// The definitions of one folder.
#[derive(Debug)]
pub(super) struct Definitions {
    folder: String,
    /// File names with their texts.
    texts: Vec<(String, String)>,
    found: Cache<String, Result<Arc<[Found]>, Fault>>,
    /// By file and version.
    variants: Cache<(Arc<str>, String), Result<Arc<Variant>, Fault>>,
    gates: OnceLock<Result<FeatureGates, Fault>>,
}

impl Definitions {
    /// Lists `folder`.
    ///
    /// # Errors
    /// When it, or a file in it, cannot be read.
    pub(super) fn open(folder: &Path) -> Result<Self, Fault> {
        let text = |file: std::path::PathBuf| Ok((file.display().to_string(), load::text(&file)?));
        Ok(Self {
            folder: folder.display().to_string(),
            texts: load::files(folder)?.into_iter().map(text).collect::<Result<_, _>>()?,
            found: Cache::default(),
            variants: Cache::default(),
            gates: OnceLock::new(),
        })
    }

    /// The definitions that `suite` is for, compiled.
    ///
    /// # Errors
    /// When there is none, when the gates do not tell, and when one does not compile.
    pub(super) fn of(&self, suite: &CrdSuite) -> Result<Vec<Arc<Variant>>, Fault> {
        let name = &suite.crd_name;
        let found = self.found.get(name.clone(), || self.search(name))?;
        let versioned: Vec<&Found> =
            found.iter().filter(|found| has_version(found, &suite.version)).collect();
        let mut variants = Vec::new();
        for definition in &versioned {
            if self.covered(suite, definition)? {
                let key = (Arc::clone(&definition.file), suite.version.clone());
                variants.push(self.variants.get(key, || compile(definition, &suite.version))?);
            }
        }
        if variants.is_empty() {
            return Err(Fault::usage(self.nothing_found(suite, versioned.len())));
        }
        Ok(variants)
    }

    fn search(&self, name: &str) -> Result<Arc<[Found]>, Fault> {
        let mut found = Vec::new();
        for (file, text) in self.texts.iter().filter(|(_, text)| text.contains(name)) {
            let file: Arc<str> = file.as_str().into();
            for document in read(&file, text)? {
                let is_it = document.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
                    && document.pointer("/metadata/name").and_then(Value::as_str) == Some(name);
                if is_it {
                    found.push(Found { file: Arc::clone(&file), manifest: Arc::new(document) });
                }
            }
        }
        Ok(found.into())
    }

    fn covered(&self, suite: &CrdSuite, found: &Found) -> Result<bool, Fault> {
        if suite.feature_gates.is_empty() {
            return Ok(true);
        }
        let gates = self.gates.get_or_init(|| self.read_gates()).as_ref().map_err(Clone::clone)?;
        suite.covers(&found.manifest, gates).map_err(|error| Fault::usage(format!("featureGates: {error}")))
    }

    fn read_gates(&self) -> Result<FeatureGates, Fault> {
        let mut gates = FeatureGates::default();
        for (file, text) in self.texts.iter().filter(|(_, text)| text.contains("\nkind: FeatureGate\n")) {
            for document in read(&file.as_str().into(), text)? {
                gates.add(&document);
            }
        }
        Ok(gates)
    }

    fn nothing_found(&self, suite: &CrdSuite, versioned: usize) -> String {
        let CrdSuite { crd_name, version, .. } = suite;
        if versioned == 0 {
            return format!(
                "crdName: no CustomResourceDefinition `{crd_name}` with version `{version}` in `{}`; say where it is \
                 with --crds",
                self.folder
            );
        }
        format!(
            "featureGates: none of the {versioned} definitions `{crd_name}` in `{}` is made for [{}]",
            self.folder,
            suite.feature_gates.join(", ")
        )
    }
}

fn read(file: &Arc<str>, text: &str) -> Result<Vec<Value>, Fault> {
    let documents = manifest::read(file, text).map_err(|errors| load::not_compiled(&errors))?;
    Ok(documents.into_iter().map(|document| document.value).collect())
}

fn has_version(found: &Found, version: &str) -> bool {
    let versions = found.manifest.pointer("/spec/versions").and_then(Value::as_array);
    versions.into_iter().flatten().any(|candidate| candidate.get("name").is_some_and(|name| name == version))
}

fn compile(found: &Found, version: &str) -> Result<Arc<Variant>, Fault> {
    Variant::compile(&found.file, Arc::clone(&found.manifest), version).map(Arc::new).map_err(|error| {
        load::not_compiled(&[LoadError {
            file: Arc::clone(&found.file),
            position: manifest::Position::default(),
            field: String::new(),
            message: error.to_string(),
        }])
    })
}
