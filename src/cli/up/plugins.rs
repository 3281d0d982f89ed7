//! The options that choose admission plugins.

use admit_apiserver::AdmissionPlugins;
use clap::Args;

use crate::cli::process::Fault;

/// Which plugins the API server runs.
#[derive(Debug, Args)]
pub(super) struct PluginArgs {
    /// Admission plugins of the API server to run beside those that are on by default, separated by commas; they have the
    /// names that kube-apiserver gives them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    enable_admission_plugins: Vec<String>,

    /// Admission plugins of the API server to leave off although they are on by default, separated by commas; without
    /// ServiceAccount, no namespace has an account of its own
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    disable_admission_plugins: Vec<String>,
}

impl PluginArgs {
    /// # Errors
    /// For names of no plugin, with a list of those that there are.
    pub(super) fn chosen(&self) -> Result<AdmissionPlugins, Fault> {
        AdmissionPlugins::new(&self.enable_admission_plugins, &self.disable_admission_plugins)
            .map_err(Fault::usage)
    }
}
