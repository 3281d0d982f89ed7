//! How periodic gatherings are to gather: the object `cluster` of `InsightsDataGather`, config.openshift.io/v1, read as a
//! DataGather's spec. Where archives are kept is not read from it: that is set with the command.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde::Deserialize;

use super::crd::{DataGatherSpec, DataPolicy, GathererConfig};
use crate::telemetry::with_causes;

const NAME: &str = "cluster";

/// Why the configuration cannot be followed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfigError {
    #[error("cannot read the InsightsDataGather `{NAME}`: {}", with_causes(.0))]
    Api(#[from] Box<kube::Error>),
    #[error("the InsightsDataGather `{NAME}` cannot be understood: {0}")]
    Undecodable(#[from] serde_json::Error),
    #[error("the InsightsDataGather `{NAME}` asks to hide names of workloads, which is not supported")]
    WorkloadNames,
}

/// The spec of a periodic gathering, none where periodic gathering is switched off. A cluster that has no such object, or
/// does not know the kind, leaves all to the defaults.
///
/// # Errors
/// [`ConfigError`]: nothing is gathered then, for the configuration might have forbidden it.
pub(super) async fn read(client: &Client) -> Result<Option<DataGatherSpec>, ConfigError> {
    let kind = GroupVersionKind::gvk("config.openshift.io", "v1", "InsightsDataGather");
    let resource = ApiResource::from_gvk_with_plural(&kind, "insightsdatagathers");
    let configurations: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    match configurations.get(NAME).await {
        Ok(object) => spec(serde_json::from_value(object.data)?),
        // Also the answer of a server that does not know the kind, which is no Status.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Some(DataGatherSpec::default())),
        Err(error) => Err(Box::new(error).into()),
    }
}

#[derive(Deserialize)]
struct Configuration {
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    gather_config: GatherConfig,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GatherConfig {
    #[serde(default)]
    data_policy: Vec<PolicyOption>,
    #[serde(default)]
    gatherers: Gatherers,
}

#[derive(Deserialize, PartialEq)]
enum PolicyOption {
    ObfuscateNetworking,
    WorkloadNames,
}

#[derive(Default, Deserialize)]
struct Gatherers {
    #[serde(default)]
    mode: Mode,
    #[serde(default)]
    custom: Custom,
}

#[derive(Default, Deserialize)]
enum Mode {
    #[default]
    All,
    None,
    Custom,
}

#[derive(Default, Deserialize)]
struct Custom {
    #[serde(default)]
    configs: Vec<GathererConfig>,
}

fn spec(configuration: Configuration) -> Result<Option<DataGatherSpec>, ConfigError> {
    let GatherConfig { data_policy, gatherers } = configuration.spec.gather_config;
    if data_policy.contains(&PolicyOption::WorkloadNames) {
        return Err(ConfigError::WorkloadNames);
    }
    let gatherers_config = match gatherers.mode {
        Mode::None => return Ok(None),
        Mode::All => Vec::new(),
        Mode::Custom => gatherers.custom.configs,
    };
    let hides = data_policy.contains(&PolicyOption::ObfuscateNetworking);
    let data_policy = if hides { DataPolicy::ObfuscateNetworking } else { DataPolicy::Unset };
    Ok(Some(DataGatherSpec { data_policy, gatherers_config, gatherers: Vec::new() }))
}
