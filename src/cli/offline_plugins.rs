//! Defines the flags of admission plugins for commands that decide given objects without a cluster.

use std::path::PathBuf;

use admit_apiserver::OfflinePlugins;
use clap::Args;

use super::admission_configuration;
use super::process::Fault;

/// The flags that select the plugins for manifests and test cases.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct OfflinePluginArgs {
    /// Admission plugins of kube-apiserver to run in addition to those on by default, separated by commas
    ///
    /// DefaultTolerationSeconds, TaintNodesByCondition and StorageObjectInUseProtection, which change every object alike, run
    /// only if they are named here.
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins to disable although they are on by default, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,

    /// File with the configuration of admission plugins: an AdmissionConfiguration, as for kube-apiserver
    #[arg(long, value_name = "FILE")]
    admission_control_config_file: Option<PathBuf>,
}

impl OfflinePluginArgs {
    /// # Errors
    /// For unknown plugins, for plugins that need a cluster, and for an invalid configuration file.
    pub(in crate::cli) fn chosen(&self) -> Result<OfflinePlugins, Fault> {
        let file = self.admission_control_config_file.as_deref();
        let configuration = admission_configuration::read(file)?;
        OfflinePlugins::new(&self.enable_admission_plugins, &self.disable_admission_plugins, &configuration)
            .map_err(|error| admission_configuration::fault(&error, file))
    }
}
