//! The flags of the status keeper of add-ons, shared by the commands that run it.

use std::path::PathBuf;

use clap::Args;

use super::report_condition::VocabularyName;
use super::typed::label;
use crate::controllers::observability::Settings;
use crate::controllers::observability::hub::HubSettings;

/// What was typed about the status of ObservabilityAddons.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Observability add-ons")]
pub(super) struct AddOnArgs {
    /// Namespace of this cluster on the hub, where the status of its add-on is shown as well [default: nowhere]
    #[arg(long, value_name = "NAMESPACE", env = "HUB_NAMESPACE", hide_env_values = true, value_parser = label)]
    hub_namespace: Option<String>,

    /// How the hub is reached; read again when it changes, and when the hub refuses what it says [default: it is this cluster]
    #[arg(
        long,
        value_name = "FILE",
        env = "HUB_KUBECONFIG",
        hide_env_values = true,
        requires = "hub_namespace"
    )]
    hub_kubeconfig: Option<PathBuf>,

    /// Which names reasons and conditions of add-ons have
    #[arg(long, value_enum, default_value_t)]
    vocabulary: VocabularyName,
}

impl AddOnArgs {
    /// What the flags mean.
    pub(super) fn settings(&self) -> Settings {
        let hub = self.hub_namespace.clone().map(|namespace| {
            let kubeconfig = self.hub_kubeconfig.clone();
            HubSettings { namespace, kubeconfig }
        });
        Settings { hub, ..Settings::new(self.vocabulary.vocabulary()) }
    }
}
