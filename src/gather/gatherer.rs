//! The parts of a gatherer: a row of the table in [`super::gatherers`], the function that collects, and the context it gets.

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
    /// One line for people: what the records hold.
    pub collects: &'static str,
    /// Where the records lie in the archive.
    pub path: &'static str,
    pub run: Run,
}

/// Where a gatherer gets its input.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// It sends its own requests.
    Alone(fn(Context) -> BoxFuture<'static, Result<(), Failure>>),
    /// A list from the API server, one object at a time. The list is read once for all gatherers that need it.
    Each(Shared, Begin),
}

/// Prepares a gatherer before the list is read.
pub type Begin = fn(Context) -> BoxFuture<'static, Result<Box<dyn Look>, Failure>>;

/// A list that several gatherers read together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shared {
    /// Of all namespaces.
    Pods,
    ClusterOperators,
}

/// Processes the objects of a list one by one. Implementations keep only the parts that they record, never whole lists.
pub trait Look: Send {
    /// # Errors
    /// [`Failure`] ends this gatherer; others that read the same list go on.
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

/// What every gatherer gets: a client, the settings of this run, and the recorder.
#[derive(Clone)]
pub struct Context {
    pub client: Client,
    /// Namespaces whose content may be read: those that start with this prefix; an empty prefix means all.
    pub namespace_prefix: String,
    /// Namespace whose ConfigMaps are the cluster's configuration.
    pub config_namespace: String,
    /// Capture time of every record of this run.
    pub now: Timestamp,
    /// Time between two gatherings. Older events belong to an earlier archive.
    pub interval: Duration,
    /// The remote configuration: which lines of logs are gathered as well.
    pub remote: Arc<Remote>,
    /// The agents that inspect running containers; None where there are none, and containers are not inspected.
    pub agents: Option<Agents>,
    /// Where records go.
    pub recorder: Recorder,
}

/// The agents on nodes that inspect containers: Pods with the label `app.kubernetes.io/name=insights-runtime-extractor`.
#[derive(Clone, Debug)]
pub struct Agents {
    /// Namespace of the Pods, and of the ConfigMap with their certificate authority.
    pub namespace: String,
    /// Port on the address of each Pod.
    pub port: u16,
    /// File with the token of our service account, which they authenticate us by.
    pub token: PathBuf,
}

impl Agents {
    /// The agents in `namespace`, on their default port.
    pub fn of(namespace: impl Into<String>, token: impl Into<PathBuf>) -> Self {
        /// Port of the authenticating proxy in front of each agent.
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

    /// Records text unchanged at `path` of the archive.
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
