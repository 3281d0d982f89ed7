//! Defines the flags for data gathering, shared by the commands that run its controller.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use thiserror::Error;

use super::value_parsers::{label, name};
use crate::controllers::datagather::{ObfuscationSettings, Settings, TokenSettings, UploadSettings};
use crate::gather::Agents;
use crate::gather::obfuscate::Network;
use crate::gather::tunnel::{Proxies, Reach};
use crate::gather::upload::VersionTemplate;
use crate::localnode;

/// The path of a service account token in Pods.
const ACCOUNT_TOKEN: &str = "/var/run/secrets/kubernetes.io/serviceaccount/token";

/// The flags about data gathering.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Data gathering")]
pub(super) struct DataGatherArgs {
    /// Folder for archives [default: archives, within the state folder if there is one]
    #[arg(long, value_name = "DIR")]
    archive_dir: Option<PathBuf>,

    /// URL to upload archives to; without it they stay in the folder, and DataUploaded is False
    #[arg(long, value_name = "URL")]
    upload_url: Option<String>,

    /// File with the token for uploads [default: the one of the cluster's pull secret]
    #[arg(long, value_name = "FILE", requires = "upload_url")]
    upload_token_file: Option<PathBuf>,

    /// PEM file with CAs to trust for uploads, in addition to the system's
    #[arg(long, value_name = "FILE", requires = "upload_url")]
    upload_ca: Option<PathBuf>,

    /// PEM file with CAs to trust for proxies over TLS, in addition to the system's, in this process and in the Jobs
    #[arg(long, value_name = "FILE")]
    pub(super) proxy_ca: Option<PathBuf>,

    /// Non-public address or network that uploads, and the proxies for them, may connect to; repeatable
    #[arg(long, value_name = "CIDR")]
    allow_upload_to: Vec<Reach>,

    /// URL of the service that configures which further logs to gather, with %s for the cluster's version
    #[arg(long, value_name = "URL")]
    remote_configuration_url: Option<VersionTemplate>,

    /// Do not query the agents on nodes (insights-runtime-extractor) for what runs in containers
    #[arg(long)]
    no_runtime_info: bool,

    /// ID of the cluster [default: the one that the cluster reports, or else the UID of namespace kube-system]
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,

    /// Prefix of the names of namespaces whose content may be read; empty for all namespaces
    #[arg(long, value_name = "PREFIX", default_value = "kube-")]
    namespace_prefix: String,

    /// Namespace of the objects that a gathering writes, such as the table of obfuscated addresses
    #[arg(long, value_name = "NAMESPACE", default_value = "admit-system", value_parser = label)]
    pub(super) gathering_namespace: String,

    /// Obfuscate addresses and the base domain regardless of a DataGather's dataPolicy
    #[arg(long)]
    obfuscate_always: bool,

    /// Base domain to obfuscate, in addition to the one that the cluster reports
    #[arg(long, value_name = "NAME", value_parser = name)]
    base_domain: Option<String>,

    /// Host of the API server to obfuscate, in addition to the one that the cluster reports
    #[arg(long, value_name = "NAME", value_parser = name)]
    api_host: Option<String>,

    /// IPv4 network whose addresses are replaced by others of it, in addition to those that the cluster reports; repeatable
    #[arg(long, value_name = "CIDR")]
    cluster_network: Vec<Network>,
}

/// The flags about periodic work.
#[derive(Debug, Args)]
#[command(next_help_heading = "Data gathering")]
pub(super) struct RoundArgs {
    /// Minutes between periodic gatherings, or `never`
    ///
    /// The cluster's configuration may set another interval, and the InsightsDataGather `cluster` may restrict or disable
    /// periodic gatherings.
    #[arg(long, value_name = "MINUTES", default_value = "120", value_parser = minutes)]
    gather_every: Round,

    /// Hours after which DataGathers and their Jobs are deleted, or `never`
    #[arg(long, value_name = "HOURS", default_value = "24", value_parser = hours)]
    prune_after: Round,
}

impl RoundArgs {
    pub(super) fn apply(&self, settings: &mut Settings) {
        settings.gather_every = self.gather_every.0;
        settings.prune_after = self.prune_after.0;
    }
}

