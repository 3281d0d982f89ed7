//! Defines the flags that select and configure admission plugins.

use std::path::PathBuf;

use admit_apiserver::AdmissionPlugins;
use clap::Args;

use crate::cli::admission_configuration;
use crate::cli::process::Fault;

/// The flags that select admission plugins.
#[derive(Debug, Args)]
pub(super) struct PluginArgs {
    /// Admission plugins of the API server, by kube-apiserver's names, to run in addition to those on by default, separated by
    /// commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins of the API server to disable although they are on by default, separated by commas; without
    /// ServiceAccount, no namespace has an account of its own
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,

    /// File with the configuration of the API server's admission plugins: an AdmissionConfiguration, as for kube-apiserver
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,
}

impl PluginArgs {
    /// # Errors
    /// For unknown names, with a list of the known ones, and for an invalid configuration file.
    pub(super) fn chosen(&self) -> Result<AdmissionPlugins, Fault> {
        let file = self.admission_control_config_file.as_deref();
        let configuration = admission_configuration::read(file)?;
        AdmissionPlugins::configured(
            &self.enable_admission_plugins,
            &self.disable_admission_plugins,
            &configuration,
        )
        .map_err(|error| admission_configuration::fault(&error, file))
    }
}
