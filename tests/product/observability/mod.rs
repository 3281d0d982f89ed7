//! ObservabilityAddon: one test for each row of the fact sheet's behaviours, named after it.

mod boot;
mod hub;

use std::sync::Arc;

use admit::controllers::kit::controller::Surroundings;
use admit::controllers::kit::events::Events;
use admit::controllers::kit::operator::Says;
use admit::controllers::observability::{Settings, run};
use admit::telemetry::{ControllerMetrics, Readiness};
use kube::Client;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const SPOKE: &str = "open-cluster-management-addon-observability";
const HUB: &str = "cluster1";

/// A keeper that runs.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    fn start(client: Client, settings: Settings) -> Self {
        let around = Surroundings {
            events: Events::new(client.clone(), "admit-observability"),
            metrics: Arc::new(ControllerMetrics::default()),
            readiness: Readiness::default(),
            says: Says::default(),
        };
        let stop = CancellationToken::new();
        Self { task: tokio::spawn(run(client, settings, around, stop.clone())), stop }
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
