//! Finds the CRDs that suites name by `crdName` in a folder. A file is parsed only if it contains the name, and
//! each definition is compiled once for each version under test.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use admit_apimachinery::pointer;
use admit_policy::manifest::{self, Document, LoadError};
use admit_policy::suite::crd::{CrdSuite, FeatureGates, Named, Variant};
use serde_json::Value;

use super::cache::Shared;
use super::coverage::{Ledger, Places};
use crate::cli::load;
use crate::cli::process::Fault;

/// Why a suite has no definitions to run against.
#[derive(Debug)]
pub(super) enum Unusable {
    /// The suite refers to something that does not exist.
    Suite { field: &'static str, problem: String },
    /// A definition cannot be read or compiled.
    Definition(Fault),
}

impl From<Fault> for Unusable {
    fn from(fault: Fault) -> Self {
        Self::Definition(fault)
    }
}

/// A definition as written in its file.
#[derive(Clone, Debug)]
struct Found {
    file: Arc<str>,
    manifest: Arc<Value>,
    /// The document with its positions, if these were requested.
    document: Option<Document>,
}

/// A definition under test, with the positions of its expressions if these were requested.
#[derive(Debug)]
pub(in crate::cli) struct Tested {
    pub(in crate::cli) variant: Variant,
    version: String,
    pub(super) places: Option<Places>,
    /// Keeps the definitions of that name cached for the next suite.
    _found: Arc<[Found]>,
}

impl Tested {
    /// Returns the version under test.
    pub(in crate::cli) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the definition as it is written; empty unless positions were requested.
    pub(in crate::cli) fn documents(&self) -> Vec<&Document> {
        self.places.as_ref().map(Places::documents).unwrap_or_default()
    }
}

/// The definitions of one folder.
#[derive(Debug)]
pub(super) struct Definitions {
    folder: String,
    /// File names with their contents.
    texts: Vec<(String, String)>,
    /// Definitions by the name that a suite gives; all of them under `None`.
    found: Shared<Option<String>, [Found]>,
    /// Compiled definitions by file and version.
    tested: Shared<(Arc<str>, String), Tested>,
    gates: OnceLock<Result<FeatureGates, Fault>>,
}

impl Definitions {
    /// Reads the files of `folder`.
    ///
    /// # Errors
    /// When it, or a file in it, cannot be read.
    pub(super) fn open(folder: &Path) -> Result<Self, Fault> {
        let text = |file: load::Found| Ok((file.path.display().to_string(), file.text()?));
        Ok(Self {
            folder: folder.display().to_string(),
            texts: load::files(folder)?.into_iter().map(text).collect::<Result<_, _>>()?,
            found: Shared::default(),
            tested: Shared::default(),
            gates: OnceLock::new(),
        })
    }

    /// Returns the definitions that `suite` tests, compiled.
    ///
    /// # Errors
    /// When there is none, when the feature gates do not select one, and when one does not compile.
    pub(super) fn of(&self, suite: &CrdSuite, ledger: Option<&Ledger>) -> Result<Vec<Arc<Tested>>, Unusable> {
        let name = match &suite.definition {
            Named::Name(name) => Some(name.clone()),
            Named::File(_) => None,
        };
        let found = self.found.get(name.clone(), || self.search(name.as_deref(), ledger.is_some()))?;
        let versioned: Vec<&Found> =
            found.iter().filter(|found| has_version(found, &suite.version)).collect();
        let mut tested = Vec::new();
        for definition in &versioned {
            if self.covered(suite, definition)? {
                let key = (Arc::clone(&definition.file), suite.version.clone());
                tested.push(self.tested.get(key, || compile(&found, definition, &suite.version, ledger))?);
            }
        }
        if tested.is_empty() {
            return Err(self.nothing_found(suite, versioned.len()));
        }
        Ok(tested)
    }

    fn search(&self, name: Option<&str>, placed: bool) -> Result<Arc<[Found]>, Fault> {
        let mut found = Vec::new();
        let has_name = |(_, text): &&(String, String)| name.is_none_or(|name| text.contains(name));
        for (file, text) in self.texts.iter().filter(has_name) {
            let file: Arc<str> = file.as_str().into();
            for document in read(&file, text)? {
                let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
                let is_named = name.is_none() || text("/metadata/name") == name;
                if text("/kind") == Some("CustomResourceDefinition") && is_named {
                    let manifest = Arc::new(document.value.clone());
                    let document = placed.then_some(document);
                    found.push(Found { file: Arc::clone(&file), manifest, document });
                }
            }
        }
        Ok(found.into())
    }

    fn covered(&self, suite: &CrdSuite, found: &Found) -> Result<bool, Unusable> {
        if suite.feature_gates.is_empty() {
            return Ok(true);
        }
        let gates = self.gates.get_or_init(|| self.read_gates()).as_ref().map_err(Clone::clone)?;
        suite
            .covers(&found.manifest, gates)
            .map_err(|error| Unusable::Suite { field: "featureGates", problem: error.to_string() })
    }

    fn read_gates(&self) -> Result<FeatureGates, Fault> {
        let mut gates = FeatureGates::default();
        for (file, text) in self.texts.iter().filter(|(_, text)| text.contains("\nkind: FeatureGate\n")) {
            for document in read(&file.as_str().into(), text)? {
                gates.add(&document.value);
            }
        }
        Ok(gates)
    }

    fn nothing_found(&self, suite: &CrdSuite, versioned: usize) -> Unusable {
        let CrdSuite { definition, version, feature_gates, .. } = suite;
        let folder = &self.folder;
        let crd_name = match definition {
            Named::Name(name) if versioned == 0 => {
                let problem = format!(
                    "no CustomResourceDefinition `{name}` with version `{version}` in `{folder}`; say where it is with \
                     --crds"
                );
                return Unusable::Suite { field: "crdName", problem };
            }
            Named::File(_) if versioned == 0 => {
                let problem = format!("no CustomResourceDefinition with version `{version}` in `{folder}`");
                return Unusable::Suite { field: "crd", problem };
            }
            Named::Name(name) | Named::File(name) => name,
        };
        let gates = feature_gates.join(", ");
        let problem =
            format!("none of the {versioned} definitions `{crd_name}` in `{folder}` is made for [{gates}]");
        Unusable::Suite { field: "featureGates", problem }
    }
}

fn read(file: &Arc<str>, text: &str) -> Result<Vec<Document>, Fault> {
    manifest::read(file, text).map_err(|errors| load::not_compiled(&errors))
}

fn has_version(found: &Found, version: &str) -> bool {
    let versions = pointer::items(&found.manifest, "/spec/versions");
    versions.iter().any(|candidate| candidate.get("name").is_some_and(|name| name == version))
}

fn compile(
    all: &Arc<[Found]>,
    found: &Found,
    version: &str,
    ledger: Option<&Ledger>,
) -> Result<Arc<Tested>, Fault> {
    let variant = Variant::compile(&found.file, Arc::clone(&found.manifest), version).map_err(|error| {
        load::not_compiled(&[LoadError {
            file: Arc::clone(&found.file),
            position: manifest::Position::default(),
            field: String::new(),
            message: error.to_string(),
        }])
    })?;
    let places = ledger.map(|ledger| {
        let places = Places::new(found.document.clone());
        ledger.open(&places, variant.expressions());
        places
    });
    Ok(Arc::new(Tested { variant, version: version.to_owned(), places, _found: Arc::clone(all) }))
}
