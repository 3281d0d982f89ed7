//! Reads the `AdmissionConfiguration` file and its sections.

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

/// Holds the sections of plugins: the contents of the file of kube-apiserver's `--admission-control-config-file`.
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

/// Says why a plugin's settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SettingsError {
    /// The plugin has settings upstream and none here.
    #[error("what it could be set to is not built; leave its section out")]
    NotBuilt,
    /// The field is supported upstream and not here.
    #[error("{0} is not built; leave it out")]
    FieldNotBuilt(String),
    /// The document cannot be parsed, or has the wrong form.
    #[error("{0}")]
    Text(String),
    /// The document is of another kind.
    #[error("no kind {kind:?} is registered for version {version:?}")]
    Kind { kind: String, version: String },
    /// The file cannot be read.
    #[error("`{file}`: {why}")]
    File { file: String, why: String },
    /// The values are invalid; the message is that of Kubernetes.
    #[error("{0}")]
    Invalid(String),
    /// The plugin needs settings and has none.
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
    /// Reads an `AdmissionConfiguration` in YAML or JSON, whose file is in `folder`. `files` reads other files that it names
    /// once their plugin is enabled.
    ///
    /// # Errors
    /// If the text is not an `AdmissionConfiguration`.
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
            // Of several sections of a plugin, the first counts.
            if let Some(section) = section {
                sections.entry(name).or_insert(section);
            }
        }
        Ok(Self { sections, files: Some(Arc::new(files)) })
    }

    /// Returns the section of a plugin, inline or from its file; None if there is none.
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

    /// Reads a file that the configuration names.
    pub(super) fn file(&self, path: &Path) -> Result<String, SettingsError> {
        let failed = |why: String| SettingsError::File { file: path.display().to_string(), why };
        let files = self.files.as_ref().ok_or_else(|| failed("there are no files here".to_owned()))?;
        files(path).map_err(|error| failed(error.to_string()))
    }
}

/// Reads the oldest format: a file without kind, which holds the sections of two plugins directly.
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

/// Checks the kind and version of a document.
///
/// # Errors
/// If either is another.
pub(super) fn of_kind(document: &Value, kind: &str, versions: &[&str]) -> Result<(), SettingsError> {
    let (given, version) = (text(document, "/kind"), text(document, "/apiVersion"));
    if given == kind && versions.contains(&version) {
        return Ok(());
    }
    Err(SettingsError::Kind { kind: given.to_owned(), version: version.to_owned() })
}

/// Deserializes a document.
pub(super) fn typed<T: DeserializeOwned>(document: Value) -> Result<T, SettingsError> {
    serde_json::from_value(document).map_err(|error| SettingsError::Text(error.to_string()))
}
