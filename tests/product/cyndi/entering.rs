//! Kafka Connect that lets nobody in without a login (CY §10): by a Secret or by files, rotated while pipelines run, and shown nowhere.

use std::fs;

use admit::controllers::cyndi::connect::{Connect, LoginSource};
use admit::controllers::cyndi::{Settings, inspect::planned};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::bench::{Bench, Status, USERS};
use crate::support::canaries::hit;
use crate::support::connect::Manner;
use crate::support::logs;

const TOPIC: &str = "platform.inventory.events";
/// Where the Secret is: beside the controllers, and no pipeline.
const PLACE: (&str, &str) = ("cyndi", "connect-login");
const WORDS: &str = "cannot list connectors: Kafka Connect wants another login (401)";

fn basic(password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("robot:{password}")))
}

/// A pipeline over a host, and settings with this login.
async fn with_login(source: LoginSource) -> Option<(Bench, Settings)> {
    let bench = Bench::with_connect(Manner::default()).await?;
    bench.pair.hosts([1]).await;
    bench.connect().publish(TOPIC, 1);
    let settings = bench.settings();
    let connect = settings.connect.clone().map(|connect| connect.entering_by(source).unwrap());
    Some((bench, Settings { connect, ..settings }))
}

async fn write_secret(bench: &Bench, members: Value) {
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), PLACE.0);
    let object =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": PLACE.1}, "stringData": members});
    secrets.patch(PLACE.1, &PatchParams::apply("tests").force(), &Patch::Apply(object)).await.unwrap();
}

async fn until_shown(bench: &Bench, before: &str) -> Status {
    bench
        .until(|status| {
            status.state() == "VALID"
                && status.text("activeTableName") == status.table()
                && status.table() != before
        })
        .await
}

/// What a look comes to.
async fn looked(bench: &Bench, settings: &Settings) -> String {
    match planned(bench.cluster.admin.clone(), settings.clone(), USERS, "app").await {
        Ok(found) => found.step().0.to_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn cy_10_13_a_login_of_a_secret_is_used_and_a_changed_one_counts() {
    let logs = logs::capture();
    let source = LoginSource::Secret { namespace: PLACE.0.to_owned(), name: PLACE.1.to_owned() };
    let Some((bench, settings)) = with_login(source).await else { return };
    bench.connect().admit_only(basic("canary-connect-1"));
    let running = bench.start_with(&settings);
    bench.create(&json!({})).await;
    bench.until_event("ReconcileFailed", "cannot read Secret cyndi/connect-login").await;
    write_secret(&bench, json!({"username": "robot"})).await;
    let none = looked(&bench, &settings).await;
    assert_eq!(none, "Secret cyndi/connect-login has neither username and password nor token");
    write_secret(&bench, json!({"username": "robot", "password": "canary-connect-0"})).await;
    assert!(looked(&bench, &settings).await.starts_with(WORDS), "{}", looked(&bench, &settings).await);
    assert!(bench.connectors().await.is_empty());
    write_secret(&bench, json!({"username": "robot", "password": "canary-connect-1"})).await;
    let first = until_shown(&bench, "").await;

    bench.connect().admit_only(basic("canary-connect-2"));
    assert!(looked(&bench, &settings).await.starts_with(WORDS));
    write_secret(&bench, json!({"username": "robot", "password": "canary-connect-2"})).await;
    bench.change(&json!({"refresh": "now"})).await;
    let second = until_shown(&bench, first.table()).await;
    bench.until_there(&["hosts", second.table()], &[second.connector()]).await;
    bench.delete().await;
    bench.cluster.gone(&bench.pipelines, "app").await;
    running.stop(&bench).await;
    let told = [logs.take(), format!("{settings:?}")];
    assert!(told[0].contains("TRACE"), "logs were captured");
    assert_eq!(hit(&told), None, "a login shows");
}

#[tokio::test]
async fn cy_10_13_a_token_of_a_file_is_used_and_a_changed_one_counts() {
    let logs = logs::capture();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    fs::write(&file, "canary-token-1\n").unwrap();
    let Some((bench, settings)) = with_login(LoginSource::TokenFile(file.clone())).await else { return };
    bench.connect().admit_only("Bearer canary-token-1".to_owned());
    let running = bench.start_with(&settings);
    bench.create(&json!({})).await;
    let first = until_shown(&bench, "").await;
    bench.connect().admit_only("Bearer canary-token-2".to_owned());
    assert!(looked(&bench, &settings).await.starts_with(WORDS));
    fs::remove_file(&file).unwrap();
    let gone = looked(&bench, &settings).await;
    assert!(gone.starts_with("cannot read the login of Kafka Connect from "), "{gone}");
    fs::write(&file, "canary-token-2").unwrap();
    assert_eq!(looked(&bench, &settings).await, "nothing");
    // Nothing was concluded from being kept out.
    assert_eq!(until_shown(&bench, "").await.table(), first.table());
    running.stop(&bench).await;
    assert_eq!(hit(&[logs.take()]), None, "a token shows");
}

/// As soon as it is known, and before anybody is asked.
#[test]
fn cy_10_13_files_without_a_login_are_refused_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("login");
    fs::write(&file, "canary").unwrap();
    let connect = Connect::new("http://127.0.0.1:8083", None).unwrap();
    let refused = connect.entering_by(LoginSource::LoginFile(file.clone())).unwrap_err().to_string();
    assert_eq!(refused, format!("{} has no USER:PASSWORD in one line", file.display()));
}
