//! Whatever is wrong with one pipeline (CY §8, last rows): it is told in a Warning, its state stays what it is, it is tried again
//! after waits that grow, and the other pipelines of the process go on.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::bench::{Bench, Status, USERS};
use crate::support::cluster::PATIENCE;
use crate::support::connect::{Fault, Manner};
use crate::support::logs;
use crate::support::postgres::Pair;

/// Two pipelines of two applications: `app`, which gets into trouble, and `other`, which must not hear of it.
struct Two {
    bench: Bench,
    _other: Pair,
}

impl Two {
    /// The one that gets into trouble is not there yet.
    async fn new() -> Option<Self> {
        Self::on(Bench::new().await?, &json!({})).await
    }

    /// The same on a bench of the caller's; the other one has this spec besides.
    async fn on(bench: Bench, spec: &Value) -> Option<Self> {
        let other = Pair::new().await?;
        bench.pair.hosts([1]).await;
        bench.secret_of("other-db", &other, &other.app).await;
        bench.secret_of("other-inventory", &other, &other.inventory).await;
        bench.create_named("other", spec).await;
        let inventory = Patch::Merge(json!({"spec": {"inventoryDbSecret": "other-inventory"}}));
        bench.pipelines.patch("other", &PatchParams::default(), &inventory).await.unwrap();
        Some(Self { bench, _other: other })
    }

    /// The other one is built anew, which takes both controllers.
    async fn other_goes_on(&self) {
        let pipelines = &self.bench.pipelines;
        let of = |data: &Value| Status(data["status"].clone());
        let table = |status: &Status| (status.state() != "NEW").then(|| status.table().to_owned());
        let there = |data: &Value| table(&of(data)).is_some();
        let before = table(&of(&self.bench.cluster.until(pipelines, "other", there).await));
        let patch = Patch::Merge(json!({"spec": {"refresh": before}}));
        pipelines.patch("other", &PatchParams::default(), &patch).await.unwrap();
        let anew = |data: &Value| table(&of(data)).is_some_and(|now| Some(now) != before);
        self.bench.cluster.until(pipelines, "other", anew).await;
        // An empty table beside an empty inventory is valid.
        let valid = |data: &Value| of(data).state() == "VALID";
        self.bench.cluster.until(pipelines, "other", valid).await;
    }

    async fn status(&self) -> Value {
        self.bench.pipelines.get("app").await.unwrap().data["status"].clone()
    }

    /// From the beginning: nothing is made before what is wrong is mended.
    async fn keeps_from_beginning(
        self,
        words: &str,
        wrong: impl AsyncFn(&Bench),
        mended: impl AsyncFn(&Bench),
    ) {
        wrong(&self.bench).await;
        let running = self.bench.start();
        self.bench.create(&json!({})).await;
        let told = self.bench.until_event("ReconcileFailed", words).await;
        assert_eq!(told.type_.as_deref(), Some("Warning"));
        self.other_goes_on().await;
        self.bench.until_counted(&told).await;
        assert_eq!(self.status().await, Value::Null, "{words}");
        assert!(self.bench.connectors_of("app").await.is_empty(), "{words}");
        mended(&self.bench).await;
        let started = self.bench.until_started().await;
        self.bench.pair.fill(started.table(), [1]).await;
        self.bench.until_shown(started.table()).await;
        running.stop(&self.bench).await;
    }

    /// While it is valid: that stays, and so does the view.
    async fn keeps_valid(self, words: &str, wrong: impl AsyncFn(&Bench), mended: impl AsyncFn(&Bench)) {
        let running = self.bench.start();
        self.bench.create(&json!({})).await;
        let started = self.bench.until_started().await;
        self.bench.pair.fill(started.table(), [1]).await;
        self.bench.until_shown(started.table()).await;
        let before = self.status().await;
        wrong(&self.bench).await;
        let told = self.bench.until_event("ReconcileFailed", words).await;
        assert_eq!(told.type_.as_deref(), Some("Warning"));
        self.other_goes_on().await;
        assert_eq!(self.status().await, before, "{words}");
        mended(&self.bench).await;
        // Each of these looks is one that both controllers have to get through.
        self.bench.change(&json!({"refresh": "now"})).await;
        let again = self.bench.until_built_anew_beside(started.table()).await;
        self.bench.pair.fill(again.table(), [1]).await;
        self.bench.until_shown(again.table()).await;
        running.stop(&self.bench).await;
    }
}

