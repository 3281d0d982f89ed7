//! Turns the text of a suite into cases that can be run: parses it, filters cases by name, and loads and compiles the
//! policies and definitions under test.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use admit_apimachinery::suggest::{self, did_you_mean};
use admit_apiserver::{BuiltinKinds, OfflinePlugins};
use admit_policy::manifest::{self, Document, LoadError};
use admit_policy::suite::crd::{CrdCase, CrdSuite, Named};
use admit_policy::suite::{Case, PlaceCase, PlaceDocuments, StatesCase, Suite};
use admit_policy::{FieldsError, LoadOptions, Plugins, PolicySet};
use regex_automata::meta::Regex;

use super::cache::{Kept, Shared};
use super::case::{Loaded, PreparedCase, Test};
use super::coverage::{Ledger, Places};
use super::definitions::{Definitions, Tested, Unusable};
use super::discover::Source;
use crate::cli::process::Fault;
use crate::cli::states::Inputs;
use crate::cli::{Exit, conversion, load};

/// The folder of generated definitions beside the suites in the OpenShift API project.
const GENERATED: &str = "zz_generated.crd-manifests";

/// The cases of one file.
#[derive(Debug, Default)]
pub(in crate::cli) struct Prepared {
    pub(in crate::cli) cases: Vec<PreparedCase>,
    /// Warnings about the file, which do not prevent it from being run.
    pub(in crate::cli) warnings: Vec<String>,
}

/// Prepares suites; what several suites load is loaded once, while it is in use.
#[derive(Debug)]
pub(in crate::cli) struct SuiteLoader {
    crds: Option<PathBuf>,
    pattern: Option<Regex>,
    load_options: LoadOptions,
    plugins: Arc<OfflinePlugins>,
    /// Sums up the coverage, if it was requested.
    ledger: Option<Ledger>,
    sets: Shared<Vec<PathBuf>, Loaded>,
    definitions: Kept<PathBuf, Result<Arc<Definitions>, Fault>>,
    /// Every path that was loaded.
    used: Mutex<Vec<PathBuf>>,
}

impl SuiteLoader {
    pub(super) fn new(crds: Option<&Path>, pattern: Option<Regex>, ledger: Option<Ledger>) -> Self {
        Self {
            crds: crds.map(ToOwned::to_owned),
            pattern,
            load_options: LoadOptions::default(),
            plugins: Arc::default(),
            ledger,
            sets: Shared::default(),
            definitions: Kept::default(),
            used: Mutex::default(),
        }
    }

    /// Creates a loader that also records the positions of documents in their files.
    pub(in crate::cli) fn placed(crds: Option<&Path>) -> Self {
        Self::new(crds, None, Some(Ledger::default()))
    }

    /// Sets the options for loading documents.
    pub(super) fn loading(self, options: LoadOptions) -> Self {
        Self { load_options: options, ..self }
    }

    /// Sets the admission plugins.
    pub(super) fn plugging(self, plugins: OfflinePlugins) -> Self {
        Self { plugins: Arc::new(plugins), ..self }
    }

