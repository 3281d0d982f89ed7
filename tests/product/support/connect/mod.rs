//! A double of Kafka Connect, as far as its REST interface and a JDBC sink go, written from what Kafka's public sources and the REST
//! interface's documentation say: a group of workers of which each answers from what it has read of the topic of configurations, one
//! that leads and writes it, rebalances after each change, tasks that fail with a trace and stay so, target states, validation.
//!
//! ```text
//!  PUT …/config ─► any worker ─► leader ─► topic of configurations ─► each worker, later
//!                                              └─► rebalance ─► connectors and tasks ─► statuses
//!  topic file ─► partitions ─► tasks: transforms ─► upserts and deletions in PostgreSQL, late, twice, out of order between partitions
//! ```
//!
//! Nothing in it knows of pipelines. Two Python clients that others wrote run against it (`cyndi/clients.rs`).

mod config;
mod group;
mod rest;
mod sink;
mod topic;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::soak::Random;

pub(crate) use group::Fault;
use group::{Group, Shared};

/// The plugin that there is.
pub(crate) const JDBC_SINK: &str = "io.confluent.connect.jdbc.JdbcSinkConnector";

/// How a group of workers behaves.
#[derive(Clone, Debug)]
pub(crate) struct Manner {
    /// The first one leads.
    pub(crate) workers: usize,
    /// How long a rebalance takes.
    pub(crate) rebalance: Duration,
    /// How long workers that do not lead take to read of a change.
    pub(crate) behind: Duration,
    /// How long records take to reach a task.
    pub(crate) lag: Duration,
    /// Of the workers: what `${env:…}` stands for.
    pub(crate) environment: BTreeMap<String, String>,
    /// Of what is delivered twice, and which partition comes first.
    pub(crate) seed: u64,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            workers: 2,
            rebalance: Duration::from_millis(20),
            behind: Duration::from_millis(30),
            lag: Duration::from_millis(10),
            environment: BTreeMap::new(),
            seed: 1,
        }
    }
}

/// A running group. It ends with the value.
pub(crate) struct Connect {
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    parts: Vec<JoinHandle<()>>,
    _topics: tempfile::TempDir,
}

impl Drop for Connect {
    fn drop(&mut self) {
        self.parts.iter().for_each(JoinHandle::abort);
        self.shared.group.lock().unwrap().end();
    }
}

impl Connect {
    pub(crate) async fn start(manner: Manner) -> Self {
        let topics = tempfile::tempdir().unwrap();
        let mut listeners = Vec::new();
        for _ in 0..manner.workers {
            listeners.push(TcpListener::bind("127.0.0.1:0").await.unwrap());
        }
        let addresses: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap()).collect();
        let shared = Shared::new(manner, addresses.clone(), topics.path().to_owned());
        let mut parts = vec![tokio::spawn(group::keep(Arc::clone(&shared)))];
        for (worker, listener) in listeners.into_iter().enumerate() {
            let router = rest::router(Arc::clone(&shared), worker);
            parts.push(tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }));
        }
        Self { shared, addresses, parts, _topics: topics }
    }

    /// Where a worker answers; the first one leads.
    pub(crate) fn url(&self, worker: usize) -> String {
        format!("http://{}", self.addresses[worker])
    }

    pub(crate) fn workers(&self) -> usize {
        self.addresses.len()
    }

    /// Appends a host to a topic, as the inventory does when it is created or changed.
    pub(crate) fn publish(&self, topic: &str, id: u32) {
        topic::created(&self.topic(topic), id);
    }

    /// The same when a host is deleted.
    pub(crate) fn unpublish(&self, topic: &str, id: u32) {
        topic::deleted(&self.topic(topic), id);
    }

    fn topic(&self, name: &str) -> PathBuf {
        self.shared.topics.join(name)
    }

    /// Begins a rebalance that lasts until it is ended.
    pub(crate) fn hold_rebalance(&self, holds: bool) {
        self.group(|group| group.held = holds);
    }

    /// Answers everything so, until told otherwise.
    pub(crate) fn answer(&self, fault: Option<Fault>) {
        self.group(|group| group.fault = fault);
    }

    /// Lets in nobody who does not show this, as Kafka Connect's filter for Basic logins and proxies in front of it do.
    pub(crate) fn admit_only(&self, authorization: String) {
        self.group(|group| group.entry = Some(authorization));
    }

    /// Lets a task fail; each time that it is started again, as many times as are told.
    pub(crate) fn fail(&self, connector: &str, task: usize, times: usize) {
        self.group(|group| group.fail(connector, task, times));
    }

    /// Lets any of its tasks fail once, if it runs.
    pub(crate) fn fail_some(&self, connector: &str, random: &mut Random) {
        self.group(|group| {
            let count = group.task_count(connector);
            if count > 0 {
                group.fail(connector, random.below(count), 1);
            }
        });
    }

    /// Names of connectors, as the one that leads has them.
    pub(crate) fn connectors(&self) -> Vec<String> {
        self.group(|group| group.view(0).into_keys().collect())
    }

    /// The state of a connector; none before workers have begun with it.
    pub(crate) fn state(&self, connector: &str) -> Option<String> {
        let status = self.shared.status(connector)?;
        status["connector"]["state"].as_str().map(ToOwned::to_owned)
    }

    /// Whether a task of it has failed.
    pub(crate) fn has_failed(&self, connector: &str) -> bool {
        self.shared.status(connector).is_some_and(|status| status.to_string().contains("FAILED"))
    }

    /// The configuration of a connector.
    pub(crate) fn config(&self, connector: &str) -> Option<BTreeMap<String, String>> {
        self.group(|group| group.view(0).remove(connector).map(|known| known.config))
    }

    /// Changes a configuration behind the back of whoever made it; nothing removes the connector.
    pub(crate) fn reconfigure(&self, connector: &str, config: Option<BTreeMap<String, String>>) {
        self.group(|group| group.configure(connector, config));
    }

    /// First lines of the requests that were made.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.group(|group| group.asked.clone())
    }

    fn group<T>(&self, look: impl FnOnce(&mut Group) -> T) -> T {
        look(&mut self.shared.group.lock().unwrap())
    }
}
