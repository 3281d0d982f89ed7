//! Row 38 for pipelines: the passwords of both databases, in every kind of failure that they may be in the middle of. None is in a
//! log at its most talkative, an event, a status, a metric, the text of an error of SQL, what a panic would print, or a connector,
//! but for environments that do not last.

use admit::controllers::cyndi::Settings;
use admit::controllers::cyndi::inspect::{planned, validated};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::bench::{Bench, Running, USERS};
use crate::support::canaries::{hit, shows};
use crate::support::logs;
use crate::support::postgres::PASSWORD;
use crate::support::reliability::Row;

/// A server that asks for the password as it is, and quotes it in every field of its refusal. Its port.
async fn quoting() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(quote(stream));
        }
    });
    port
}

async fn quote(mut stream: TcpStream) -> std::io::Result<()> {
    let length = stream.read_u32().await?;
    let mut startup = vec![0; usize::try_from(length).unwrap() - 4];
    stream.read_exact(&mut startup).await?;
    stream.write_all(b"R\0\0\0\x08\0\0\0\x03").await?;
    let (_kind, length) = (stream.read_u8().await?, stream.read_u32().await?);
    let mut password = vec![0; usize::try_from(length).unwrap() - 4];
    stream.read_exact(&mut password).await?;
    password.pop();
    let password = String::from_utf8(password).unwrap();
    let told = format!("{password} \"{password}\" {} {}", STANDARD.encode(&password), json!(password));
    let mut fields = Vec::new();
    for (field, text) in
        [(b'S', "FATAL"), (b'C', "XX000"), (b'M', &*told), (b'D', &*told), (b'H', &*told), (b'q', &*told)]
    {
        fields.push(field);
        fields.extend(text.bytes().chain([0]));
    }
    fields.push(0);
    stream.write_all(b"E").await?;
    stream.write_u32(u32::try_from(fields.len() + 4).unwrap()).await?;
    stream.write_all(&fields).await
}

/// Denies connectors, and quotes the login that stands in them.
fn quoting_policy() -> [Value; 2] {
    let of = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "quoting"}, "spec": spec});
    let rules = json!([{"apiGroups": ["kafka.strimzi.io"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["kafkaconnectors"]}]);
    let quoted = "'not with ' + object.spec.config['connection.password'] + ' in it: ' + object.spec.config['connection.url']";
    [
        of(
            "ValidatingAdmissionPolicy",
            json!({"matchConstraints": {"resourceRules": rules},
                "validations": [{"expression": "object.metadata.name == ''", "messageExpression": quoted}]}),
        ),
        of(
            "ValidatingAdmissionPolicyBinding",
            json!({"policyName": "quoting", "validationActions": ["Deny"]}),
        ),
    ]
}

struct Place {
    bench: Bench,
    /// All that was told so far, besides logs.
    told: Vec<String>,
    failures: usize,
}

impl Place {
    /// Puts `members` into a Secret, has both controllers and both commands come upon that, and takes it back.
    async fn fails(&mut self, running: &Running, name: &str, members: Value) {
        let secrets: Api<Secret> = Api::namespaced(self.bench.cluster.admin.clone(), USERS);
        let patch = async |members: &Value| {
            let patch = Patch::Merge(json!({"stringData": members}));
            secrets.patch(name, &PatchParams::default(), &patch).await.unwrap();
        };
        let there = secrets.get(name).await.unwrap();
        patch(&members).await;
        self.failures += 1;
        self.bench.change(&json!({"refresh": self.failures.to_string()})).await;
        running.until_failed(1).await;
        self.ask(&Settings::default()).await;
        self.told.push(running.metrics());
        let before = |key: &String| {
            let bytes = &there.data.as_ref().unwrap()[key].0;
            (key.clone(), Value::from(String::from_utf8(bytes.clone()).unwrap()))
        };
        patch(&members.as_object().unwrap().keys().map(before).collect()).await;
    }

