//! Reads the settings of periodic gatherings from the InsightsDataGather `cluster` (config.openshift.io/v1, v1alpha2
//! or v1alpha1, whichever is served), as a DataGather's spec. The storage of archives is not read from it: a
//! command-line flag sets that.

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use serde::Deserialize;

use super::crd::{DataGatherSpec, DataPolicy, GathererConfig, GathererState, Storage};
use crate::telemetry::with_causes;

pub(super) const NAME: &str = "cluster";
pub(super) const KIND: &str = "InsightsDataGather";
/// The versions, newest first. All have the same object.
pub(super) const VERSIONS: [&str; 3] = ["v1", "v1alpha2", "v1alpha1"];

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum DefaultsError {
    #[error("cannot read the InsightsDataGather `{NAME}`: {}", with_causes(.0))]
    Api(#[from] Box<kube::Error>),
    #[error("the InsightsDataGather `{NAME}` cannot be understood: {0}")]
    Undecodable(#[from] serde_json::Error),
    #[error("the InsightsDataGather `{NAME}` asks to hide names of workloads, which is not supported")]
    WorkloadNames,
}

/// Returns the spec of a periodic gathering; None if periodic gathering is disabled. If there is no such object or kind, all
/// is default.
///
/// # Errors
/// [`DefaultsError`]: nothing is gathered then, because the configuration may forbid it.
pub(super) async fn read(client: &Client) -> Result<Option<DataGatherSpec>, DefaultsError> {
    for version in VERSIONS {
        let configurations: Api<DynamicObject> = Api::all_with(client.clone(), &resource(version));
        match configurations.get(NAME).await {
            Ok(object) => return spec(serde_json::from_value(object.data)?),
            // Servers without the kind answer 404 too, without a Status; another version may be served.
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(Box::new(error).into()),
        }
    }
    Ok(Some(DataGatherSpec::default()))
}

/// Returns the kind in `version`.
pub(super) fn resource(version: &str) -> ApiResource {
    let kind = GroupVersionKind::gvk("config.openshift.io", version, KIND);
    ApiResource::from_gvk_with_plural(&kind, "insightsdatagathers")
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
    data_policy: Policies,
    #[serde(default)]
    gatherers: Choices,
    /// A field of v1alpha1.
    #[serde(default)]
    disabled_gatherers: Vec<String>,
    #[serde(default)]
    storage: Option<Storage>,
}

/// A list, or the single word of v1alpha1.
#[derive(Deserialize)]
#[serde(untagged)]
enum Policies {
    List(Vec<PolicyOption>),
    Word(DataPolicy),
}

impl Default for Policies {
    fn default() -> Self {
        Self::Word(DataPolicy::Unset)
    }
}

/// A mode, or the plain list of v1alpha1.
#[derive(Deserialize)]
#[serde(untagged)]
enum Choices {
    Mode(Gatherers),
    List(Vec<GathererConfig>),
}

impl Default for Choices {
    fn default() -> Self {
        Self::List(Vec::new())
    }
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

/// The entry that disables all gatherers.
const ALL: &str = "all";

fn spec(configuration: Configuration) -> Result<Option<DataGatherSpec>, DefaultsError> {
    let GatherConfig { data_policy, gatherers, disabled_gatherers, storage } =
        configuration.spec.gather_config;
    let data_policy = match data_policy {
        Policies::Word(policy) => policy,
        Policies::List(options) if options.contains(&PolicyOption::WorkloadNames) => {
            return Err(DefaultsError::WorkloadNames);
        }
        Policies::List(options) if options.contains(&PolicyOption::ObfuscateNetworking) => {
            DataPolicy::ObfuscateNetworking
        }
        Policies::List(_) => DataPolicy::Unset,
    };
    let mut gatherers_config = match gatherers {
        Choices::List(configs) => configs,
        Choices::Mode(Gatherers { mode: Mode::None, custom: _ }) => return Ok(None),
        Choices::Mode(Gatherers { mode: Mode::All, custom: _ }) => Vec::new(),
        Choices::Mode(Gatherers { mode: Mode::Custom, custom }) => custom.configs,
    };
    if disabled_gatherers.iter().any(|name| name.eq_ignore_ascii_case(ALL)) {
        return Ok(None);
    }
    let disabled = |name| GathererConfig { name, state: GathererState::Disabled };
    gatherers_config.extend(disabled_gatherers.into_iter().map(disabled));
    Ok(Some(DataGatherSpec { data_policy, gatherers_config, gatherers: Vec::new(), storage }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(gather_config: &serde_json::Value) -> Result<Option<DataGatherSpec>, DefaultsError> {
        spec(serde_json::from_value(json!({"spec": {"gatherConfig": gather_config}}))?)
    }

    #[test]
    fn every_version_is_read() {
        let wanted = DataGatherSpec {
            data_policy: DataPolicy::ObfuscateNetworking,
            gatherers_config: vec![GathererConfig { name: "a/b".to_owned(), state: GathererState::Disabled }],
            ..DataGatherSpec::default()
        };
        let configs = json!([{"name": "a/b", "state": "Disabled"}]);
        for gather_config in [
            json!({"dataPolicy": ["ObfuscateNetworking"], "gatherers": {"mode": "Custom", "custom": {"configs": configs}}}),
            json!({"dataPolicy": "ObfuscateNetworking", "disabledGatherers": ["a/b"]}),
            json!({"dataPolicy": "ObfuscateNetworking", "gatherers": configs}),
        ] {
            assert_eq!(read(&gather_config).unwrap().as_ref(), Some(&wanted), "{gather_config}");
        }
        for off in
            [json!({"gatherers": {"mode": "None"}}), json!({"dataPolicy": "", "disabledGatherers": ["all"]})]
        {
            assert_eq!(read(&off).unwrap(), None, "{off}");
        }
        assert_eq!(read(&json!({})).unwrap(), Some(DataGatherSpec::default()));
        let storage = json!({"type": "PersistentVolume", "persistentVolume": {"claim": {"name": "c"}}});
        let kept = read(&json!({"storage": storage})).unwrap().unwrap().storage.unwrap();
        assert_eq!(serde_json::to_value(kept).unwrap(), storage);
        for odd in [
            json!({"dataPolicy": "Plain"}),
            json!({"gatherers": {"mode": "Some"}}),
            json!({"dataPolicy": ["WorkloadNames"]}),
        ] {
            assert!(read(&odd).is_err(), "{odd}");
        }
    }
}