    pub(super) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_ref()
    }

    /// Returns the files and folders that cases depend on, beside the suites themselves.
    pub(super) fn used(&self) -> Vec<PathBuf> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Prepares the cases of a file that match the filter.
    ///
    /// # Errors
    /// Why the file cannot be run.
    pub(in crate::cli) fn prepare(&self, source: &Source) -> Result<Prepared, Fault> {
        let (documents, duplicates) =
            manifest::read_leniently(&source.file, &source.text).map_err(|errors| unreadable(&errors))?;
        if documents.is_empty() {
            return Err(Fault::usage(format!("`{}` is empty", source.file)));
        }
        let mut prepared = Prepared::default();
        for document in &documents {
            if CrdSuite::is(&document.value) {
                self.of_definition(document, source, &mut prepared)?;
                // The reader of this format takes the last value of a repeated key.
                prepared.warnings.extend(duplicates.iter().map(ToString::to_string));
            } else if duplicates.is_empty() {
                let cases = self.of_policies(document, source)?;
                prepared.warnings.extend(same_names(document, &cases));
                prepared.warnings.extend(unknown_policies(document, &cases));
                prepared.cases.extend(cases);
            } else {
                return Err(unreadable(&duplicates));
            }
        }
        Ok(prepared)
    }

    fn of_policies(&self, document: &Document, source: &Source) -> Result<Vec<PreparedCase>, Fault> {
        if !Suite::is(&document.value) {
            let problem = "is no suite; one begins with `apiVersion: admit/v1` and `kind: Suite`, or has `crdName` \
                           and `tests`";
            return Err(unreadable(&[document.mistake(problem)]));
        }
        let suite = Suite::decode_knowing(&document.value, Some(&BuiltinKinds))
            .map_err(|error| misplaced(document, &error))?;
        let documents = documents_of(&suite.documents, source);
        let numbered = suite.cases.into_iter().enumerate();
        let wanted: Vec<(usize, Case)> = numbered.filter(|(_, case)| self.wants(&case.name)).collect();
        let states: Vec<(usize, StatesCase)> =
            suite.states.into_iter().enumerate().filter(|(_, case)| self.wants(&case.name)).collect();
        let places: Vec<PlaceCase> = suite.places.into_iter().filter(|case| self.wants(&case.name)).collect();
        if wanted.is_empty() && states.is_empty() && places.is_empty() {
            return Ok(Vec::new());
        }
        if let Some((index, path)) = documents.iter().enumerate().find(|(_, path)| !names_something(path)) {
            let problem = format!("there is no `{}`; paths start from the suite's folder", path.display());
            return Err(unreadable(&[mistake(document, &format!("documents[{index}]"), problem)]));
        }
        let mut pictured = self.pictured(document, &documents, states)?;
        if wanted.is_empty() && places.is_empty() {
            return Ok(pictured);
        }
        let loaded = self.sets.get(documents.clone(), || self.load(&documents))?;
        let ready = |(index, case): (usize, Case)| PreparedCase {
            name: case.name.clone(),
            place: document.position(&format!("cases[{index}]")),
            test: Test::Policies {
                case: Box::new(case),
                loaded: Arc::clone(&loaded),
                object: place_of_object(document, index),
            },
        };
        let mut cases: Vec<PreparedCase> = wanted.into_iter().map(ready).collect();
        cases.extend(places.into_iter().map(|case| PreparedCase {
            name: case.name.clone(),
            place: document.position(&case.path),
            test: Test::Place { case: Box::new(case), loaded: Arc::clone(&loaded) },
        }));
        cases.append(&mut pictured);
        Ok(cases)
    }

    /// Prepares the tests of which values of fields follow one another.
    fn pictured(
        &self,
        document: &Document,
        paths: &[PathBuf],
        states: Vec<(usize, StatesCase)>,
    ) -> Result<Vec<PreparedCase>, Fault> {
        if states.is_empty() {
            return Ok(Vec::new());
        }
        let inputs = Arc::new(Inputs::read(paths, &[], &[], self.load_options)?);
        let ready = |(index, case): (usize, StatesCase)| PreparedCase {
            name: case.name.clone(),
            place: document.position(&format!("states[{index}]")),
            test: Test::States { case: Box::new(case), inputs: Arc::clone(&inputs) },
        };
        Ok(states.into_iter().map(ready).collect())
    }

    fn load(&self, paths: &[PathBuf]) -> Result<Arc<Loaded>, Fault> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(paths);
        let documents = load::policy_documents(paths)?;
        let set = PolicySet::load_with(&documents, self.load_options)
            .map_err(|errors| load::with_hint(load::not_compiled(&errors)))?
            .converting(conversion::offline)
            .knowing(&BuiltinKinds)
            .plugging(Arc::clone(&self.plugins) as Arc<dyn Plugins>);
        let set = load::as_of_now(set);
        load::tell_ended(&set);
        let server = PlaceDocuments::read(documents.iter().map(|document| &document.value));
        let places = self.ledger.as_ref().map(|ledger| {
            let places = Places::new(documents);
            ledger.open(&places, set.policies().flat_map(|(policy, _)| policy.expressions()));
            ledger.open(&places, set.mutating_policies().flat_map(|(policy, _)| policy.expressions()));
            let versions = set.documents().crds().iter().flat_map(|crd| crd.versions());
            ledger.open(&places, versions.flat_map(|version| version.expressions()));
            ledger.open(&places, server.iter().flat_map(PlaceDocuments::expressions));
            places
        });
        Ok(Arc::new(Loaded { set, server, places }))
    }

    fn of_definition(
        &self,
        document: &Document,
        source: &Source,
        prepared: &mut Prepared,
    ) -> Result<(), Fault> {
        let mut suite = CrdSuite::decode(&document.value).map_err(|error| misplaced(document, &error))?;
        let cases: Vec<CrdCase> =
            std::mem::take(&mut suite.cases).into_iter().filter(|case| self.wants(&case.name)).collect();
        if cases.is_empty() {
            return Ok(());
        }
        let unread = suite.unread.iter().map(|field| {
            mistake(document, field, "is no field of such a suite, and is not read".to_owned()).to_string()
        });
        prepared.warnings.extend(unread);
        let tested = self.tested(&suite, source).map_err(|unusable| match unusable {
            Unusable::Suite { field, problem } => unreadable(&[mistake(document, field, problem)]),
            Unusable::Definition(fault) => fault,
        })?;
        let tested: Arc<[Arc<Tested>]> = tested.into();
        let ready = |case: CrdCase| PreparedCase {
            name: case.name.clone(),
            place: document.position(&case.path),
            test: Test::Definition { case: Box::new(case), tested: Arc::clone(&tested) },
        };
        prepared.cases.extend(cases.into_iter().map(ready));
        Ok(())
    }

    fn tested(&self, suite: &CrdSuite, source: &Source) -> Result<Vec<Arc<Tested>>, Unusable> {
        let folder = match &suite.definition {
            Named::Name(_) => self.folder_of_definitions(source),
            Named::File(file) => self.file_of_definition(source, file)?,
        };
        let open = || {
            self.used.lock().unwrap_or_else(PoisonError::into_inner).push(folder.clone());
            Definitions::open(&folder).map(Arc::new)
        };
        self.definitions.get(folder.clone(), open)?.of(suite, self.ledger())
    }

    fn wants(&self, name: &str) -> bool {
        self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(name))
    }

    fn folder_of_definitions(&self, source: &Source) -> PathBuf {
        if let Some(folder) = &self.crds {
            return folder.clone();
        }
        let generated = load::normal(&source.folder.join("../..").join(GENERATED));
        if generated.is_dir() { generated } else { beside(source) }
    }

    /// Finds the definition that a suite names by its file: beside the suite, or in the generated folder there.
    fn file_of_definition(&self, source: &Source, file: &str) -> Result<PathBuf, Unusable> {
        let folder = self.crds.clone().unwrap_or_else(|| beside(source));
        let places = [folder.join(file), folder.join(GENERATED).join(file)];
        let found = places.into_iter().map(|path| load::normal(&path)).find(|path| path.is_file());
        found.ok_or_else(|| {
            let folder = folder.display();
            let problem = format!("there is no `{file}` in `{folder}`; say where it is with --crds");
            Unusable::Suite { field: "crd", problem }
        })
    }
}

