//! What a gatherer is: a row of the table in [`super::gatherers`], a function from a context to records, and the
//! closed set of ways in which it can fail.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;

use super::record::Record;
use crate::telemetry::with_causes;

/// One gatherer of the table. `id` is `<group>/<function>`, the name used in `gatherersConfig` and in status rows.
pub struct Gatherer {
    pub id: &'static str,
    /// One line for people: what the records hold.
    pub collects: &'static str,
    /// Where the records lie in the archive.
    pub path: &'static str,
    pub run: fn(Context) -> BoxFuture<'static, Result<Yield, Failure>>,
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
}

/// What a gatherer found. `errors` are parts that could not be read while others could.
#[derive(Debug, Default)]
pub struct Yield {
    pub records: Vec<Record>,
    pub warnings: Vec<String>,
    pub errors: Vec<String>,
}

impl From<Vec<Record>> for Yield {
    fn from(records: Vec<Record>) -> Self {
        Self { records, ..Self::default() }
    }
}

/// Why a gatherer has nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("the server does not serve {0}")]
    MissingApi(String),
    #[error("cannot read {what}: {}", with_causes(source))]
    Api {
        what: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
}
