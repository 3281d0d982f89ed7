//! The settings of data gathering, and their defaults.

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
    /// Folder of archives; made where missing.
    pub archive_dir: PathBuf,
    /// Who may read the archives.
    pub archive_readers: Readers,
    /// Archives beyond the newest so many are removed after a run.
    pub keep_archives: usize,
    /// Upload settings; without them archives stay where they are, and `DataUploaded` says so.
    pub upload: Option<UploadSettings>,
    /// Networks beside public addresses that uploads and proxies may be at, whoever configured them.
    pub allow_uploads_to: Vec<Reach>,
    /// The proxies of this process, for values that the cluster does not set.
    pub proxies: Proxies,
    /// PEM file of CAs to trust for proxies under TLS besides the system's.
    pub proxy_ca: Option<PathBuf>,
    /// The cluster's id, for clusters that do not provide one.
    pub cluster_id: Option<String>,
    pub obfuscation: ObfuscationSettings,
    /// The URL of the remote configuration, which is asked for with the upload token.
    pub remote: Option<VersionTemplate>,
    /// The version of the platform, if the environment sets it; else the cluster is asked.
    pub release: Option<String>,
    /// The agents on nodes that report what runs in containers, if they are to be asked.
    pub agents: Option<Agents>,
    /// Gatherers of one run at a time.
    pub gatherer_concurrency: NonZeroUsize,
    /// Namespaces whose content may be read: those with this prefix; empty means all.
    pub namespace_prefix: String,
    /// Namespace whose ConfigMaps are the cluster's configuration.
    pub config_namespace: String,
    /// Namespace of our own objects: the Secret of obfuscated addresses, Jobs.
    pub namespace: String,
    pub runner: RunnerKind,
    /// Whether objects of the cluster take precedence over these settings. A gathering Job is given their values
    /// instead.
    pub follow_cluster: bool,
    /// Time between gatherings of our own; without it there are none, and those of others are left alone.
    pub gather_every: Option<Duration>,
    /// Age at which DataGathers and their Jobs are deleted; without it they stay.
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

    /// What uploads trust and reach, `ca` being that of the service.
    pub(super) fn outlet(&self, ca: Option<&Path>) -> Result<Outlet, TransportSetupError> {
        Outlet::new(ca, self.proxy_ca.as_deref(), &self.allow_uploads_to)
    }

    /// The folder of archives, opened.
    pub(super) fn archives(&self) -> Result<ArchiveStore, StoreError> {
        ArchiveStore::open_for(&self.archive_dir, self.archive_readers)
    }
}

/// Time between gatherings where nobody says it.
pub(super) const INTERVAL: Duration = Duration::from_hours(2);

/// Base of the page that explains a recommendation of a cluster, where nothing else is said.
pub(super) const ADVISOR: &str = "https://console.redhat.com/openshift/insights/advisor/clusters";

#[derive(Clone, Debug)]
pub struct UploadSettings {
    /// The URL that archives are uploaded to; https, or http on loopback.
    pub url: String,
    /// Base of the results API; on the upload host where absent.
    pub results_url: Option<String>,
    /// Base of the page that explains a recommendation of a cluster.
    pub advisor_url: String,
    pub token: TokenSettings,
    /// PEM file of CAs to trust besides the system's.
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
    /// Whether to obfuscate whatever a DataGather's `dataPolicy` says.
    pub always: bool,
    /// Networks beside those that the cluster reports.
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

/// The facts of a gathering Job that differ between clusters.
#[derive(Clone, Debug, PartialEq)]
pub struct JobSettings {
    pub image: String,
    pub service_account: String,
    /// PersistentVolumeClaim for archives; an emptyDir where absent.
    pub claim: Option<String>,
    /// The mount path of the volume for archives.
    pub archive_path: String,
    /// Arguments after `gather`: flags of this process that a gathering has to know.
    pub args: Vec<String>,
    /// Variables of this process that a gathering has to know. Those of proxies it is handed by a Secret.
    pub environment: Vec<(String, String)>,
    /// Priority class, which must exist.
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
