//! A pipeline's surroundings: an API server with Strimzi's kind, a pair of databases, the Secrets with their logins, and the controllers
//! under their own account.

use std::pin::pin;
use std::time::Duration;

use admit::controllers::cyndi::{Settings, connect as product, members};
use admit::controllers::kit::manager::{Manager, ManagerError};
use admit::controllers::kit::observe::Observed;
use futures::StreamExt as _;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::cluster::PATIENCE;
use crate::support::connect::{Connect, Manner};
use crate::support::postgres::{PASSWORD, Pair};
use crate::support::testcluster::{Process, TestCluster};

pub(super) const USERS: &str = "apps";
pub(super) const ACCOUNT: &str = "admit-cyndi";

/// For an exchange with Kafka Connect: one that is answered takes milliseconds, and what is not answered is waited for.
const PATIENT: Duration = Duration::from_secs(3);

pub(super) struct Bench {
    pub(super) cluster: TestCluster,
    pub(super) pair: Pair,
    pub(super) pipelines: Api<DynamicObject>,
    pub(super) connectors: Api<DynamicObject>,
    /// Where there is no Strimzi.
    pub(super) connect: Option<Connect>,
}

/// The controllers, while they run.
pub(super) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), ManagerError>>,
    pub(super) process: Process,
    observed: Observed,
}

impl Bench {
    /// With both Secrets, and looks that follow one another quickly; nothing where there is no PostgreSQL.
    pub(super) async fn new() -> Option<Self> {
        Self::with_strimzi(&["v1beta2"]).await
    }

    /// The same with other versions of Strimzi's kind, of which the first is stored.
    pub(super) async fn with_strimzi(versions: &[&str]) -> Option<Self> {
        let pair = Pair::new().await?;
        let bench = Self::of(pair, None, versions[0]).await;
        bench.cluster.create(&kafka_connectors(versions)).await;
        Some(bench)
    }

    /// Without Strimzi: Kafka Connect itself, whose workers know the logins of databases.
    pub(super) async fn with_connect(manner: Manner) -> Option<Self> {
        let pair = Pair::new().await?;
        let port = pair.port.to_string();
        let known = [
            ("APP_DB_HOSTNAME", "127.0.0.1"),
            ("APP_DB_PORT", port.as_str()),
            ("APP_DB_NAME", pair.app.as_str()),
            ("APP_DB_USERNAME", pair.user.as_str()),
            ("APP_DB_PASSWORD", PASSWORD),
        ];
        let environment = known.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let connect = Connect::start(Manner { environment, ..manner }).await;
        Some(Self::of(pair, Some(connect), "v1beta2").await)
    }

    /// On a pair of a test's own server.
    pub(super) async fn on(pair: Pair) -> Self {
        let bench = Self::of(pair, None, "v1beta2").await;
        bench.cluster.create(&kafka_connectors(&["v1beta2"])).await;
        bench
    }

    async fn of(pair: Pair, connect: Option<Connect>, version: &str) -> Self {
        let cluster = TestCluster::new().await;
        for name in [USERS, "cyndi"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            cluster.create(&namespace).await;
        }
        let of = |group: &str, version: &str, kind: &str| {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            Api::namespaced_with(cluster.admin.clone(), USERS, &resource)
        };
        let pipelines = of("cyndi.cloud.redhat.com", "v1alpha1", "CyndiPipeline");
        let connectors = of("kafka.strimzi.io", version, "KafkaConnector");
        let bench = Self { cluster, pair, pipelines, connectors, connect };
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
        bench
    }

    /// The double of Kafka Connect.
    pub(super) fn connect(&self) -> &Connect {
        self.connect.as_ref().unwrap()
    }

    pub(super) async fn secret(&self, name: &str, database: &str) {
        self.secret_of(name, &self.pair, database).await;
    }