/// Writes members of the application's Secret.
async fn secret(bench: &Bench, members: Value) {
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), USERS);
    let patch = Patch::Merge(json!({"stringData": members}));
    secrets.patch("app-db", &PatchParams::default(), &patch).await.unwrap();
}

/// Has the administrator of the application's database do this.
async fn admin(bench: &Bench, statements: &str) {
    bench.pair.admin(&bench.pair.app).await.batch_execute(statements).await.unwrap();
}

#[tokio::test]
async fn cy_08_17_a_secret_without_a_host() {
    let Some(two) = Two::new().await else { return };
    let wrong = async |bench: &Bench| {
        let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), USERS);
        let patch = Patch::Merge(json!({"data": {"db.host": null}}));
        secrets.patch("app-db", &PatchParams::default(), &patch).await.unwrap();
    };
    let mended = async |bench: &Bench| secret(bench, json!({"db.host": "127.0.0.1"})).await;
    two.keeps_from_beginning("db.host missing from app-db secret", wrong, mended).await;
}

#[tokio::test]
async fn cy_08_17_a_privilege_that_is_missing() {
    let Some(two) = Two::new().await else { return };
    let wrong = async |bench: &Bench| admin(bench, "REVOKE ALL ON SCHEMA inventory FROM cyndi_admin").await;
    let mended = async |bench: &Bench| admin(bench, "GRANT ALL ON SCHEMA inventory TO cyndi_admin").await;
    let words = "cannot make the table: permission denied for schema inventory (SQLSTATE 42501)";
    two.keeps_from_beginning(words, wrong, mended).await;
}

#[tokio::test]
async fn cy_08_17_a_table_that_has_the_name_of_the_view() {
    let Some(two) = Two::new().await else { return };
    let wrong = async |bench: &Bench| admin(bench, "CREATE TABLE inventory.hosts (id uuid)").await;
    let mended = async |bench: &Bench| admin(bench, "DROP TABLE inventory.hosts").await;
    two.keeps_from_beginning("inventory.hosts is a table, not a view: drop or rename it", wrong, mended)
        .await;
}

#[tokio::test]
async fn cy_08_17_a_port_that_answers_nothing() {
    let Some(two) = Two::new().await else { return };
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let wrong = async |bench: &Bench| secret(bench, json!({"db.port": port})).await;
    let mended = async |bench: &Bench| {
        secret(bench, json!({"db.port": bench.pair.port.to_string()})).await;
    };
    two.keeps_valid("cannot connect to the database", wrong, mended).await;
}

#[tokio::test]
async fn cy_08_17_a_password_that_is_wrong() {
    let Some(two) = Two::new().await else { return };
    let wrong = async |bench: &Bench| secret(bench, json!({"db.password": "canary-wrong-4719"})).await;
    let right = crate::support::postgres::PASSWORD;
    let mended = async |bench: &Bench| secret(bench, json!({"db.password": right})).await;
    two.keeps_valid("the database refuses the password of the Secret", wrong, mended).await;
}

/// Two sessions that each have what the other one waits for; the server ends ours.
#[tokio::test]
async fn cy_08_17_a_deadlock() {
    let Some(two) = Two::new().await else { return };
    let stranger = two.bench.pair.admin(&two.bench.pair.app).await;
    let pair = &two.bench.pair;
    admin(
        &two.bench,
        &format!(
            "ALTER ROLE {} SET deadlock_timeout = '100ms'; \
             CREATE FUNCTION public.meet() RETURNS event_trigger LANGUAGE plpgsql AS \
             'BEGIN PERFORM pg_advisory_xact_lock(2); PERFORM pg_advisory_xact_lock(1); END'; \
             CREATE EVENT TRIGGER meet ON ddl_command_start WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION public.meet()",
            pair.user
        ),
    )
    .await;
    stranger
        .batch_execute("SET deadlock_timeout = '1min'; BEGIN; SELECT pg_advisory_xact_lock(1)")
        .await
        .unwrap();
    let watcher = two.bench.pair.admin(&two.bench.pair.app).await;
    let meeting = tokio::spawn(async move {
        let waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objid = 1 AND NOT granted \
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        while watcher.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        // Ends when the other session was ended.
        stranger.batch_execute("SELECT pg_advisory_xact_lock(2); ROLLBACK").await.unwrap();
    });
    let mended = async |bench: &Bench| admin(bench, "DROP EVENT TRIGGER meet").await;
    // Once only: the next attempt meets nobody.
    let running = two.bench.start();
    two.bench.create(&json!({})).await;
    let words = "cannot make the table: deadlock detected (SQLSTATE 40P01)";
    let told = two.bench.until_event("ReconcileFailed", words).await;
    assert_eq!(told.type_.as_deref(), Some("Warning"));
    tokio::time::timeout(PATIENCE, meeting).await.unwrap().unwrap();
    two.other_goes_on().await;
    let started = two.bench.until_started().await;
    mended(&two.bench).await;
    two.bench.pair.fill(started.table(), [1]).await;
    two.bench.until_shown(started.table()).await;
    running.stop(&two.bench).await;
}

