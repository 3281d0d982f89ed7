//! Row 35 for pipelines: two processes of `admit controllers` under one Lease, of which the leader is stopped somewhere between the
//! creation of a pipeline and its end, and goes on later, as one that knows nothing of the time between. Meanwhile the other one goes
//! on, and an application reads the view.
//!
//! What is counted is what databases and the API server were told: tables, connectors, and where the view went.

use std::collections::BTreeSet;
use std::time::Duration;

use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::bench::{Status, USERS, kafka_connectors};
use super::crash::Reader;
use super::model::illegal;
use crate::running::Workplace;
use crate::soak::{percent, scaled};
use crate::support::canaries::hit;
use crate::support::leaders::{PATIENCE, Pair as Candidates, Seen, Stop, has_clocks, lengths};
use crate::support::postgres::{PASSWORD, Pair};
use crate::support::reliability::Row;

/// Notes which tables are made, and which the view is made to show, as the database does it.
const AUDIT: &str = "\
CREATE TABLE public.audit (number bigserial, what text, shown text); \
CREATE FUNCTION public.note() RETURNS event_trigger LANGUAGE plpgsql SECURITY DEFINER AS \
'BEGIN INSERT INTO public.audit (what, shown) VALUES (tg_tag, substring(current_query() from ''hosts_v1_[0-9]+'')); END'; \
CREATE EVENT TRIGGER note ON ddl_command_end WHEN TAG IN ('CREATE TABLE', 'CREATE VIEW') EXECUTE FUNCTION public.note()";

/// How far the life of a pipeline has come.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Step {
    Created,
    Started,
    Filled,
    Shown,
    Refreshed,
    Again,
    Deleted,
}

const STEPS: [Step; 7] =
    [Step::Filled, Step::Refreshed, Step::Created, Step::Deleted, Step::Started, Step::Again, Step::Shown];

struct Place {
    base: Pair,
    candidates: Candidates,
    pipelines: Api<DynamicObject>,
    connectors: Api<DynamicObject>,
    statuses: Seen,
    made: Seen,
}

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

