//! Secrets that change while pipelines run, and the first login of an application (CY §4).

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::bench::{Bench, USERS};
use crate::support::logs;
use crate::support::postgres::PASSWORD;

async fn patch(bench: &Bench, name: &str, texts: serde_json::Value) {
    let secrets: Api<Secret> = Api::namespaced(bench.cluster.admin.clone(), USERS);
    let patch = Patch::Merge(json!({"stringData": texts}));
    secrets.patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// Looks that come by themselves come once an hour.
async fn seldom(bench: &Bench) {
    for key in ["standard.interval", "init.validation.interval", "validation.interval"] {
        bench.configure(key, "3600").await;
    }
}

#[tokio::test]
async fn cy_04_a_new_password_is_used_at_once() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    seldom(&bench).await;
    let running = bench.start();
    bench.create(&json!({})).await;
    let first = bench.until_started().await;
    let admin = bench.pair.admin(&bench.pair.app).await;
    let rotated = format!("ALTER ROLE {} PASSWORD 'canary-rotated-8823'", bench.pair.user);
    admin.batch_execute(&rotated).await.unwrap();
    let gone = format!("DROP TABLE inventory.{}", first.table());
    admin.batch_execute(&gone).await.unwrap();
    for name in ["host-inventory-read-only-db", "app-db"] {
        patch(&bench, name, json!({"db.password": "canary-rotated-8823"})).await;
    }
    // The look that the change leads to finds that the table is gone.
    bench.until_built_anew(first.table()).await;
    running.stop(&bench).await;
}

/// The controller of validations hears of it as well: of the inventory's Secret, and of one that was missing.
#[tokio::test]
async fn cy_04_a_secret_that_comes_is_used_at_once() {
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    seldom(&bench).await;
    let running = bench.start();
    bench.create(&json!({"inventoryDbSecret": "later"})).await;
    bench.until_event("ReconcileFailed", "Secret later not found").await;
    bench.secret("later", &bench.pair.inventory).await;
    let first = bench.until_started().await;
    bench.until(|status| status.0["validationFailedCount"] == 1).await;
    bench.pair.fill(first.table(), [1]).await;
    patch(&bench, "later", json!({"more": "x"})).await;
    bench.until(|status| status.state() == "VALID").await;
    running.stop(&bench).await;
}

#[tokio::test]
async fn cy_04_the_first_login_is_by_a_second_secret_or_not_at_all() {
    let logs = logs::capture();
    let Some(bench) = Bench::new().await else { return };
    bench.pair.hosts([1]).await;
    let admin = bench.pair.admin(&bench.pair.app).await;
    let made = format!("ALTER ROLE {} PASSWORD 'canary-initial-4417'", bench.pair.user);
    admin.batch_execute(&made).await.unwrap();
    let running = bench.start();
    bench.create(&json!({})).await;
    bench.until_event("ReconcileFailed", "the database refuses the password of the Secret").await;
    bench.configure("db.initialPasswordSecret", "app-db-initial").await;
    let initial = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "app-db-initial", "namespace": USERS},
        "stringData": {"db.password": "canary-initial-4417"}});
    bench.cluster.create(&initial).await;
    let started = bench.until_started().await;
    bench
        .until_event(
            "PasswordSet",
            "Secret app-db was given its password, by the initial one of Secret app-db-initial",
        )
        .await;
    bench.pair.fill(started.table(), [1]).await;
    bench.until_shown(started.table()).await;
    // What the server has is no password, and is that of the Secret.
    let stored = "SELECT rolpassword FROM pg_authid WHERE rolname = $1";
    let stored: String = admin.query_one(stored, &[&bench.pair.user]).await.unwrap().get(0);
    assert!(stored.starts_with("SCRAM-SHA-256$4096:") && !stored.contains(PASSWORD), "{stored}");
    running.stop(&bench).await;
    // The statement that sets it is in no log: what is in there could be guessed at by whoever reads it.
    let logged = logs.take();
    assert!(logged.contains("TRACE") && !logged.contains("SCRAM-SHA-256$"), "{logged}");
}
