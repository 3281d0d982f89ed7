//! Defines `MustGather`, operator.openshift.io/v1alpha1, as Rust types: the fields of its first version, and those that later
//! ones add or replace. The schema that the API server enforces is `deploy/crds/mustgathers.yaml`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(Clone, CustomResource, Debug, Default, Deserialize, PartialEq, Serialize)]
#[kube(
    group = "operator.openshift.io",
    version = "v1alpha1",
    kind = "MustGather",
    plural = "mustgathers",
    namespaced,
    status = "MustGatherStatus",
    schema = "disabled",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct MustGatherSpec {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_ref: Option<Named>,
    /// The later name of `serviceAccountRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub additional_config: Option<AdditionalConfig>,
    /// The later name of `additionalConfig`, with more fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gather_spec: Option<GatherSpec>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_config: Option<ProxyConfig>,
    /// A string: an invalid duration must not prevent the whole list from being parsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must_gather_timeout: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain_resources_on_completion: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_target: Option<UploadTarget>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obfuscate: Option<Obfuscate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_stream_ref: Option<ImageStream>,
}

impl MustGatherSpec {
    /// Returns the service account of the Job, from either field.
    pub fn account(&self) -> &str {
        let name = self.service_account_name.as_deref().filter(|name| !name.is_empty());
        let older = self.service_account_ref.as_ref().map(|named| named.name.as_str());
        name.or(older.filter(|name| !name.is_empty())).unwrap_or("default")
    }

    /// Whether audit logs are requested, by either field.
    pub fn audit(&self) -> bool {
        let older = self.additional_config.as_ref().is_some_and(|config| config.audit);
        older || self.gather_spec.as_ref().is_some_and(|gather| gather.audit)
    }

    pub fn retains(&self) -> bool {
        self.retain_resources_on_completion.unwrap_or(false)
    }

    /// Returns the obfuscation, if it is enabled.
    pub fn obfuscation(&self) -> Option<&Obfuscate> {
        self.obfuscate.as_ref().filter(|obfuscate| obfuscate.enabled)
    }

    /// Returns the volume with an earlier collection, which is obfuscated instead of gathering.
    pub fn source(&self) -> Option<&PersistentVolume> {
        self.obfuscation().and_then(|obfuscate| obfuscate.source.as_ref())
    }

    /// Returns the persistent volume for the results, if any.
    pub fn volume(&self) -> Option<&PersistentVolume> {
        self.storage.as_ref().and_then(|storage| storage.persistent_volume.as_ref())
    }

    /// Returns the upload target.
    pub fn sftp(&self) -> Option<&Sftp> {
        self.upload_target.as_ref().and_then(|target| target.sftp.as_ref())
    }
}

impl MustGather {
    /// Whether it has ended, successfully or not.
    pub fn has_ended(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.completed)
    }
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Named {
    #[serde(default)]
    pub name: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct AdditionalConfig {
    #[serde(default)]
    pub audit: bool,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GatherSpec {
    #[serde(default)]
    pub audit: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_time: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ProxyConfig {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub http_proxy: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub https_proxy: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub no_proxy: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct UploadTarget {
    #[serde(rename = "type")]
    pub type_: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sftp: Option<Sftp>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sftp {
    #[serde(rename = "caseID")]
    pub case_id: String,
    #[serde(default = "default_host")]
    pub host: String,
    pub case_management_account_secret_ref: Named,
    #[serde(default)]
    pub internal_user: bool,
}

fn default_host() -> String {
    "sftp.access.redhat.com".to_owned()
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    #[serde(rename = "type")]
    pub type_: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume: Option<PersistentVolume>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PersistentVolume {
    pub claim: Named,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sub_path: String,
}

/// A gathering image, from an ImageStream.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ImageStream {
    pub name: String,
    pub tag: String,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Obfuscate {
    #[serde(default)]
    pub enabled: bool,
    /// The ConfigMap with the rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Named>,
    /// The later name of `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub obfuscation_config_ref: Option<Named>,
    /// A volume with an earlier collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<PersistentVolume>,
}

impl Obfuscate {
    /// Returns the ConfigMap, from either field.
    pub fn rules(&self) -> Option<&str> {
        let named = self.config.as_ref().or(self.obfuscation_config_ref.as_ref());
        named.map(|named| named.name.as_str()).filter(|name| !name.is_empty())
    }
}

/// All fields but `completed` are also written when they are null, so that a merge patch removes old values.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MustGatherStatus {
    #[serde(default)]
    pub status: Option<Phase>,
    #[serde(default)]
    pub last_update: Option<Time>,
    #[serde(default)]
    pub reason: Option<String>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
    #[serde(default)]
    pub completed: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Phase {
    /// Nothing, which the first version writes as an empty string.
    #[serde(rename = "")]
    None,
    Running,
    Completed,
    Failed,
}