async fn create(client: &Client, document: &Value) {
    let object: DynamicObject = serde_json::from_value(document.clone()).unwrap();
    let resource =
        ApiResource::from_gvk(&GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap());
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// What surrounds pipelines: Strimzi's kind, and logins, with looks that follow one another quickly.
async fn surround(client: &Client, base: &Pair) {
    create(client, &kafka_connectors(&["v1beta2"])).await;
    let definitions = Api::all(client.clone());
    let established =
        await_condition(definitions, "kafkaconnectors.kafka.strimzi.io", conditions::is_crd_established());
    tokio::time::timeout(PATIENCE, established).await.unwrap().unwrap();
    create(client, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": USERS}})).await;
    for (name, database) in [("app-db", &base.app), ("host-inventory-read-only-db", &base.inventory)] {
        let login = json!({"db.host": "127.0.0.1", "db.port": base.port.to_string(), "db.name": database, "db.user": base.user,
            "db.password": PASSWORD});
        let metadata = json!({"name": name, "namespace": USERS});
        create(
            client,
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": login}),
        )
        .await;
    }
    let data = json!({"standard.interval": "1", "init.validation.interval": "1", "validation.interval": "1",
        "init.validation.attempts.threshold": "1000", "validation.attempts.threshold": "1000"});
    let metadata = json!({"name": "cyndi", "namespace": USERS});
    create(client, &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
        .await;
}

impl Place {
    async fn new(apart: Option<&str>, level: &str) -> Option<Self> {
        let base = Pair::new().await?;
        base.hosts([1, 2]).await;
        base.admin(&base.app).await.batch_execute(AUDIT).await.unwrap();
        let candidates =
            Candidates::new(Workplace::new(), &["--controllers=observability"], apart, |command| {
                command.arg("--controllers=cyndi").env("RUST_LOG", level);
            })
            .await;
        let client = candidates.client.clone();
        surround(&client, &base).await;
        let of = |group, version, kind| {
            Api::namespaced_with(client.clone(), USERS, &resource(group, version, kind))
        };
        let pipelines: Api<DynamicObject> = of("cyndi.cloud.redhat.com", "v1alpha1", "CyndiPipeline");
        let connectors: Api<DynamicObject> = of("kafka.strimzi.io", "v1beta2", "KafkaConnector");
        let (statuses, made) = (seen(&client, "cyndi.cloud.redhat.com"), seen(&client, "kafka.strimzi.io"));
        Some(Self { base, candidates, pipelines, connectors, statuses, made })
    }

    /// The status once it is as wanted.
    async fn until(&self, wanted: impl Fn(&Status) -> bool + Send) -> Status {
        let of = |object: &DynamicObject| Status(object.data["status"].clone());
        let so = |object: Option<&DynamicObject>| object.is_some_and(|object| wanted(&of(object)));
        match tokio::time::timeout(PATIENCE, await_condition(self.pipelines.clone(), "app", so)).await {
            Ok(found) => of(&found.unwrap().unwrap()),
            Err(_) => panic!("{:#?}\n{}", self.pipelines.get("app").await, self.candidates.logs()),
        }
    }

    /// Fills whatever table is being filled until one besides `before` is shown; that one.
    async fn shown(&self, before: &str, at: &watch::Sender<Option<Step>>, steps: [Step; 3]) -> String {
        let whole = |status: &Status| {
            status.state() == "VALID"
                && status.text("activeTableName") == status.table()
                && status.table() != before
        };
        let mut status = self.until(|status| status.state() != "NEW" && status.table() != before).await;
        at.send_replace(Some(steps[0]));
        while !whole(&status) {
            self.base.try_fill(status.table(), [1, 2]).await;
            at.send_replace(Some(steps[1]));
            let table = status.table().to_owned();
            let on = |status: &Status| status.state() != "NEW" && (whole(status) || status.table() != table);
            status = self.until(on).await;
        }
        at.send_replace(Some(steps[2]));
        status.table().to_owned()
    }

    /// From creation over a refresh to the end.
    async fn live(&self, at: watch::Sender<Option<Step>>) {
        let reader = Reader::of(&self.base).await;
        let pipeline = json!({"apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
            "metadata": {"name": "app", "namespace": USERS}, "spec": {"appName": "app"}});
        let pipeline =
            self.pipelines.create(&PostParams::default(), &serde_json::from_value(pipeline).unwrap()).await;
        let uid = pipeline.unwrap().uid().unwrap();
        at.send_replace(Some(Step::Created));
        let first = self.shown("", &at, [Step::Started, Step::Filled, Step::Shown]).await;
        let refresh = Patch::Merge(json!({"spec": {"refresh": "now"}}));
        self.pipelines.patch("app", &PatchParams::default(), &refresh).await.unwrap();
        at.send_replace(Some(Step::Refreshed));
        self.shown(&first, &at, [Step::Again; 3]).await;
        reader.read_well(&format!("{:?}", *at.borrow())).await;
        self.pipelines.delete("app", &DeleteParams::default()).await.unwrap();
        at.send_replace(Some(Step::Deleted));
        let gone = await_condition(self.pipelines.clone(), "app", conditions::is_deleted(&uid));
        let gone = tokio::time::timeout(PATIENCE, gone).await;
        gone.unwrap_or_else(|_| panic!("it does not go\n{}", self.candidates.logs())).unwrap();
    }

    /// One life, in which the leader is stopped at `step`; whether there was another leader then.
    async fn round(&self, step: Step, stop: Stop) -> bool {
        let leader = self.candidates.leader(None).await;
        let (at, mut seen) = watch::channel(None);
        let stopping = async {
            drop(seen.wait_for(|at| *at >= Some(step)).await.unwrap());
            self.candidates.stop(leader, stop, || {}).await
        };
        let (succeeded, ()) = tokio::join!(stopping, self.live(at));
        succeeded
    }

    /// What must be true of all that was seen in so many rounds, with so many changes of the leader: the numbers.
    async fn judge(&self, rounds: usize, successions: usize) -> Value {
        let logs = || self.candidates.logs();
        // Whatever an awakened leader still did is taken away by the next pass, of which there is none without a pipeline.
        self.live(watch::channel(None).0).await;
        let lives = rounds + 1;
        let connectors = self.connectors.list(&ListParams::default()).await.unwrap().items;
        assert!(connectors.is_empty(), "{connectors:#?}\n{}", logs());
        assert_eq!(self.base.relations().await, Vec::<String>::new(), "{}", logs());
        for seen in self.statuses.all().values() {
            for pair in seen.windows(2) {
                let [old, new] = pair else { continue };
                if old["metadata"]["uid"] == new["metadata"]["uid"] {
                    let broken = illegal(&Status(old["status"].clone()), &Status(new["status"].clone()));
                    assert_eq!(broken, None, "{}", logs());
                }
            }
        }
        let app = self.base.admin(&self.base.app).await;
        let noted = "SELECT shown FROM public.audit WHERE what = $1 ORDER BY number";
        let noted = async |what: &str| -> Vec<String> {
            app.query(noted, &[&what]).await.unwrap().iter().filter_map(|row| row.get(0)).collect()
        };
        let (tables, mut views) = (noted("CREATE TABLE").await, noted("CREATE VIEW").await);
        let different: BTreeSet<_> = tables.iter().collect();
        assert_eq!(different.len(), tables.len(), "made twice: {tables:?}\n{}", logs());
        // A version that was begun when its maker was stopped is begun anew by whoever comes next.
        assert!(tables.len() <= 2 * lives + successions, "{tables:?}\n{}", logs());
        let moves = views.len();
        views.dedup();
        let shown: BTreeSet<_> = views.iter().collect();
        assert_eq!(shown.len(), views.len(), "the view went back: {views:?}\n{}", logs());
        for (name, seen) in self.made.all() {
            let uids: BTreeSet<_> = seen.iter().map(|it| it["metadata"]["uid"].to_string()).collect();
            assert_eq!(uids.len(), 1, "{name} was made twice\n{}", logs());
        }
        json!({"stopsOfPipelines": rounds, "successions": successions, "lives": lives, "tables": tables.len(), "viewMoves": moves,
            "viewsThatWentBack": 0, "orphans": 0, "failedReads": 0})
    }
}

fn seen(client: &Client, group: &str) -> Seen {
    let (version, kind) = if group.starts_with("kafka") {
        ("v1beta2", "KafkaConnector")
    } else {
        ("v1alpha1", "CyndiPipeline")
    };
    Seen::of(Api::<DynamicObject>::namespaced_with(client.clone(), USERS, &resource(group, version, kind)))
}

#[tokio::test(flavor = "multi_thread")]
async fn row_35_a_leader_that_stands_still_does_nothing_twice() {
    let mut row = Row::short(35, "leaders stopped in the life of a pipeline");
    // At the most talkative: what two processes and a server log in the course of it holds no password.
    let Some(place) = Place::new(None, "trace").await else { return };
    let rounds = [
        (Step::Filled, Stop::For(Duration::from_millis(200))),
        (Step::Started, Stop::UntilSucceeded),
        (Step::Refreshed, Stop::UntilSucceeded),
        (Step::Deleted, Stop::For(Duration::ZERO)),
    ];
    let mut successions = 0;
    for (step, stop) in rounds {
        successions += usize::from(place.round(step, stop).await);
    }
    let measured = place.judge(rounds.len(), successions).await;
    let logs = place.candidates.logs();
    assert!(logs.contains("TRACE") && successions >= 2, "{measured}");
    assert_eq!(hit([&logs]), None, "a password shows");
    row.measured(measured);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "an hour: scripts/soak runs it"]
async fn row_35_at_full_length() {
    let mut row = Row::full(35, "leaders stopped for 0 to 60 s in the life of a pipeline", percent());
    let clocks = has_clocks();
    let Some(place) = Place::new(Some("-30s").filter(|_| clocks), "info").await else { return };
    let (rounds, mut successions) = (scaled(100), 0);
    for (number, length) in lengths(rounds).into_iter().enumerate() {
        successions += usize::from(place.round(STEPS[number % STEPS.len()], Stop::For(length)).await);
    }
    let mut measured = place.judge(rounds, successions).await;
    measured["clocksApart"] = json!(if clocks { "30 s" } else { "no faketime: none" });
    row.measured(measured);
}
