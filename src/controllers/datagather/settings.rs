//! Defines the settings of data gathering, with their defaults.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::controllers::kit::clock::Clock;
use crate::gather::Agents;
use crate::gather::collect::default_bound;
use crate::gather::obfuscate::Network;
use crate::gather::store::{ArchiveStore, Readers, StoreError};
use crate::gather::tunnel::{Proxies, Reach, TransportSetupError};
use crate::gather::upload::{Outlet, Pacing, Template, VersionTemplate};

#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder of archives, created if it is missing.
    pub archive_dir: PathBuf,
    /// Who may read the archives.
    pub archive_readers: Readers,
    /// How many of the newest archives are kept after a run.
    pub keep_archives: usize,
    /// Upload settings; without them archives are only stored, and the condition `DataUploaded` says so.
    pub upload: Option<UploadSettings>,
    /// Networks that uploads and proxies may use in addition to public addresses, whoever configured them.
    pub allow_uploads_to: Vec<Reach>,
    /// The proxies of this process, for values that the cluster does not set.
    pub proxies: Proxies,
    /// A PEM file of CAs to trust for TLS proxies, in addition to the system's.
    pub proxy_ca: Option<PathBuf>,
    /// The cluster's id, for clusters that do not provide one.
    pub cluster_id: Option<String>,
    pub obfuscation: ObfuscationSettings,
    /// The URL of the remote configuration, which is requested with the upload token.
    pub remote: Option<VersionTemplate>,
    /// The version of the platform, if the environment sets it; otherwise the cluster is queried.
    pub release: Option<String>,
    /// The agents on nodes that report what runs in containers, if they are queried.
    pub agents: Option<Agents>,
    /// The number of gatherers that run at a time.
    pub gatherer_concurrency: NonZeroUsize,
    /// Namespaces whose contents may be read: those with this prefix; all if it is empty.
    pub namespace_prefix: String,
    /// The namespace whose ConfigMaps are the cluster's configuration.
    pub config_namespace: String,
    /// The namespace of the controller's own objects: Jobs, and the Secret with obfuscated addresses.
    pub namespace: String,
    pub runner: RunnerKind,
    /// Whether objects of the cluster override these settings. A gathering Job gets their values as flags
    /// instead.
    pub follow_cluster: bool,
    /// The interval of periodic gatherings; without it there are none, and those of other programs are ignored.
    pub gather_every: Option<Duration>,
    /// The age at which DataGathers and their Jobs are deleted; without it they stay.
    pub prune_after: Option<Duration>,
    pub clock: Clock,
}

impl Settings {
    pub fn new(archive_dir: impl Into<PathBuf>) -> Self {
        Self {
            archive_dir: archive_dir.into(),
            archive_readers: Readers::default(),
            keep_archives: 5,
            upload: None,
            allow_uploads_to: Vec::new(),
            proxies: Proxies::default(),
            proxy_ca: None,
            cluster_id: None,
            obfuscation: ObfuscationSettings::default(),
            remote: None,
            release: None,
            agents: None,
            gatherer_concurrency: default_bound(),
            namespace_prefix: "kube-".to_owned(),
            config_namespace: "kube-system".to_owned(),
            namespace: "openshift-insights".to_owned(),
            runner: RunnerKind::InProcess,
            follow_cluster: true,
            gather_every: None,
            prune_after: None,
            clock: Clock::default(),
        }
    }

    /// Creates the transport for uploads, with `ca` for the service.
    pub(super) fn outlet(&self, ca: Option<&Path>) -> Result<Outlet, TransportSetupError> {
        Outlet::new(ca, self.proxy_ca.as_deref(), &self.allow_uploads_to)
    }

    /// Opens the folder of archives.
    pub(super) fn archives(&self) -> Result<ArchiveStore, StoreError> {
        ArchiveStore::open_for(&self.archive_dir, self.archive_readers)
    }
}

/// The default interval of gatherings.
pub(super) const INTERVAL: Duration = Duration::from_hours(2);

/// The default base URL of the page that explains a recommendation.
pub(super) const ADVISOR: &str = "https://console.redhat.com/openshift/insights/advisor/clusters";

#[derive(Clone, Debug)]
pub struct UploadSettings {
    /// The URL that archives are uploaded to; https, or http on loopback.
    pub url: String,
    /// The base URL of the results API; by default on the upload host.
    pub results_url: Option<String>,
    /// The base URL of the page that explains a recommendation.
    pub advisor_url: String,
    pub token: TokenSettings,
    /// A PEM file of CAs to trust in addition to the system's.
    pub ca: Option<PathBuf>,
    /// The URL of the status of an upload; by default that of the results API.
    pub status: Option<Template>,
    pub pacing: Pacing,
}

impl UploadSettings {
    pub fn new(url: impl Into<String>, token: TokenSettings) -> Self {
        Self {
            url: url.into(),
            results_url: None,
            advisor_url: ADVISOR.to_owned(),
            token,
            ca: None,
            status: None,
            pacing: Pacing::default(),
        }
    }
}

#[derive(Clone, Debug)]
pub enum TokenSettings {
    File(PathBuf),
    /// The pull secret of an OpenShift cluster.
    PullSecret,
    Secret {
        namespace: String,
        name: String,
        key: String,
    },
}

#[derive(Clone, Debug, Default)]
pub struct ObfuscationSettings {
    /// Whether to obfuscate regardless of a DataGather's `dataPolicy`.
    pub always: bool,
    /// Networks in addition to those that the cluster reports.
    pub networks: Vec<Network>,
    pub base_domain: Option<String>,
    pub api_host: Option<String>,
}

/// How gatherings are run: in this process or in Jobs.
#[derive(Clone, Debug)]
pub enum RunnerKind {
    /// A supervised task of this process.
    InProcess,
    /// A Job whose container runs the gather command.
    Job(JobSettings),
}

/// The settings of gathering Jobs that depend on the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSettings {
    pub image: String,
    pub service_account: String,
    /// The PersistentVolumeClaim for archives; an emptyDir if there is none.
    pub claim: Option<String>,
    /// The mount path of the volume for archives.
    pub archive_path: String,
    /// Arguments after `gather`: the flags of this process that affect a gathering.
    pub args: Vec<String>,
    /// Environment variables of this process that affect a gathering. Those of proxies are in a Secret.
    pub environment: Vec<(String, String)>,
    /// The priority class, which must exist.
    pub priority_class: Option<String>,
}

impl JobSettings {
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            service_account: "gather".to_owned(),
            claim: None,
            archive_path: "/var/lib/insights-operator".to_owned(),
            args: Vec::new(),
            environment: Vec::new(),
            priority_class: None,
        }
    }
}
