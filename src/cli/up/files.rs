//! Reads the files of `admit up`: the CRDs that it registers, and the policies.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use admit_policy::manifest::Document;
use admit_policy::{LoadOptions, PolicySet};
use serde_json::Value;

use crate::cli::generate::crds;
use crate::cli::load;
use crate::cli::process::Fault;

/// Where policies and definitions are in the repository, which is looked at where nothing is named.
const POLICIES: &str = "policies";
const CRDS: &str = "deploy/crds";

/// What was read.
#[derive(Debug)]
pub(super) struct Files {
    /// To be registered.
    pub(super) definitions: Vec<Value>,
    /// With the definitions.
    pub(super) policies: PolicySet,
}

/// The policies and definitions at `policies` and `crds`, in whichever of them they are. Where nothing is named, those of the
/// repository if they are here; else no policies, and the definitions that this program has with it.
///
/// # Errors
/// With [`Exit::Usage`](crate::cli::Exit::Usage) what cannot be read, with
/// [`Exit::NotCompiled`](crate::cli::Exit::NotCompiled) all that does not compile.
pub(super) fn read(policies: Vec<PathBuf>, crds: Vec<PathBuf>) -> Result<Files, Fault> {
    let (policies, crds) = (named_or(policies, POLICIES), named_or(crds, CRDS));
    let mut paths = policies;
    let without_definitions = crds.is_empty();
    paths.extend(crds);
    // A folder with both is named twice.
    let mut seen = HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    let mut documents = load::policy_documents(&paths)?;
    if without_definitions {
        let own: HashSet<String> = documents.iter().filter_map(defined).map(ToOwned::to_owned).collect();
        let shipped = shipped()?;
        documents
            .extend(shipped.into_iter().filter(|one| defined(one).is_some_and(|name| !own.contains(name))));
    }
    let policies = PolicySet::load_with(&documents, LoadOptions::default())
        .map_err(|errors| load::not_compiled(&errors))?;
    let is_definition = |document: &Document| defined(document).is_some();
    let definitions = documents.into_iter().filter(is_definition).map(|document| document.value).collect();
    Ok(Files { definitions, policies })
}

fn named_or(named: Vec<PathBuf>, usual: &str) -> Vec<PathBuf> {
    if !named.is_empty() {
        return named;
    }
    Some(Path::new(usual)).filter(|path| path.exists()).map(Path::to_owned).into_iter().collect()
}

fn shipped() -> Result<Vec<Document>, Fault> {
    let texts: Vec<(String, String)> =
        crds::all().map(|(name, text)| (format!("crds/{name} of this program"), text)).collect();
    load::policies_of(texts.iter().map(|(name, text)| (name.as_str(), text.as_str())))
}

/// The name that a definition gives itself.
fn defined(document: &Document) -> Option<&str> {
    let kind = document.value.get("kind").and_then(Value::as_str);
    let name = || document.value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    (kind == Some("CustomResourceDefinition")).then(name)
}
