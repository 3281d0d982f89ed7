//! A payload folder, an API server, and a primer on both, under its own account.

use std::fs;
use std::time::Duration;

use admit::controllers::clusteroperator::crd::ClusterOperator;
use admit::controllers::clusteroperator::{Settings, member};
use admit::controllers::kit::clock::Clock;
use admit::controllers::kit::manager::{Manager, ManagerError};
use admit::controllers::kit::observe::Observed;
use admit_apiserver::{Identity, Server};
use axum::Router;
use k8s_openapi::api::events::v1::Event;
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::repository::root;
use crate::support::cluster::PATIENCE;

pub(super) struct Bench {
    pub(super) server: Server,
    pub(super) admin: Client,
    pub(super) payload: tempfile::TempDir,
}

pub(super) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
    observed: Observed,
}

impl Running {
    /// Waits for a line of the metrics.
    pub(super) async fn until_counted(&self, line: &str) {
        let counted = async {
            while !self.observed.text().lines().any(|it| it == line) {
                tokio::task::yield_now().await;
            }
        };
        let counted = tokio::time::timeout(PATIENCE, counted).await;
        counted.unwrap_or_else(|_| panic!("never `{line}`: {}", self.observed.text()));
    }

    pub(super) fn metrics(&self) -> String {
        self.observed.text()
    }

    pub(super) async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap();
    }
}

impl Bench {
    /// With the definition of ClusterOperators and the shipped roles.
    pub(super) async fn new() -> Self {
        let bench = Self::undefined().await;
        bench.define().await;
        bench
    }

    pub(super) async fn undefined() -> Self {
        let server = Server::builder().build().await.unwrap();
        let admin = Client::new(server.router(), "default");
        let bench = Self { server, admin, payload: tempfile::tempdir().unwrap() };
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "admit-system"}});
        bench.create(&namespace).await;
        for document in documents("deploy/rbac.yaml") {
            bench.create(&document).await;
        }
        bench
    }

    pub(super) async fn define(&self) {
        for document in documents("deploy/crds/clusteroperators.yaml") {
            self.create(&document).await;
        }
    }

    pub(super) async fn create(&self, document: &Value) {
        let object: DynamicObject = serde_json::from_value(document.clone()).unwrap();
        let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = match &object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(self.admin.clone(), namespace, &resource),
            None => Api::all_with(self.admin.clone(), &resource),
        };
        api.create(&PostParams::default(), &object).await.unwrap();
    }

    /// A manifest as payloads have them.
    pub(super) fn announce(&self, name: &str) {
        self.write(&format!("0000_50_{name}_07-clusteroperator.yaml"), &manifest(name).to_string());
    }

    pub(super) fn write(&self, file: &str, text: &str) {
        fs::write(self.payload.path().join(file), text).unwrap();
    }

    pub(super) fn start(&self) -> Running {
        self.start_at(Clock::default())
    }

    pub(super) fn start_at(&self, clock: Clock) -> Running {
        Self::start_on(self.router(), Settings { clock, ..Settings::new(self.payload.path()) })
    }

    /// The server to the primer's own account, with the rights of its role.
    pub(super) fn router(&self) -> Router {
        let user = "system:serviceaccount:admit-system:admit-clusteroperator";
        let groups = ["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()];
        self.server.router().layer(axum::Extension(Identity::new(user, groups)))
    }

    pub(super) fn start_on(router: Router, settings: Settings) -> Running {
        let client = Client::new(router, "default");
        Self::run(Manager::new(client.clone(), None).with(member(client, settings).unwrap()))
    }

    /// One that does not report as a ClusterOperator itself.
    pub(super) fn start_unreported_on(router: Router, settings: Settings) -> Running {
        let client = Client::new(router, "default");
        Self::run(Manager::new(client.clone(), None).reports(false).with(member(client, settings).unwrap()))
    }

    fn run(manager: Manager) -> Running {
        let (stop, observed) = (CancellationToken::new(), Observed::of(&manager));
        Running { task: tokio::spawn(manager.run(stop.clone())), stop, observed }
    }

    pub(super) fn operators(&self) -> Api<ClusterOperator> {
        Api::all(self.admin.clone())
    }

    pub(super) async fn until(
        &self,
        name: &str,
        wanted: impl Fn(&ClusterOperator) -> bool,
    ) -> ClusterOperator {
        let api = self.operators();
        let looking = async {
            loop {
                if let Some(found) = api.get_opt(name).await.unwrap().filter(|found| wanted(found)) {
                    return found;
                }
                tokio::task::yield_now().await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, looking).await;
        found.unwrap_or_else(|_| panic!("`{name}` never became what was wanted"))
    }

    pub(super) async fn until_primed(&self, name: &str) -> ClusterOperator {
        self.until(name, |found| found.condition("Degraded") == Some("Unknown")).await
    }

    /// The events of a reason, in their order.
    pub(super) async fn told(&self, reason: &str) -> Vec<Event> {
        let events: Api<Event> = Api::namespaced(self.admin.clone(), "default");
        let mut events = events.list(&ListParams::default()).await.unwrap().items;
        events.retain(|event| event.reason.as_deref() == Some(reason));
        events.sort_by_key(|event| event.event_time.clone());
        events
    }

    pub(super) async fn report(&self, name: &str, status: Value) -> ClusterOperator {
        let patch = Patch::Merge(json!({"status": status}));
        self.operators().patch_status(name, &PatchParams::default(), &patch).await.unwrap()
    }
}

pub(super) fn documents(path: &str) -> Vec<Value> {
    let text = fs::read_to_string(root().join(path)).unwrap();
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

pub(super) fn manifest(name: &str) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator",
        "metadata": {"name": name, "annotations": {"example.dev/from": "payload"}}, "spec": {},
        "status": {
            "versions": [{"name": "operator", "version": "4.5.0"}],
            "relatedObjects": [{"group": "", "resource": "namespaces", "name": name}],
        },
    })
}

pub(super) fn available() -> Value {
    let condition = |type_: &str, status: &str| {
        json!({"type": type_, "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z",
            "reason": "AsExpected", "message": "All is well"})
    };
    json!({
        "conditions": [condition("Available", "True"), condition("Progressing", "False"), condition("Degraded", "False")],
        "versions": [{"name": "operator", "version": "4.5.0"}],
    })
}

/// Longer than what passes between passes.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
