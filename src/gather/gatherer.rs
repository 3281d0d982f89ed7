//! What a gatherer is: a row of the table in [`super::gatherers`], a function that puts records where its context says.

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

/// How a gatherer reads.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// By itself.
    Alone(fn(Context) -> BoxFuture<'static, Result<(), Failure>>),
    /// One object of a list after the other. The list is read once for all that look at it.
    Each(Shared, Begin),
}

/// What a gatherer does before it looks at a list.
pub type Begin = fn(Context) -> BoxFuture<'static, Result<Box<dyn Look>, Failure>>;

/// A list that several gatherers look at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shared {
    /// Of all namespaces.
    Pods,
    ClusterOperators,
}

/// What a gatherer makes of the objects of a list: it is shown one after the other, and keeps nothing of them but what it is after.
pub trait Look: Send {
    /// # Errors
    /// [`Failure`] ends the gatherer, and none of those that look at the same list.
    fn at<'l>(&'l mut self, object: &'l Value) -> BoxFuture<'l, Result<(), Failure>>;

    /// The list was read to its end.
    ///
    /// # Errors
    /// [`Failure`] as the last thing that is told of the gatherer.
    fn end(self: Box<Self>) -> BoxFuture<'static, Result<(), Failure>>;
}

impl std::fmt::Debug for Gatherer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gatherer").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What a gatherer is given.
#[derive(Clone)]
pub struct Context {
    pub client: Client,
    /// Namespaces whose content may be read: those that start with this prefix; an empty prefix means all.
    pub namespace_prefix: String,
    /// Namespace whose ConfigMaps are the cluster's configuration.
    pub config_namespace: String,
    /// Capture time of every record of this run.
    pub now: Timestamp,
    /// Time between gatherings: what happened before it is in another archive.
    pub interval: Duration,
    /// What is gathered besides.
    pub remote: Arc<Remote>,
    /// Who tells what runs in containers; without them nobody is asked.
    pub agents: Option<Agents>,
    /// Where records go.
    pub recorder: Recorder,
}

/// The agents on nodes that look into containers: Pods with the label `app.kubernetes.io/name=insights-runtime-extractor`.
#[derive(Clone, Debug)]
pub struct Agents {
    /// Where they run, and the ConfigMap with their authority.
    pub namespace: String,
    /// Where they listen, on the address of their Pod.
    pub port: u16,
    /// File of the token of our service account, by which they know us.
    pub token: PathBuf,
}

impl Agents {
    /// Those of `namespace`, where they are as a cluster has them.
    pub fn of(namespace: impl Into<String>, token: impl Into<PathBuf>) -> Self {
        /// Of the proxy in front of each, which checks who asks.
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

    /// Keeps a Kubernetes object or another JSON document at `path`.
    ///
    /// # Errors
    /// [`Failure::Disk`] when it cannot be written.
    pub async fn json(&self, path: impl Into<String> + Send, document: Value) -> Result<(), Failure> {
        self.recorder.keep(Record::json(path, document, self.now)).await
    }

    /// Keeps text as it is at `path`.
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