/// An interval, or never.
#[derive(Clone, Copy, Debug)]
struct Round(Option<Duration>);

/// Why a value is neither an interval nor `never`.
#[derive(Debug, Error)]
#[error("it is `never`, or a number from {} to {}", .0.start(), .0.end())]
struct RoundError(RangeInclusive<u64>);

fn minutes(text: &str) -> Result<Round, RoundError> {
    round(text, 10..=527_040, Duration::from_mins)
}

fn hours(text: &str) -> Result<Round, RoundError> {
    round(text, 1..=8_784, Duration::from_hours)
}

fn round(text: &str, range: RangeInclusive<u64>, unit: fn(u64) -> Duration) -> Result<Round, RoundError> {
    if text == "never" {
        return Ok(Round(None));
    }
    let count = text.parse().ok().filter(|count| range.contains(count));
    count.map(|count| Round(Some(unit(count)))).ok_or(RoundError(range))
}

impl DataGatherArgs {
    /// Returns the flags of a gathering Job with which it does what this process would do. The settings for uploads are passed by
    /// the controller.
    pub(super) fn of_job(&self) -> Vec<String> {
        let Self {
            archive_dir: _,
            upload_url: _,
            upload_token_file: _,
            upload_ca: _,
            proxy_ca: _,
            allow_upload_to,
            remote_configuration_url: _,
            no_runtime_info: _,
            cluster_id,
            namespace_prefix,
            gathering_namespace,
            obfuscate_always: _,
            base_domain,
            api_host,
            cluster_network,
        } = self;
        let mut flags = vec![
            format!("--namespace-prefix={namespace_prefix}"),
            format!("--gathering-namespace={gathering_namespace}"),
        ];
        flags.extend(allow_upload_to.iter().map(|reach| format!("--allow-upload-to={reach}")));
        flags.extend(cluster_id.iter().map(|id| format!("--cluster-id={id}")));
        flags.extend(base_domain.iter().map(|name| format!("--base-domain={name}")));
        flags.extend(api_host.iter().map(|name| format!("--api-host={name}")));
        flags.extend(cluster_network.iter().map(|network| format!("--cluster-network={network}")));
        flags
    }

    /// Converts the flags to settings; `archives` is the default folder of archives.
    pub(super) fn settings(&self, archives: &Path) -> Settings {
        let Self {
            archive_dir,
            upload_url,
            upload_token_file,
            upload_ca,
            proxy_ca,
            allow_upload_to,
            remote_configuration_url,
            no_runtime_info,
            cluster_id,
            namespace_prefix,
            gathering_namespace,
            obfuscate_always,
            base_domain,
            api_host,
            cluster_network,
        } = self;
        let mut settings = Settings::new(localnode::mounted(archive_dir.as_deref().unwrap_or(archives)));
        settings.cluster_id.clone_from(cluster_id);
        settings.namespace_prefix.clone_from(namespace_prefix);
        settings.namespace.clone_from(gathering_namespace);
        settings.obfuscation = ObfuscationSettings {
            always: *obfuscate_always,
            networks: cluster_network.clone(),
            base_domain: base_domain.clone(),
            api_host: api_host.clone(),
        };
        settings.remote.clone_from(remote_configuration_url);
        settings.release = std::env::var("RELEASE_VERSION").ok().filter(|version| !version.is_empty());
        settings.agents = (!no_runtime_info)
            .then(|| Agents::of(gathering_namespace.as_str(), localnode::mounted(Path::new(ACCOUNT_TOKEN))));
        settings.allow_uploads_to.clone_from(allow_upload_to);
        settings.proxies = Proxies::environment(|name| std::env::var(name).ok());
        settings.proxy_ca.clone_from(proxy_ca);
        settings.upload = upload_url.as_ref().map(|url| {
            let token = upload_token_file.clone().map_or(TokenSettings::PullSecret, TokenSettings::File);
            let mut upload = UploadSettings::new(url.clone(), token);
            upload.ca.clone_from(upload_ca);
            upload
        });
        settings
    }
}