/// Returns `FILE:LINE` of the field that best identifies the new object of the case at `index`.
fn place_of_object(document: &Document, index: usize) -> String {
    const FIELDS: [&str; 2] = ["object", "patch"];
    let own =
        FIELDS.iter().find(|field| document.value.pointer(&format!("/cases/{index}/{field}")).is_some());
    let default = FIELDS.iter().find(|field| document.value.pointer(&format!("/defaults/{field}")).is_some());
    let field = match (own, default) {
        (Some(field), _) => format!("cases[{index}].{field}"),
        (None, Some(field)) => format!("defaults.{field}"),
        (None, None) => format!("cases[{index}]"),
    };
    format!("{}:{}", document.file, document.position(&field).line)
}

/// Warns once about each policy name that does not exist, so that no case can reach it.
fn unknown_policies(document: &Document, cases: &[PreparedCase]) -> Vec<String> {
    let mut told: Vec<&str> = Vec::new();
    let mut warnings = Vec::new();
    for ready in cases {
        let Test::Policies { case, loaded, .. } = &ready.test else { continue };
        let names = || {
            let mutating = loaded.set.mutating_policies().map(|(policy, _)| &*policy.common().name);
            loaded.set.policies().map(|(policy, _)| &*policy.name).chain(mutating)
        };
        let is_there = |name: &str| names().any(|known| known == name);
        for name in case.policies.iter().filter(|name| !is_there(name)) {
            if told.contains(&name.as_str()) {
                continue;
            }
            told.push(name);
            let meant = suggest::nearest(name, names());
            let meant = meant.map(|meant| format!("; {}", did_you_mean(Some(meant)))).unwrap_or_default();
            let problem = format!("there is no policy `{name}` among the suite's documents{meant}");
            warnings.push(LoadError { position: ready.place, ..document.mistake(problem) }.to_string());
        }
    }
    warnings
}

/// Warns about cases with the same name.
fn same_names(document: &Document, cases: &[PreparedCase]) -> Vec<String> {
    let twice = cases
        .iter()
        .enumerate()
        .filter(|(index, case)| cases.iter().take(*index).any(|earlier| earlier.name == case.name));
    let warning = |(_, case): (usize, &PreparedCase)| {
        let problem = format!("another case is called `{}`, too", case.name);
        LoadError { position: case.place, ..document.mistake(problem) }.to_string()
    };
    twice.map(warning).collect()
}

fn unreadable(errors: &[LoadError]) -> Fault {
    Fault { exit: Exit::Usage, ..load::not_compiled(errors) }
}

fn misplaced(document: &Document, error: &FieldsError) -> Fault {
    unreadable(&[mistake(document, error.path(), error.to_string())])
}

/// Creates an error with `problem` about the given field of `document`.
fn mistake(document: &Document, field: &str, problem: String) -> LoadError {
    LoadError { position: document.position(field), field: field.to_owned(), ..document.mistake(problem) }
}

/// Returns the documents that the suite names, or the folder of the suite.
fn documents_of(named: &[String], source: &Source) -> Vec<PathBuf> {
    if named.is_empty() {
        return vec![beside(source)];
    }
    named.iter().map(|path| load::normal(&source.folder.join(path))).collect()
}

/// Whether the file or folder exists; `folder/...` means the folder.
fn names_something(path: &Path) -> bool {
    path.exists()
        || (path.ends_with("...")
            && path.parent().is_some_and(|folder| folder.as_os_str().is_empty() || folder.exists()))
}

fn beside(source: &Source) -> PathBuf {
    if source.folder.as_os_str().is_empty() { PathBuf::from(".") } else { source.folder.clone() }
}