/// A ConfigMap is that of a namespace: pipelines of others go on.
#[tokio::test]
async fn cy_08_17_a_configmap_that_cannot_be_read() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let other = Pair::new().await.unwrap();
    bench
        .cluster
        .create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "others"}}))
        .await;
    for (name, database) in [("app-db", &other.app), ("host-inventory-read-only-db", &other.inventory)] {
        let login = json!({"db.host": "127.0.0.1", "db.port": other.port.to_string(), "db.name": database, "db.user": other.user,
            "db.password": crate::support::postgres::PASSWORD});
        let metadata = json!({"name": name, "namespace": "others"});
        bench
            .cluster
            .create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": login}))
            .await;
    }
    bench.config_map("others", &[("standard.interval", "1"), ("init.validation.interval", "1")]).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    bench.pair.fill(started.table(), [1]).await;
    bench.until_shown(started.table()).await;
    let before = bench.pipelines.get("app").await.unwrap().data["status"].clone();
    bench.configure("standard.interval", "abc").await;
    let words =
        "Error parsing cyndi configmap in apps: \"abc\" is not a valid value for \"standard.interval\"";
    let told = bench.until_event("ReconcileFailed", words).await;
    assert_eq!((told.type_.as_deref(), told.note.as_deref()), (Some("Warning"), Some(words)));
    bench
        .cluster
        .create(&json!({"apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
            "metadata": {"name": "app", "namespace": "others"}, "spec": {"appName": "app"}}))
        .await;
    let kind = kube::core::GroupVersionKind::gvk("cyndi.cloud.redhat.com", "v1alpha1", "CyndiPipeline");
    let resource = kube::api::ApiResource::from_gvk(&kind);
    let others: Api<kube::api::DynamicObject> =
        Api::namespaced_with(bench.cluster.admin.clone(), "others", &resource);
    // Both sides are empty.
    let valid = |data: &Value| Status(data["status"].clone()).state() == "VALID";
    bench.cluster.until(&others, "app", valid).await;
    bench.until_counted(&told).await;
    assert_eq!(bench.pipelines.get("app").await.unwrap().data["status"], before);
    bench.configure("standard.interval", "1").await;
    bench.change(&json!({"refresh": "now"})).await;
    bench.until_built_anew_beside(started.table()).await;
    running.stop(&bench).await;
}

