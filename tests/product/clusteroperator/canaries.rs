//! Row 38 for the primer: Secrets that stand in a payload beside ClusterOperators, whole and broken. Of none of them anything is told.

use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::bench::Bench;
use crate::support::canaries::{hit, shows};
use crate::support::logs;
use crate::support::reliability::Row;

const BROKEN: [(&str, &str); 5] = [
    (
        "1.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {password: 'canary-payload-4751}\n",
    ),
    (
        "2.yaml",
        "apiVersion: v1\nkind: Secret\nmetadata: {name: b}\nstringData:\n  canary-payload-4752: x: y\n",
    ),
    (
        "3.json",
        "{\"apiVersion\": \"v1\", \"kind\": \"Secret\", \"stringData\": {\"password\": \"canary-payload-4753\"}",
    ),
    ("4.yaml", "kind: Secret\nkind: canary-payload-4754\n"),
    ("5.yaml", "apiVersion: v1\nkind: Secret\nstringData: {password: *canary-payload-4755}\n"),
];

#[tokio::test]
async fn row_38_secrets_of_a_payload_are_not_told() {
    let mut row = Row::short(38, "Secrets in a payload, whole and broken");
    let logs = logs::capture();
    let bench = Bench::new().await;
    let whole = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": "canary-payload-4750"}});
    bench.write("0.json", &whole.to_string());
    BROKEN.iter().for_each(|(file, text)| bench.write(file, text));
    bench.announce("dns");
    let primer = bench.start();
    bench.until_primed("dns").await;
    let counted = format!("cluster_operator_primed_total{{result=\"bad_manifest\"}} {}", BROKEN.len());
    primer.until_counted(&counted).await;
    let mut told = vec![primer.metrics()];
    primer.stop().await;
    let events: Api<Event> = Api::all(bench.admin.clone());
    let events = events.list(&ListParams::default()).await.unwrap().items;
    told.extend(events.iter().map(|event| json!(event).to_string()));
    let logged = logs.take();
    assert!(
        logged.contains("TRACE") && logged.contains("5.yaml") && shows(&whole.to_string()),
        "logs were captured: {logged}"
    );
    assert_eq!(hit(told.iter().chain([&logged])), None, "a secret shows");
    row.measured(json!({"manifestsWithSecrets": BROKEN.len() + 1}));
}
