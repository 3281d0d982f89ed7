//! Reads the file of `--admission-control-config-file`, and the files that it names.

use std::io;
use std::path::Path;

use admit_apiserver::{AdmissionConfiguration, PluginError};

use super::load;
use super::process::Fault;

const FLAG: &str = "--admission-control-config-file";

/// Reads the configuration of admission plugins; the default if no file is given.
///
/// # Errors
/// When the file cannot be read, or is not an AdmissionConfiguration.
pub(super) fn read(file: Option<&Path>) -> Result<AdmissionConfiguration, Fault> {
    let Some(file) = file else { return Ok(AdmissionConfiguration::default()) };
    let text = load::text(file).map_err(|fault| Fault { message: format!("{FLAG}: {fault}"), ..fault })?;
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    let read = |path: &Path| load::text(path).map_err(|fault| io::Error::other(fault.to_string()));
    AdmissionConfiguration::read(&text, folder, read)
        .map_err(|error| Fault::usage(format!("{FLAG}: `{}`: {error}", file.display())))
}

/// Creates the error about unknown plugins, or about their configuration in `file`.
pub(super) fn fault(error: &PluginError, file: Option<&Path>) -> Fault {
    Fault::usage(match (error, file) {
        (PluginError::Settings { .. }, Some(file)) => format!("--{error}, in `{}`", file.display()),
        (PluginError::Settings { .. } | PluginError::Unknown { .. }, _) => format!("--{error}"),
        (PluginError::Overlapped(_) | PluginError::NeedsCluster(_), _) => error.to_string(),
    })
}
