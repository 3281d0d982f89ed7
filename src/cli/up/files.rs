//! Reads the files of `admit up`: the CRDs that it registers, and the policies.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use admit_policy::manifest::Document;
use serde_json::Value;

use crate::admission::InForce;
use crate::cli::generate::crds;
use crate::cli::load;
use crate::cli::process::Fault;
use crate::cli::sources::{self, Contents, Sources};

/// The default folders in the repository, relative to the current folder.
const POLICIES: &str = "policies";
const CRDS: &str = "deploy/crds";

/// The files, read and compiled.
pub(super) struct Files {
    /// The CRDs to register.
    pub(super) definitions: Vec<Value>,
    /// The policies, with the CRDs.
    pub(super) set: InForce,
    /// The sources, for reading them again.
    pub(super) sources: Sources,
    pub(super) contents: BTreeMap<String, Contents>,
}

/// Reads the policies and CRDs at `policies` and `crds`; either may contain both. Without paths, reads the default folders
/// if they exist; otherwise there are no policies, and the CRDs are those built into this program.
///
/// # Errors
/// With [`Exit::Usage`](crate::cli::Exit::Usage) when a file cannot be read, with
/// [`Exit::NotCompiled`](crate::cli::Exit::NotCompiled) all mistakes that prevent compilation.
pub(super) async fn read(policies: Vec<PathBuf>, crds: Vec<PathBuf>) -> Result<Files, Fault> {
    let (mut paths, crds) = (named_or(policies, POLICIES), named_or(crds, CRDS));
    let shipped = if crds.is_empty() { shipped()? } else { Vec::new() };
    paths.extend(crds);
    // A folder with both may be named twice.
    let mut seen = HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    let sources = Sources { paths, shipped: shipped.into(), shown: true, ..Sources::default() };
    let (documents, contents) = sources::parsed(sources.clone().first().await?).await?;
    let set = sources.compiled(documents.clone(), InForce::default().into()).await?;
    let is_definition = |document: &Document| {
        document.value.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition")
    };
    let definitions = sources.with_shipped(documents).into_iter().filter(is_definition);
    let definitions = definitions.map(|document| document.value).collect();
    Ok(Files { definitions, set, sources, contents })
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
