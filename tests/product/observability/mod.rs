//! ObservabilityAddon: one test for each row of the fact sheet's behaviours, named after it.

mod aggregates;
mod boot;
mod bugs;
mod canaries;
mod endpoint;
mod faults;
mod hub;
mod hub_server;
mod leaders;
mod link;
mod logins;
mod place;
mod property;
mod quiet;
mod released;
mod roles;
mod rows;
mod transitions;

use std::sync::Arc;

use admit::controllers::kit::controller::Surroundings;
use admit::controllers::kit::events::Events;
use admit::controllers::kit::operator::Says;
use admit::controllers::observability::counts::Counts;
use admit::controllers::observability::{Settings, run};
use admit::telemetry::{ControllerMetrics, Readiness};
use kube::Client;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::cluster::PATIENCE;

const SPOKE: &str = "open-cluster-management-addon-observability";
const HUB: &str = "cluster1";

/// A keeper that runs.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    metrics: Arc<ControllerMetrics>,
}

impl Running {
    fn start(client: Client, settings: Settings) -> Self {
        let metrics = Arc::new(ControllerMetrics::default());
        let counts = Counts::new(settings.vocabulary);
        let mut registry = Registry::default();
        counts.register(&mut registry);
        metrics.include(registry);
        let around = Surroundings {
            events: Events::new(client.clone(), "admit-observability"),
            metrics: Arc::clone(&metrics),
            readiness: Readiness::default(),
            says: Says::default(),
        };
        let stop = CancellationToken::new();
        Self { task: tokio::spawn(run(client, settings, counts, around, stop.clone())), stop, metrics }
    }

    /// The number behind a line of the metrics; none where there is no such line.
    fn counted(&self, line: &str) -> Option<u64> {
        let text = self.metrics.text(&Readiness::default());
        text.lines().find_map(|it| it.strip_prefix(line)?.trim().parse().ok())
    }

    /// Waits until the number is as wanted.
    async fn until_counted(&self, line: &str, wanted: impl Fn(u64) -> bool) {
        let counted = async {
            while !self.counted(line).is_some_and(&wanted) {
                tokio::task::yield_now().await;
            }
        };
        let counted = tokio::time::timeout(PATIENCE, counted).await;
        counted.unwrap_or_else(|_| panic!("{line}: {}", self.metrics.text(&Readiness::default())));
    }

    async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

fn addon(namespace: &str) -> Value {
    json!({
        "apiVersion": "observability.open-cluster-management.io/v1beta1", "kind": "ObservabilityAddon",
        "metadata": {"name": "observability-addon", "namespace": namespace}, "spec": {},
    })
}

/// The standard conditions that are True, with their reasons.
fn told(object: &Value) -> Vec<String> {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let standard = ["Available", "Degraded", "Progressing", "Disabled", "NotSupported"];
    let is_told = |condition: &&Value| {
        condition["status"] == "True" && standard.iter().any(|type_| condition["type"] == *type_)
    };
    let shown = |condition: &Value| {
        format!("{}/{}", condition["type"].as_str().unwrap(), condition["reason"].as_str().unwrap())
    };
    conditions.iter().filter(is_told).map(shown).collect()
}
