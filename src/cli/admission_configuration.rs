//! The file of `--admission-control-config-file`, and the files that it names.

use std::io;
use std::path::Path;

use admit_apiserver::AdmissionConfiguration;

use super::load;
use super::process::Fault;

/// What admission plugins are set to; nothing where there is no file.
///
/// # Errors
/// For a file that cannot be read, or holds something else.
pub(super) fn read(file: Option<&Path>) -> Result<AdmissionConfiguration, Fault> {
    const FLAG: &str = "--admission-control-config-file";
    let Some(file) = file else { return Ok(AdmissionConfiguration::default()) };
    let text = load::text(file).map_err(|fault| Fault { message: format!("{FLAG}: {fault}"), ..fault })?;
    let folder = file.parent().unwrap_or_else(|| Path::new(""));
    let read = |path: &Path| load::text(path).map_err(|fault| io::Error::other(fault.to_string()));
    AdmissionConfiguration::read(&text, folder, read)
        .map_err(|error| Fault::usage(format!("{FLAG}: `{}`: {error}", file.display())))
}
