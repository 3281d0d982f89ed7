//! Reads the ClusterOperators that a payload announces: manifests in a folder, in the keys of a ConfigMap, or in
//! both, among manifests of other kinds.
//!
//! A manifest that cannot be read does not affect the others, and is reported with file and line. Files are read in
//! order of their names, then keys; of two manifests of one name the first counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use admit_policy::manifest::{self, Document};
use serde::Deserialize;
use serde_json::Value;

use super::crd::{OperandVersion, RelatedObject};
use crate::outside;
use crate::telemetry::{Outside, Secrets};

/// The largest file in bytes: payloads contain CRDs with all their schemas.
const MAX_FILE: u64 = 8 << 20;
/// The most files of a payload; upstream's have about a thousand.
const MAX_FILES: usize = 20_000;
/// The most mistakes that are reported; a folder that is not a payload has one per file.
const MAX_MISTAKES: usize = 50;

/// A ClusterOperator as its manifest has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub related: Vec<RelatedObject>,
    /// The expected versions, not the running ones.
    pub versions: Vec<OperandVersion>,
}

/// The ClusterOperators to prime, and the mistakes in their manifests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Payload {
    pub operators: Vec<Wanted>,
    /// The mistakes, with file and line.
    pub mistakes: Vec<String>,
}

/// Which manifests of a payload belong to this cluster, by their annotations.
#[derive(Clone, Debug)]
pub struct Inclusion {
    pub profile: String,
    /// Manifests with `exclude.release.openshift.io/<this>: "true"` are excluded.
    pub exclude: Option<String>,
    /// The enabled capabilities; None for all.
    pub capabilities: Option<BTreeSet<String>>,
    pub feature_set: String,
    /// The enabled feature gates.
    pub feature_gates: BTreeSet<String>,
}

impl Default for Inclusion {
    fn default() -> Self {
        Self {
            profile: "self-managed-high-availability".to_owned(),
            exclude: None,
            capabilities: None,
            feature_set: "Default".to_owned(),
            feature_gates: BTreeSet::new(),
        }
    }
}

const INCLUDE: &str = "include.release.openshift.io/";

impl Inclusion {
    /// Whether a manifest with `annotations` belongs to the cluster. A manifest without any profile is not from an OpenShift
    /// release, and belongs to any cluster.
    #[must_use]
    pub fn includes(&self, annotations: &BTreeMap<String, String>) -> bool {
        let of = |key: &str| annotations.get(key).map(String::as_str);
        let profiles = annotations.keys().any(|key| key.starts_with(INCLUDE));
        let profile = !profiles || of(&format!("{INCLUDE}{}", self.profile)) == Some("true");
        let excluded = self
            .exclude
            .as_ref()
            .is_some_and(|name| of(&format!("exclude.release.openshift.io/{name}")) == Some("true"));
        let capable = of("capability.openshift.io/name").is_none_or(|names| {
            let on = |name| self.capabilities.as_ref().is_none_or(|on| on.contains(name));
            names.split('+').map(str::trim).all(on)
        });
        let of_set = of("release.openshift.io/feature-set")
            .is_none_or(|sets| sets.split(',').any(|set| set.trim() == self.feature_set));
        let gated = of("release.openshift.io/feature-gate").is_none_or(|gates| {
            gates.split(',').map(str::trim).all(|gate| match gate.strip_prefix('-') {
                Some(off) => !self.feature_gates.contains(off),
                None => self.feature_gates.contains(gate),
            })
        });
        let deleted = of("release.openshift.io/delete") == Some("true");
        profile && !excluded && capable && of_set && gated && !deleted
    }
}

/// Why the folder of a payload cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    #[error("cannot read the payload `{}`: {source}; name a folder of manifests", path.display())]
    Folder {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the payload `{}` has more than {MAX_FILES} files", path.display())]
    TooMany { path: PathBuf },
}

