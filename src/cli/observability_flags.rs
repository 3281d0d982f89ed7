//! Defines the flags for ObservabilityAddons, shared by the commands that run their controller.

use std::path::PathBuf;

use clap::Args;

use super::process::Fault;
use super::report_condition::VocabularyName;
use super::value_parsers::{label, object};
use crate::controllers::observability::Settings;
use crate::controllers::observability::crd::SPOKE_NAMESPACE;
use crate::controllers::observability::endpoint::EndpointSettings;
use crate::controllers::observability::hub::HubSettings;

/// The error if the add-on would be copied to itself.
const OWN_NAMESPACE: &str = "--hub-namespace is where the add-on of this cluster itself lies: name the namespace that the hub has for \
                             this cluster, or another server with --hub-kubeconfig";

/// The flags about the status of ObservabilityAddons.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Observability add-ons")]
pub(super) struct ObservabilityArgs {
    /// Namespace of this cluster on the hub, to copy the status of its add-on to [default: the status is not copied]
    #[arg(long, value_name = "NAMESPACE", env = "HUB_NAMESPACE", hide_env_values = true, value_parser = label)]
    hub_namespace: Option<String>,

    /// Kubeconfig of the hub; read again when it changes, and when the hub refuses its credentials [default: the hub is this
    /// cluster]
    #[arg(
        long,
        value_name = "FILE",
        env = "HUB_KUBECONFIG",
        hide_env_values = true,
        requires = "hub_namespace"
    )]
    hub_kubeconfig: Option<PathBuf>,

    /// Service of Prometheus, as NAMESPACE/NAME; if it does not exist, metrics are reported as not supported [default: not
    /// checked]
    #[arg(long, value_name = "SERVICE", value_parser = object, conflicts_with = "no_endpoint_operator")]
    prometheus_service: Option<(String, String)>,

    /// Do not report on the collectors' Deployments and on disabled metrics, because another program does
    #[arg(long)]
    no_endpoint_operator: bool,

    /// Names to use for the reasons and conditions of add-ons
    #[arg(long, value_enum, default_value_t)]
    vocabulary: VocabularyName,
}

impl ObservabilityArgs {
    /// Converts the flags to settings.
    ///
    /// # Errors
    /// When the status would be copied to the add-on itself.
    pub(super) fn settings(&self) -> Result<Settings, Fault> {
        if self.hub_kubeconfig.is_none() && self.hub_namespace.as_deref() == Some(SPOKE_NAMESPACE) {
            return Err(Fault::usage(OWN_NAMESPACE));
        }
        let hub = self.hub_namespace.clone().map(|namespace| {
            let kubeconfig = self.hub_kubeconfig.clone();
            HubSettings { namespace, kubeconfig }
        });
        let prometheus = self.prometheus_service.clone();
        let endpoint = (!self.no_endpoint_operator).then_some(EndpointSettings { prometheus });
        Ok(Settings { hub, endpoint, ..Settings::new(self.vocabulary.vocabulary()) })
    }
}
