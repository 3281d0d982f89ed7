//! A pipeline's surroundings: an API server with Strimzi's kind, a pair of databases, the Secrets with their logins, and the controllers
//! under their own account.

use admit::controllers::cyndi::{Settings, members};
use admit::controllers::kit::manager::{Manager, ManagerError};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::cluster::PATIENCE;
use crate::support::postgres::{PASSWORD, Pair};
use crate::support::testcluster::{Process, TestCluster};

pub(super) const USERS: &str = "apps";
pub(super) const ACCOUNT: &str = "admit-cyndi";

pub(super) struct Bench {
    pub(super) cluster: TestCluster,
    pub(super) pair: Pair,
    pub(super) pipelines: Api<DynamicObject>,
    pub(super) connectors: Api<DynamicObject>,
}

/// The controllers, while they run.
pub(super) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
    process: Process,
}

impl Bench {
    /// With both Secrets, and looks that follow one another quickly; nothing where there is no PostgreSQL.
    pub(super) async fn new() -> Option<Self> {
        let pair = Pair::new().await?;
        let cluster = TestCluster::new().await;
        cluster.create(&kafka_connectors()).await;
        for name in [USERS, "cyndi"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            cluster.create(&namespace).await;
        }
        let of = |group: &str, version: &str, kind: &str| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            Api::namespaced_with(cluster.admin.clone(), USERS, &resource)
        };
        let pipelines = of("cyndi.cloud.redhat.com", "v1alpha1", "CyndiPipeline");
        let connectors = of("kafka.strimzi.io", "v1beta2", "KafkaConnector");
        let bench = Self { cluster, pair, pipelines, connectors };
        bench.secret("app-db", &bench.pair.app).await;
        bench.secret("host-inventory-read-only-db", &bench.pair.inventory).await;
        let quickly = [
            ("standard.interval", "1"),
            ("init.validation.interval", "1"),
            ("validation.interval", "1"),
            ("init.validation.attempts.threshold", "1000"),
            ("validation.attempts.threshold", "1000"),
        ];
        bench.config_map(USERS, &quickly).await;
        Some(bench)
    }

    pub(super) async fn secret(&self, name: &str, database: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": USERS},
            "stringData": {
                "db.host": "127.0.0.1", "db.port": self.pair.port.to_string(), "db.name": database,
                "db.user": self.pair.user, "db.password": PASSWORD,
            },
        });
        self.cluster.create(&secret).await;
    }

    /// Creates the ConfigMap of a namespace.
    pub(super) async fn config_map(&self, namespace: &str, data: &[(&str, &str)]) {
        let data: serde_json::Map<String, Value> =
            data.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cyndi", "namespace": namespace},
            "data": data});
        self.cluster.create(&map).await;
    }

    /// Sets one key of the ConfigMap of the users' namespace.
    pub(super) async fn configure(&self, key: &str, value: &str) {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
        let maps: Api<DynamicObject> = Api::namespaced_with(self.cluster.admin.clone(), USERS, &resource);
        let patch = Patch::Merge(json!({"data": {key: value}}));
        maps.patch("cyndi", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Creates a pipeline of the name `app` with this spec beside the application's name.
    pub(super) async fn create(&self, spec: &Value) {
        let mut object = json!({"apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
            "metadata": {"name": "app", "namespace": USERS}, "spec": {"appName": "app"}});
        json_patch::merge(&mut object["spec"], spec);
        self.cluster.create(&object).await;
    }

    pub(super) async fn change(&self, spec: &Value) {
        let patch = Patch::Merge(json!({"spec": spec}));
        self.pipelines.patch("app", &PatchParams::default(), &patch).await.unwrap();
    }

    /// The status once it is as wanted.
    pub(super) async fn until(&self, wanted: impl Fn(&Status) -> bool) -> Status {
        let of = |data: &Value| Status(data["status"].clone());
        let found = self.cluster.until(&self.pipelines, "app", |data| wanted(&of(data))).await;
        of(&found)
    }

    /// The status once the first table is being filled.
    pub(super) async fn until_started(&self) -> Status {
        self.until(|status| status.state() == "INITIAL_SYNC").await
    }

    /// The status once this table is shown.
    pub(super) async fn until_shown(&self, table: &str) -> Status {
        self.until(|status| status.text("activeTableName") == table).await
    }

    pub(super) async fn delete(&self) {
        self.pipelines.delete("app", &DeleteParams::default()).await.unwrap();
    }

    /// The connectors that are there, by name.
    pub(super) async fn connectors(&self) -> Vec<String> {
        let listed = self.connectors.list(&ListParams::default()).await.unwrap();
        listed.items.iter().map(|object| object.name_any()).collect()
    }

    /// Waits until what is there is exactly this: tables and views of the application, and connectors.
    pub(super) async fn until_there(&self, relations: &[&str], connectors: &[&str]) {
        let looking = async {
            loop {
                let (is, has) = (self.pair.relations().await, self.connectors().await);
                if is == relations && has == connectors {
                    return;
                }
            }
        };
        if tokio::time::timeout(PATIENCE, looking).await.is_err() {
            panic!("{:?} and {:?}", self.pair.relations().await, self.connectors().await);
        }
    }

    /// The status once another table than `before` is being filled, and it and its connector are all that is there. Both
    /// controllers look for deviations, and one that sees the pipeline as it was a moment ago begins anew once more.
    pub(super) async fn until_built_anew(&self, before: &str) -> Status {
        let looking = async {
            loop {
                let anew = |status: &Status| status.state() == "INITIAL_SYNC" && status.table() != before;
                let status = self.until(anew).await;
                let (is, has) = (self.pair.relations().await, self.connectors().await);
                if is == [status.table()] && has == [status.connector()] {
                    return status;
                }
            }
        };
        let built = tokio::time::timeout(PATIENCE, looking).await;
        built.unwrap_or_else(|_| panic!("another table than {before} is not all that is there"))
    }

    /// Waits for an event on the pipeline.
    pub(super) async fn until_event(&self, reason: &str, words: &str) -> Event {
        let events: Api<Event> = Api::namespaced(self.cluster.admin.clone(), USERS);
        let looking = async {
            loop {
                let listed = events.list(&ListParams::default()).await.unwrap();
                let fits = |event: &Event| {
                    event.reason.as_deref() == Some(reason)
                        && event.note.as_deref().is_some_and(|note| note.contains(words))
                };
                if let Some(found) = listed.items.into_iter().find(fits) {
                    return found;
                }
                tokio::task::yield_now().await;
            }
        };
        match tokio::time::timeout(PATIENCE, looking).await {
            Ok(found) => found,
            Err(_) => panic!("no event {reason}: {words}: {:#?}", events.list(&ListParams::default()).await),
        }
    }

    pub(super) fn start(&self) -> Running {
        self.start_with(&Settings::default())
    }

    pub(super) fn start_with(&self, settings: &Settings) -> Running {
        let process = self.cluster.process(ACCOUNT);
        let stop = CancellationToken::new();
        let run = manager(&process.client, settings).run(stop.clone());
        Running { task: tokio::spawn(run), stop, process }
    }

    /// Nothing that people read has a password in it.
    async fn no_secrets_told(&self) {
        let events: Api<Event> = Api::namespaced(self.cluster.admin.clone(), USERS);
        let events = events.list(&ListParams::default()).await.unwrap();
        let pipelines = self.pipelines.list(&ListParams::default()).await.unwrap();
        let connectors = self.connectors.list(&ListParams::default()).await.unwrap();
        let told = [json!(events.items), json!(pipelines.items), json!(connectors.items)];
        assert!(!told.iter().any(|part| part.to_string().contains("canary")), "{told:#?}");
    }
}

/// Both controllers, as a process runs them.
pub(super) fn manager(client: &Client, settings: &Settings) -> Manager {
    members(client, settings).into_iter().fold(Manager::new(client.clone(), None), Manager::with)
}

impl Running {
    /// Ends the controllers, which were refused nothing and told no secret.
    pub(super) async fn stop(self, bench: &Bench) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap();
        self.process.refused_nothing();
        bench.no_secrets_told().await;
    }
}