/// The server gives up on one side of a validation while the other is waited for (`idle_in_transaction_session_timeout`, or an
/// administrator): no failed validation.
#[tokio::test]
async fn cy_08_17_a_transaction_that_the_server_ends() {
    let Some(two) = Two::new().await else { return };
    let (bench, pair) = (&two.bench, &two.bench.pair);
    let running = bench.start();
    bench.create(&json!({})).await;
    let started = bench.until_started().await;
    pair.fill(started.table(), [1]).await;
    bench.until_shown(started.table()).await;
    let holder = pair.admin(&pair.inventory).await;
    holder.batch_execute("BEGIN; LOCK TABLE hosts IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let before = two.status().await;
    let admin = pair.admin(&pair.app).await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = $1 AND application_name = 'admit-cyndi' AND state = 'idle in transaction'";
    let ending = async {
        while admin.query_one(end, &[&pair.app]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, ending).await.expect("nothing is compared");
    holder.batch_execute("COMMIT").await.unwrap();
    let told = bench.until_event("ReconcileFailed", "validation: ").await;
    assert_eq!(told.type_.as_deref(), Some("Warning"));
    two.other_goes_on().await;
    assert_eq!(two.status().await, before);
    // Looks go on.
    pair.app().await.batch_execute(&format!("DELETE FROM inventory.{}", started.table())).await.unwrap();
    bench.until(|status| status.state() == "INVALID").await;
    running.stop(bench).await;
}

/// Whatever Kafka Connect does, pipelines that need nothing of it go on, and the one that does is what it was.
#[tokio::test]
async fn cy_08_17_kafka_connect_that_is_of_no_use() {
    let Some(bench) = Bench::with_connect(Manner::default()).await else { return };
    let Some(two) = Two::on(bench, &json!({"managedConnectors": false})).await else { return };
    let bench = &two.bench;
    bench.connect().publish("platform.inventory.events", 1);
    let running = bench.start();
    bench.create(&json!({})).await;
    let shown = bench
        .until(|status| status.state() == "VALID" && status.text("activeTableName") == status.table())
        .await;
    bench.until_there(&["hosts", shown.table()], &[shown.connector()]).await;
    let before = two.status().await;
    for trouble in [Some(Fault::Page(502)), Some(Fault::TimedOut), Some(Fault::Silent), None] {
        let told = format!("{trouble:?}");
        bench.connect().hold_rebalance(trouble.is_none());
        bench.connect().answer(trouble);
        // A look that is waiting for its time is made now.
        bench.change(&json!({"connectorPaused": false})).await;
        running.until_failed(2).await;
        two.other_goes_on().await;
        assert_eq!(two.status().await, before, "{told}");
        bench.connect().hold_rebalance(false);
        bench.connect().answer(None);
    }
    let told = bench.until_event("ReconcileFailed", "Kafka Connect").await;
    assert_eq!(told.type_.as_deref(), Some("Warning"));
    bench.change(&json!({"refresh": "now"})).await;
    let again = |status: &Status| status.state() == "VALID" && status.table() != shown.table();
    let last = bench.until(again).await;
    bench.until_there(&["hosts", last.table()], &[last.connector()]).await;
    running.stop(bench).await;
}

/// Each wait may be twice as long as the one before; a look that goes well begins anew.
#[tokio::test]
async fn cy_08_17_waits_grow_while_nothing_helps() {
    let logs = logs::capture();
    let Some(bench) = Bench::new().await else { return };
    bench.configure("standard.interval", "abc").await;
    let running = bench.start();
    bench.create(&json!({})).await;
    running.until_failed(4).await;
    running.stop(&bench).await;
    let logged = logs.take();
    let failed = logged.lines().filter(|line| line.contains("reconciliation failed"));
    let waits: Vec<f64> = failed
        .filter_map(|line| line.rsplit_once("Some(")?.1.split_once("s)"))
        .map(|(wait, _)| {
            wait.strip_suffix('m')
                .map_or_else(|| wait.parse().unwrap(), |ms| ms.parse::<f64>().unwrap() / 1e3)
        })
        .collect();
    assert!(waits.len() >= 4, "{waits:?}: {logged}");
    for (power, wait) in waits.iter().enumerate() {
        let longest = 0.5 * 2_f64.powi(i32::try_from(power).unwrap());
        assert!((longest / 2.0..=longest).contains(wait), "{waits:?}");
    }
}

/// What a filter says goes into the connector as it is, through the API server and back, and is no deviation.
#[tokio::test]
async fn cy_05_quotes_newlines_and_placeholders_of_filters_survive_the_api_server() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let condition =
        "a == \"b\" && c == 'd'\n\t\\ ${env:HOME} ${file:/etc/passwd} {{.TableName}} \u{e9}\u{1f600}";
    let filter =
        json!({"name": "mine", "where": "display_name <> 'a''b'", "type": "T$Value", "if": condition});
    let running = bench.start();
    bench.create(&json!({"additionalFilters": [filter]})).await;
    let started = bench.until_started().await;
    let connector = bench.connectors.get(started.connector()).await.unwrap();
    assert_eq!(connector.data["spec"]["config"]["transforms.mine.if"], condition);
    bench.pair.fill(started.table(), [1]).await;
    let shown = bench.until_shown(started.table()).await;
    assert_eq!(shown.table(), started.table());
    running.stop(&bench).await;
}
