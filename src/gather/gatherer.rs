//! Defines the parts of a gatherer: a row of the table in [`super::gatherers`], the function that collects, and its context.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;

use super::failure::Failure;
use super::record::Record;
use super::recorder::Recorder;
use super::remote::Remote;

/// One gatherer of the table. `id` is `<group>/<function>`, the name used in `gatherersConfig` and in status rows.
pub struct Gatherer {
    pub id: &'static str,
    /// What the records contain, in one line for people.
    pub collects: &'static str,
    /// The path of the records in the archive.
    pub path: &'static str,
    pub run: Run,
}

/// How a gatherer gets its input.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// The gatherer sends its own requests.
    Alone(fn(Context) -> BoxFuture<'static, Result<(), Failure>>),
    /// The gatherer sees a list of the API server object by object. The list is read once for all gatherers that need it.
    Each(Shared, Begin),
}

/// Prepares a gatherer before the list is read.
pub type Begin = fn(Context) -> BoxFuture<'static, Result<Box<dyn Look>, Failure>>;

/// A list that several gatherers share.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shared {
    /// The Pods of all namespaces.
    Pods,
    ClusterOperators,
}

/// Processes the objects of a list one by one. Implementations keep only the parts that they record, never whole lists.
pub trait Look: Send {
    /// # Errors
    /// [`Failure`] ends this gatherer; others that read the same list continue.
    fn at<'l>(&'l mut self, object: &'l Value) -> BoxFuture<'l, Result<(), Failure>>;

    /// Called after the last object of the list.
    ///
    /// # Errors
    /// [`Failure`] is reported as the outcome of the gatherer.
    fn end(self: Box<Self>) -> BoxFuture<'static, Result<(), Failure>>;
}

impl std::fmt::Debug for Gatherer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gatherer").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The context of every gatherer: a client, the settings of this run, and the recorder.
#[derive(Clone)]
pub struct Context {
    pub client: Client,
    /// Namespaces whose contents may be read: those whose name has this prefix; all if it is empty.
    pub namespace_prefix: String,
    /// The namespace whose ConfigMaps are the cluster's configuration.
    pub config_namespace: String,
    /// The capture time of all records of this run.
    pub now: Timestamp,
    /// The time between two gatherings. Older events are in an earlier archive.
    pub interval: Duration,
    /// The remote configuration, which selects log lines to gather.
    pub remote: Arc<Remote>,
    /// The agents that inspect running containers; None if containers are not inspected.
    pub agents: Option<Agents>,
    /// Receives the records.
    pub recorder: Recorder,
}

/// The agents on nodes that inspect containers: Pods with the label `app.kubernetes.io/name=insights-runtime-extractor`.
#[derive(Clone, Debug)]
pub struct Agents {
    /// The namespace of the Pods, and of the ConfigMap with their certificate authority.
    pub namespace: String,
    /// The port of each Pod.
    pub port: u16,
    /// The file with this process' service account token, by which the agents authenticate it.
    pub token: PathBuf,
}

impl Agents {
    /// Creates the settings for agents in `namespace`, on their default port.
    pub fn of(namespace: impl Into<String>, token: impl Into<PathBuf>) -> Self {
        /// The port of the authenticating proxy of each agent.
        const PORT: u16 = 8443;
        Self { namespace: namespace.into(), port: PORT, token: token.into() }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context").field("namespace_prefix", &self.namespace_prefix).finish_non_exhaustive()
    }
}

impl Context {
    pub fn reads_namespace(&self, namespace: &str) -> bool {
        namespace.starts_with(&self.namespace_prefix)
    }

    /// Records a Kubernetes object or another JSON document at `path` of the archive.
    ///
    /// # Errors
    /// [`Failure::Disk`] when it cannot be written.
    pub async fn json(&self, path: impl Into<String> + Send, document: Value) -> Result<(), Failure> {
        self.recorder.keep(Record::json(path, document, self.now)).await
    }

    /// Records a text unchanged at `path` of the archive.
    ///
    /// # Errors
    /// As [`Self::json`].
    pub async fn raw(
        &self,
        path: impl Into<String> + Send,
        text: impl Into<String> + Send,
    ) -> Result<(), Failure> {
        self.recorder.keep(Record::raw(path, text, self.now)).await
    }
}