pub(super) trait RefusedNothing {
    fn refused_nothing(&self);
}

impl RefusedNothing for Process {
    /// Nothing was refused by right, rule or policy. A finalizer is written with a test that nobody else wrote it meanwhile: that this
    /// fails, where a look began with an older object, is a conflict.
    fn refused_nothing(&self) {
        let mut denied = self.wire.denied();
        denied.retain(|line| !line.ends_with("/cyndipipelines/app: 422 Unprocessable Entity"));
        assert_eq!(denied, Vec::<String>::new());
    }
}

/// A status, as it is stored.
#[derive(Clone, Debug)]
pub(super) struct Status(pub(super) Value);

impl Status {
    pub(super) fn text(&self, field: &str) -> &str {
        self.0[field].as_str().unwrap_or_default()
    }

    pub(super) fn valid(&self) -> &Value {
        let conditions = self.0["conditions"].as_array();
        conditions.and_then(|all| all.iter().find(|it| it["type"] == "Valid")).unwrap_or(&Value::Null)
    }

    pub(super) fn state(&self) -> &'static str {
        match (self.text("pipelineVersion"), self.valid()["status"].as_str()) {
            ("", _) => "NEW",
            (_, Some("True")) => "VALID",
            _ if self.0["initialSyncInProgress"] == true => "INITIAL_SYNC",
            (_, Some("False")) => "INVALID",
            _ => "UNKNOWN",
        }
    }

    pub(super) fn table(&self) -> &str {
        self.text("tableName")
    }

    pub(super) fn connector(&self) -> &str {
        self.text("cyndiPipelineName")
    }
}

/// Strimzi's kind, as far as anything here looks at it: its own schema is wider.
fn kafka_connectors() -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({"type": "object", "properties": {
        "class": {"type": "string"}, "tasksMax": {"type": "integer", "minimum": 1}, "config": open, "pause": {"type": "boolean"},
        "state": {"type": "string", "enum": ["paused", "stopped", "running"]},
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "kafkaconnectors.kafka.strimzi.io"},
        "spec": {
            "group": "kafka.strimzi.io", "scope": "Namespaced",
            "names": {"kind": "KafkaConnector", "listKind": "KafkaConnectorList", "plural": "kafkaconnectors",
                "singular": "kafkaconnector"},
            "versions": [{"name": "v1beta2", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": open}}}}],
        },
    })
}