    /// What the commands say, and what would be printed of their errors.
    async fn ask(&mut self, settings: &Settings) {
        let client = || self.bench.cluster.admin.clone();
        let (plan, verdict) = (
            planned(client(), settings.clone(), USERS, "app").await,
            validated(client(), settings.clone(), USERS, "app").await,
        );
        self.told.extend([format!("{plan:?}"), format!("{verdict:?}"), format!("{settings:?}")]);
        self.told.extend([plan.err(), verdict.err()].into_iter().flatten().map(|error| error.to_string()));
    }

    /// With logins in connectors, of which one is denied with the login in the denial.
    async fn of_literals(&mut self) {
        for document in quoting_policy() {
            self.bench.cluster.create(&document).await;
        }
        let settings = Settings { ephemeral: true, ..Settings::default() };
        let running = self.bench.start_with(&settings);
        self.bench.create(&json!({})).await;
        self.bench.until_event("ReconcileFailed", "not with").await;
        self.ask(&settings).await;
        self.failures += 1;
        self.told.push(running.metrics());
        running.end().await;
    }

    /// All objects that people read.
    async fn objects(&mut self) -> usize {
        let events: Api<Event> = Api::all(self.bench.cluster.admin.clone());
        let events = events.list(&ListParams::default()).await.unwrap().items;
        let operators = self.bench.cluster.objects("config.openshift.io", "v1", "ClusterOperator");
        for objects in [&self.bench.pipelines, &self.bench.connectors, &operators] {
            self.told.push(json!(objects.list(&ListParams::default()).await.unwrap().items).to_string());
        }
        self.told.extend(events.iter().map(|event| json!(event).to_string()));
        events.len()
    }
}

#[tokio::test]
async fn row_38_no_failure_of_a_pipeline_tells_a_password() {
    let mut row = Row::short(38, "passwords of databases, in every kind of failure of a pipeline");
    let logs = logs::capture();
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let mut place = Place { bench, told: Vec::new(), failures: 0 };
    let running = place.bench.start();
    place.bench.create(&json!({})).await;
    place.bench.until_started().await;
    let port = quoting().await.to_string();
    for name in ["app-db", "host-inventory-read-only-db"] {
        for members in [
            json!({"db.password": "canary-wrong-4719"}),
            json!({"db.password": "canary '\"\\\n$(id) ${env:X} \u{e9}4720"}),
            json!({"db.port": "canary-port"}),
            json!({"db.port": "1"}),
            json!({"db.host": "127.0.0.1\n", "db.password": "canary-host-4721"}),
            json!({"db.port": port}),
            json!({"db.port": port, "db.password": "canary&<4722>\"'"}),
        ] {
            place.fails(&running, name, members).await;
        }
    }
    place
        .bench
        .change(&json!({"additionalFilters": [{"name": "mine", "where": "no_such_column = 1"}]}))
        .await;
    running.until_failed(1).await;
    place.ask(&Settings::default()).await;
    // What is to go and cannot says so in a condition.
    place.bench.change(&json!({"additionalFilters": []})).await;
    let secrets: Api<Secret> = Api::namespaced(place.bench.cluster.admin.clone(), USERS);
    let wrong = Patch::Merge(json!({"stringData": {"db.password": "canary-wrong-4723"}}));
    secrets.patch("app-db", &PatchParams::default(), &wrong).await.unwrap();
    place.bench.delete().await;
    place.bench.until(|status| status.0["conditions"].to_string().contains("CleanedUp")).await;
    place.objects().await;
    let right = Patch::Merge(json!({"stringData": {"db.password": PASSWORD}}));
    secrets.patch("app-db", &PatchParams::default(), &right).await.unwrap();
    place.bench.cluster.gone(&place.bench.pipelines, "app").await;
    place.told.push(running.metrics());
    running.end().await;
    place.of_literals().await;
    let logged = logs.take();
    let events = place.objects().await;
    assert!(logged.contains("TRACE") && logged.contains("reconciliation failed"), "logs were captured");
    assert!(shows(PASSWORD) && shows(&STANDARD.encode(PASSWORD)), "what is looked for is found");
    assert_eq!(hit(place.told.iter().chain([&logged])), None, "a password shows");
    assert!(events > 0 && place.failures >= 15, "{events} events, {} failures", place.failures);
    row.measured(json!({"failuresOfPipelines": place.failures, "events": events, "logLines": logged.lines().count(), "hits": 0}));
}