    /// The login of another pair's user.
    pub(super) async fn secret_of(&self, name: &str, pair: &Pair, database: &str) {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": USERS},
            "stringData": {
                "db.host": "127.0.0.1", "db.port": pair.port.to_string(), "db.name": database,
                "db.user": pair.user, "db.password": PASSWORD,
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
        self.create_named("app", spec).await;
    }

    /// The same for the application of this name.
    pub(super) async fn create_named(&self, app: &str, spec: &Value) {
        let mut object = json!({"apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
            "metadata": {"name": app, "namespace": USERS}, "spec": {"appName": app}});
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
        if let Some(connect) = &self.connect {
            return connect.connectors();
        }
        let listed = self.connectors.list(&ListParams::default()).await.unwrap();
        listed.items.iter().map(|object| object.name_any()).collect()
    }

    /// Those of one application.
    pub(super) async fn connectors_of(&self, app: &str) -> Vec<String> {
        let mut all = self.connectors().await;
        all.retain(|name| name.starts_with(&format!("cyndi-{app}-")));
        all
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

    /// The status once another table than `before` is being filled, and it and its connector are all that is there.
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

    /// The statuses that the pipeline has from now on.
    pub(super) fn history(&self) -> History {
        let (sender, seen) = watch::channel(Vec::new());
        let pipelines = self.pipelines.clone();
        let task = tokio::spawn(async move {
            let mut changes = pin!(watcher(pipelines, watcher::Config::default()).applied_objects());
            while let Some(object) = changes.next().await {
                let status = Status(object.unwrap().data["status"].clone());
                sender.send_modify(|seen: &mut Vec<Status>| seen.push(status));
            }
        });
        History { seen, task }
    }

    /// The status once another table than `before` is being filled while the view shows that one.
    pub(super) async fn until_built_anew_beside(&self, before: &str) -> Status {
        let anew = |status: &Status| status.state() == "INITIAL_SYNC" && status.table() != before;
        let status = self.until(anew).await;
        assert_eq!(status.text("activeTableName"), before);
        status
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

    /// Waits until the event has come again.
    pub(super) async fn until_counted(&self, event: &Event) {
        let events: Api<Event> = Api::namespaced(self.cluster.admin.clone(), USERS);
        let again = |found: Option<&Event>| found.is_some_and(|found| found.series.is_some());
        let name = event.name_any();
        let waiting = kube::runtime::wait::await_condition(events, &name, again);
        drop(tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap());
    }

    pub(super) fn start(&self) -> Running {
        self.start_with(&self.settings())
    }

    /// Kafka Connect is asked by the worker that does not lead, where there is one.
    pub(super) fn settings(&self) -> Settings {
        let connect = self.connect.as_ref().map(|connect| {
            let url = connect.url(connect.workers() - 1);
            product::Connect::answering_within(&url, None, PATIENT).unwrap()
        });
        Settings { connect, ..Settings::default() }
    }

    pub(super) fn start_with(&self, settings: &Settings) -> Running {
        let process = self.cluster.process(ACCOUNT);
        let stop = CancellationToken::new();
        let manager = manager(&process.client, settings);
        let observed = Observed::of(&manager);
        Running { task: tokio::spawn(manager.run(stop.clone())), stop, process, observed }
    }

    /// Nothing that people read has a password in it.
    async fn no_secrets_told(&self) {
        let events: Api<Event> = Api::namespaced(self.cluster.admin.clone(), USERS);
        let events = events.list(&ListParams::default()).await.unwrap();
        let pipelines = self.pipelines.list(&ListParams::default()).await.unwrap();
        let connectors = match &self.connect {
            Some(connect) => connect.connectors().iter().map(|name| json!(connect.config(name))).collect(),
            None => json!(self.connectors.list(&ListParams::default()).await.unwrap().items),
        };
        let told = [json!(events.items), json!(pipelines.items), connectors];
        assert!(!told.iter().any(|part| part.to_string().contains("canary")), "{told:#?}");
    }
}

/// Both controllers, as a process runs them.
pub(super) fn manager(client: &Client, settings: &Settings) -> Manager {
    members(client, settings).into_iter().fold(Manager::new(client.clone(), None), Manager::with)
}

impl Running {
    /// Ends them as a crash does: nothing of what they do reaches the server any more.
    pub(super) async fn kill(self) {
        self.process.wire.kill();
        self.task.abort();
        drop(self.task.await);
        self.process.refused_nothing();
    }

    /// Ends the controllers, which were refused nothing and told no secret. What is left of their process.
    pub(super) async fn stop(self, bench: &Bench) -> Process {
        let process = self.end().await;
        process.refused_nothing();
        bench.no_secrets_told().await;
        process
    }

    /// Ends the controllers, whatever they were refused.
    pub(super) async fn end(self) -> Process {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap();
        self.process
    }

    pub(super) fn metrics(&self) -> String {
        self.observed.text()
    }

    /// Looks of both controllers that came to nothing so far.
    pub(super) fn failures(&self) -> u64 {
        let failed = |line: &str| {
            let (series, count) = line.split_once(' ')?;
            (series.starts_with("controller_runtime_reconcile_total{") && series.contains("result=\"error\""))
                .then(|| count.parse::<u64>().unwrap())
        };
        self.metrics().lines().filter_map(failed).sum()
    }

    /// Waits until so many more looks came to nothing.
    pub(super) async fn until_failed(&self, more: u64) {
        let wanted = self.failures() + more;
        let failing = async {
            while self.failures() < wanted {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, failing)
            .await
            .unwrap_or_else(|_| panic!("no failure: {}", self.metrics()));
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
        let conflict = |line: &str| {
            let object = line.split_once("/cyndipipelines/").map_or("", |(_, rest)| rest);
            object.ends_with(": 422 Unprocessable Entity") && !object.contains('/')
        };
        denied.retain(|line| !conflict(line));
        assert_eq!(denied, Vec::<String>::new());
    }
}

/// Statuses of a pipeline, in their order, while it is watched.
pub(super) struct History {
    pub(super) seen: watch::Receiver<Vec<Status>>,
    task: JoinHandle<()>,
}

impl History {
    /// All statuses up to one that is as wanted, which is heard of a little later than it is there.
    pub(super) async fn until(&self, wanted: impl Fn(&Status) -> bool) -> Vec<Status> {
        let mut seen = self.seen.clone();
        let heard = seen.wait_for(|seen| seen.iter().any(&wanted));
        tokio::time::timeout(PATIENCE, heard).await.unwrap().unwrap().clone()
    }

    /// The versions that it had, each once.
    pub(super) fn versions(&self) -> Vec<String> {
        let mut versions: Vec<String> = Vec::new();
        for status in self.seen.borrow().iter() {
            let version = status.text("pipelineVersion");
            if !version.is_empty() && !versions.iter().any(|known| known == version) {
                versions.push(version.to_owned());
            }
        }
        versions
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.task.abort();
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
pub(super) fn kafka_connectors(versions: &[&str]) -> Value {
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
            "versions": versions.iter().map(|name| json!({
                "name": name, "served": true, "storage": *name == versions[0], "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": open}}},
            })).collect::<Vec<_>>(),
        },
    })
}