/// Why a file of a payload cannot be used.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("is a link out of the payload")]
    Link,
    #[error(transparent)]
    Path(#[from] io::Error),
    #[error(transparent)]
    Read(#[from] outside::Unreadable),
}

/// Why a manifest does not define a ClusterOperator that can be created.
#[derive(Debug, thiserror::Error)]
enum OperatorError {
    #[error(transparent)]
    Malformed(#[from] serde_json::Error),
    #[error("a ClusterOperator without a name")]
    MissingName,
}

/// Reads a folder, again when its files have changed, and the keys of a ConfigMap.
#[derive(Debug, Default)]
pub struct Source {
    folder: Option<PathBuf>,
    inclusion: Inclusion,
    seen: Vec<(PathBuf, Option<SystemTime>, u64)>,
    /// The name of the ConfigMap for messages, and its data.
    config_map: (String, BTreeMap<String, String>),
    /// Whether the ConfigMap has changed since the last read.
    heard: bool,
    payload: Arc<Payload>,
}

impl Source {
    #[must_use]
    pub fn new(folder: Option<&Path>, inclusion: Inclusion) -> Self {
        Self { folder: folder.map(ToOwned::to_owned), inclusion, heard: true, ..Self::default() }
    }

    /// Replaces the manifests from the keys of the ConfigMap `name`, which come after those of the folder.
    pub fn hear(&mut self, name: &str, data: BTreeMap<String, String>) {
        self.config_map = (name.to_owned(), data);
        self.heard = true;
    }

    /// Returns the current payload.
    ///
    /// # Errors
    /// [`PayloadError`] when the folder cannot be read. The previous payload is dropped then.
    pub fn read(&mut self) -> Result<Arc<Payload>, PayloadError> {
        let files = self.folder.as_deref().map(files).transpose()?.unwrap_or_default();
        if files != self.seen || self.heard {
            let folder = self.folder.as_deref().unwrap_or(Path::new(""));
            let of_folder = files.iter().map(|(path, ..)| (shown(folder, path), text(folder, path)));
            let (name, data) = &self.config_map;
            let keys = data.iter().filter(|(key, _)| is_manifest(Path::new(key)));
            let of_keys = keys.map(|(key, text)| (format!("{name}/{key}"), Ok(text.clone())));
            self.payload = Arc::new(parse(of_folder.chain(of_keys), &self.inclusion));
            (self.seen, self.heard) = (files, false);
        }
        Ok(Arc::clone(&self.payload))
    }
}

fn is_manifest(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    matches!(end, "yaml" | "yml" | "json")
}

fn files(folder: &Path) -> Result<Vec<(PathBuf, Option<SystemTime>, u64)>, PayloadError> {
    let unreadable = |source| PayloadError::Folder { path: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if !is_manifest(&path) {
            continue;
        }
        // Links are followed, since a mounted ConfigMap consists of them.
        let about = fs::metadata(&path).ok();
        files.push((
            path,
            about.as_ref().and_then(|about| about.modified().ok()),
            about.map_or(0, |about| about.len()),
        ));
        if files.len() > MAX_FILES {
            return Err(PayloadError::TooMany { path: folder.to_owned() });
        }
    }
    files.sort();
    Ok(files)
}

fn shown(folder: &Path, path: &Path) -> String {
    path.strip_prefix(folder).unwrap_or(path).display().to_string()
}

/// Reads a file of the folder; a link out of it is an error.
fn text(folder: &Path, path: &Path) -> Result<String, FileError> {
    if !path.canonicalize()?.starts_with(folder.canonicalize()?) {
        return Err(FileError::Link);
    }
    Ok(outside::text(path, MAX_FILE)?)
}

/// Parses the ClusterOperators in `texts`, which are in order, with their file names.
pub fn parse<E: Display>(
    texts: impl Iterator<Item = (String, Result<String, E>)>,
    inclusion: &Inclusion,
) -> Payload {
    let mut payload = Payload::default();
    let mut names = BTreeSet::new();
    let mut mistakes = 0_usize;
    for (file, text) in texts {
        let read = text.map_err(|why| vec![format!("{file}: {why}")]).and_then(|text| {
            manifest::read(&file, &text).map_err(|errors| errors.iter().map(ToString::to_string).collect())
        });
        let (documents, mut wrong) = match read {
            Ok(documents) => (documents, Vec::new()),
            Err(wrong) => (Vec::new(), wrong),
        };
        for document in documents.iter().filter(|document| is_operator(&document.value)) {
            match wanted(document) {
                Ok(wanted) if !inclusion.includes(&wanted.annotations) => {}
                Ok(wanted) if !names.insert(wanted.name.clone()) => {
                    wrong.push(
                        document
                            .mistake(format!("ClusterOperator `{}` is there twice", wanted.name))
                            .to_string(),
                    );
                }
                Ok(wanted) => payload.operators.push(wanted),
                Err(why) => wrong.push(document.mistake(why.to_string()).to_string()),
            }
        }
        mistakes = mistakes.saturating_add(wrong.len());
        let left = MAX_MISTAKES.saturating_sub(payload.mistakes.len());
        let told =
            wrong.into_iter().take(left).map(|text| Outside::of(text, &Secrets::default()).into_string());
        payload.mistakes.extend(told);
    }
    if mistakes > payload.mistakes.len() {
        let more = mistakes - payload.mistakes.len();
        payload.mistakes.push(format!("and {more} more"));
    }
    payload
}

fn is_operator(value: &Value) -> bool {
    let is = |field: &str, text: &str| value.get(field).and_then(Value::as_str) == Some(text);
    is("kind", "ClusterOperator") && is("apiVersion", "config.openshift.io/v1")
}

#[derive(Deserialize)]
struct Manifest {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    versions: Vec<OperandVersion>,
    /// The name in the design document, `relatedResources`, is accepted too.
    #[serde(default, alias = "relatedResources")]
    related_objects: Vec<RelatedObject>,
}

fn wanted(document: &Document) -> Result<Wanted, OperatorError> {
    let read: Result<Manifest, _> = serde_json::from_value(document.value.clone());
    let Manifest { metadata, status } = read?;
    let Metadata { name, labels, annotations } = metadata;
    if name.is_empty() {
        return Err(OperatorError::MissingName);
    }
    Ok(Wanted { name, labels, annotations, related: status.related_objects, versions: status.versions })
}
