//! The file, and its sections.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use admit_apimachinery::field_error::{FieldError, together};
use admit_apimachinery::pointer::text;
use admit_apimachinery::yaml::parse_values;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

type Files = Arc<dyn Fn(&Path) -> io::Result<String> + Send + Sync>;

/// A section for each plugin that is set to something: what the file of `--admission-control-config-file` of kube-apiserver
/// holds.
///
/// ```
/// use std::io;
/// use std::path::Path;
///
/// use admit_apiserver::{AdmissionConfiguration, AdmissionPlugins};
///
/// let file = "
/// apiVersion: apiserver.config.k8s.io/v1
/// kind: AdmissionConfiguration
/// plugins:
/// - name: EventRateLimit
///   configuration:
///     apiVersion: eventratelimit.admission.k8s.io/v1alpha1
///     kind: Configuration
///     limits: [{type: Namespace, qps: 50, burst: 100, cacheSize: 2000}]
/// ";
/// // Sections may be in other files, whose names are relative to the folder of this one.
/// let none = |_: &Path| Err(io::ErrorKind::NotFound.into());
/// let configuration = AdmissionConfiguration::read(file, Path::new("/etc"), none)?;
/// let plugins = AdmissionPlugins::configured(["EventRateLimit"], [""; 0], &configuration)?;
/// assert!(plugins.is_enabled("EventRateLimit"));
///
/// // It limits nothing by itself.
/// assert!(AdmissionPlugins::new(["EventRateLimit"], [""; 0]).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct AdmissionConfiguration {
    sections: BTreeMap<String, Section>,
    files: Option<Files>,
}

#[derive(Clone, Debug)]
enum Section {
    Here(Value),
    In(PathBuf),
}

/// Why a plugin cannot be set to what a text says.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// What upstream reads of this plugin's section is not built here.
    #[error("what it could be set to is not built; leave its section out")]
    NotBuilt,
    /// A field that says something upstream and nothing here.
    #[error("{0} is not built; leave it out")]
    FieldNotBuilt(String),
    /// A text that is no document, or not of the wanted form.
    #[error("{0}")]
    Text(String),
    /// A document of another kind.
    #[error("no kind {kind:?} is registered for version {version:?}")]
    Kind { kind: String, version: String },
    /// A file that cannot be read.
    #[error("`{file}`: {why}")]
    File { file: String, why: String },
    /// Values that cannot be, in the words of Kubernetes.
    #[error("{0}")]
    Invalid(String),
    /// A plugin that does nothing unless it is set to something.
    #[error("no config specified")]
    Missing,
}

impl SettingsError {
    pub(super) fn invalid(errors: &[FieldError]) -> Self {
        Self::Invalid(together(errors.iter().map(ToString::to_string)))
    }
}

impl fmt::Debug for AdmissionConfiguration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionConfiguration").field("sections", &self.sections).finish_non_exhaustive()
    }
}

impl AdmissionConfiguration {
    /// Reads an `AdmissionConfiguration` in YAML or JSON, which is in `folder`. Other files that it names are read by `files`
    /// once their plugin runs.
    ///
    /// # Errors
    /// For a text that is none.
    pub fn read(
        text: &str,
        folder: &Path,
        files: impl Fn(&Path) -> io::Result<String> + Send + Sync + 'static,
    ) -> Result<Self, SettingsError> {
        let document = parsed(text)?;
        if let Some(sections) = unversioned(&document) {
            return Ok(Self { sections, files: Some(Arc::new(files)) });
        }
        of_kind(
            &document,
            "AdmissionConfiguration",
            &["apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"],
        )?;
        let listed = document.get("plugins").and_then(Value::as_array).into_iter().flatten();
        let mut sections = BTreeMap::new();
        for plugin in listed {
            let name = self::text(plugin, "/name").to_owned();
            let section = match plugin.get("configuration").filter(|given| !given.is_null()) {
                Some(given) => Some(Section::Here(given.clone())),
                None => Some(self::text(plugin, "/path"))
                    .filter(|path| !path.is_empty())
                    .map(|path| Section::In(folder.join(path))),
            };
            // The first of a name is the one that counts.
            if let Some(section) = section {
                sections.entry(name).or_insert(section);
            }
        }
        Ok(Self { sections, files: Some(Arc::new(files)) })
    }

    /// What a plugin is set to.
    pub(super) fn section(&self, plugin: &str) -> Result<Option<Value>, SettingsError> {
        match self.sections.get(plugin) {
            None => Ok(None),
            Some(Section::Here(section)) => Ok(Some(section.clone())),
            Some(Section::In(path)) => {
                let wrong = |error: SettingsError| SettingsError::File {
                    file: path.display().to_string(),
                    why: error.to_string(),
                };
                parsed(&self.file(path)?).map(Some).map_err(wrong)
            }
        }
    }

    /// The text of a file that is named.
    pub(super) fn file(&self, path: &Path) -> Result<String, SettingsError> {
        let failed = |why: String| SettingsError::File { file: path.display().to_string(), why };
        let files = self.files.as_ref().ok_or_else(|| failed("there are no files here".to_owned()))?;
        files(path).map_err(|error| failed(error.to_string()))
    }
}

/// Files are as old as the sections of these two plugins, which have no kind: they are sections of both.
fn unversioned(document: &Value) -> Option<BTreeMap<String, Section>> {
    let has = |field: &str| document.get(field).is_some();
    let is_old = !has("kind") && (has("imagePolicy") || has("podNodeSelectorPluginConfig"));
    let section = |plugin: &str| (plugin.to_owned(), Section::Here(document.clone()));
    is_old.then(|| ["ImagePolicyWebhook", "PodNodeSelector"].map(section).into())
}

pub(super) fn parsed(text: &str) -> Result<Value, SettingsError> {
    let trees = parse_values(text).map_err(|error| SettingsError::Text(error.to_string()))?;
    Ok(trees.into_iter().next().map(|tree| tree.value).unwrap_or_default())
}

/// Whether the document is what is wanted.
///
/// # Errors
/// For one of another kind, or version.
pub(super) fn of_kind(document: &Value, kind: &str, versions: &[&str]) -> Result<(), SettingsError> {
    let (given, version) = (text(document, "/kind"), text(document, "/apiVersion"));
    if given == kind && versions.contains(&version) {
        return Ok(());
    }
    Err(SettingsError::Kind { kind: given.to_owned(), version: version.to_owned() })
}

/// A document as a type.
pub(super) fn typed<T: DeserializeOwned>(document: Value) -> Result<T, SettingsError> {
    serde_json::from_value(document).map_err(|error| SettingsError::Text(error.to_string()))
}
