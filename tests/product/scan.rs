//! `admit scan` against the embedded server: what stands there is reported, reports are written, and taken away again; and the
//! controller that keeps them.

use std::fs;
use std::process::{Command, Output};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::output_schemas::schema;
use crate::running::Workplace;
use crate::support::json_schema::complaints;

const POLICIES: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: not-seven}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {stage: prod}}
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - {expression: \"object.data[?'at'].orValue('') != '7'\", message: it is seven}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: not-seven}
spec: {policyName: not-seven, validationActions: [Deny]}
---
apiVersion: admit/v1
kind: PolicyException
metadata: {name: old-map}
spec: {policies: [not-seven], names: [old], until: '2999-12-31', reason: it is being moved}
";

async fn fill(client: &Client) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let create = PostParams::default();
    let namespace = json!({"metadata": {"name": "shop", "labels": {"stage": "prod"}}});
    namespaces.create(&create, &serde_json::from_value(namespace).unwrap()).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
    for (name, at) in [("new", "7"), ("old", "7"), ("fine", "8")] {
        let map = json!({"metadata": {"name": name}, "data": {"at": at}});
        maps.create(&create, &serde_json::from_value(map).unwrap()).await.unwrap();
    }
}

fn scan(place: &Workplace, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["scan", "--kubeconfig"]).arg(place.kubeconfig()).args(["--policies", "scan.yaml"]);
    command.args(args).current_dir(place.path()).output().unwrap()
}

fn reports(client: &Client, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
}

async fn found(api: &Api<DynamicObject>, namespace: &str) -> Option<Value> {
    let all = api.list(&Default::default()).await.unwrap();
    let of = |object: &&DynamicObject| object.metadata.namespace.as_deref().unwrap_or_default() == namespace;
    all.items.iter().find(of).map(|object| object.data.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_is_reported_and_the_reports_are_kept() {
    let place = Workplace::new();
    fs::write(place.path().join("scan.yaml"), POLICIES).unwrap();
    let running = place.start_with(&["--crds", "deploy/crds", "--crds", "deploy/reports"]);
    let client = place.client().await;
    fill(&client).await;

    let told = scan(&place, &["-o", "json"]);
    let said = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(1), "{said}");
    let document: Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(complaints(&schema("scan"), &document), Vec::<String>::new());
    let of_shop = |kind: &str| {
        let items = document["items"].as_array().unwrap();
        items
            .iter()
            .find(|item| item["kind"] == kind && item["metadata"]["namespace"] == "shop")
            .unwrap()
            .clone()
    };
    let report = of_shop("Report");
    // One map is the cluster's own.
    assert_eq!(report["summary"], json!({"pass": 2, "fail": 1, "warn": 0, "error": 0, "skip": 1}));
    assert_eq!(report["results"][0]["message"], "it is seven");
    assert_eq!(report["results"][0]["resources"][0]["name"], "new");
    assert!(!report["results"][0]["resources"][0]["uid"].as_str().unwrap().is_empty());
    assert_eq!(
        report["results"][1]["properties"],
        json!({"exception": "old-map", "exceptionReason": "it is being moved", "exceptionUntil": "3000-01-01T00:00:00Z"})
    );
    let open = reports(&client, "openreports.io", "v1alpha1", "Report");
    let policy = reports(&client, "wgpolicyk8s.io", "v1alpha2", "PolicyReport");
    assert_eq!(found(&open, "shop").await, None, "nothing is written unless it is asked for");

    for _ in 0..2 {
        let told = scan(&place, &["--apply"]);
        assert_eq!(told.status.code(), Some(1), "{}", String::from_utf8_lossy(&told.stderr));
    }
    let written = found(&open, "shop").await.unwrap();
    assert_eq!((&written["summary"], &written["results"]), (&report["summary"], &report["results"]));
    assert_eq!(found(&policy, "shop").await.unwrap()["results"], of_shop("PolicyReport")["results"]);

    // What is gone has no report any more; what others wrote stays.
    let theirs = json!({"apiVersion": "openreports.io/v1alpha1", "kind": "Report", "metadata": {"name": "theirs", "namespace": "shop"}});
    let in_shop: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        "shop",
        &ApiResource::from_gvk(&GroupVersionKind::gvk("openreports.io", "v1alpha1", "Report")),
    );
    in_shop.create(&PostParams::default(), &serde_json::from_value(theirs).unwrap()).await.unwrap();
    fs::write(place.path().join("scan.yaml"), POLICIES.replace("configmaps", "secrets")).unwrap();
    let told = scan(&place, &["--apply"]);
    assert_eq!(told.status.code(), Some(0), "{}", String::from_utf8_lossy(&told.stderr));
    let left: Vec<String> = in_shop
        .list(&Default::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|report| report.metadata.name)
        .collect();
    assert_eq!(left, ["theirs"]);
    assert_eq!(found(&policy, "shop").await, None);
    running.terminate();
}

/// Exceptions that lie in the cluster are honoured where they are asked for.
#[tokio::test(flavor = "multi_thread")]
async fn exceptions_of_the_cluster_are_reported() {
    let place = Workplace::new();
    fs::write(place.path().join("scan.yaml"), POLICIES).unwrap();
    let running = place.start();
    let client = place.client().await;
    fill(&client).await;
    let kind = GroupVersionKind::gvk("policies.admit.dev", "v1", "PolicyException");
    let exceptions: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "shop", &ApiResource::from_gvk(&kind));
    let exception = json!({
        "apiVersion": "policies.admit.dev/v1", "kind": "PolicyException", "metadata": {"name": "sale", "namespace": "shop"},
        "spec": {"policies": ["not-seven", "of-others"], "names": ["new"], "until": "2999-12-31", "reason": "the sale"},
    });
    exceptions.create(&PostParams::default(), &serde_json::from_value(exception).unwrap()).await.unwrap();
    assert_eq!(scan(&place, &[]).status.code(), Some(1), "nobody asks for it");
    let told = scan(&place, &["-o", "json", "--cluster-exceptions"]);
    assert_eq!(told.status.code(), Some(0), "{}", String::from_utf8_lossy(&told.stderr));
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(text.contains("\"exception\": \"shop/sale\""), "{text}");
    let mut check = Command::new(env!("CARGO_BIN_EXE_admit"));
    check.args(["check", "--policies", "scan.yaml", "--cluster-exceptions", "--kubeconfig"]);
    let told = check.arg(place.kubeconfig()).current_dir(place.path()).output().unwrap();
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert_eq!(told.status.code(), Some(0), "{text}");
    assert!(text.contains("exception 'shop/sale' lets it through"), "{text}");
    running.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_definitions_of_reports_the_remedy_is_told() {
    let place = Workplace::new();
    fs::write(place.path().join("scan.yaml"), POLICIES).unwrap();
    let running = place.start();
    let told = scan(&place, &["--apply"]);
    let said = String::from_utf8_lossy(&told.stderr);
    assert_eq!(told.status.code(), Some(2), "{said}");
    assert!(said.contains("kubectl apply -k deploy/reports"), "{said}");
    running.terminate();
}

/// Of a server whose controller scans every second.
const SCANNING: [&str; 10] = [
    "--crds",
    "deploy/crds",
    "--crds",
    "deploy/reports",
    "--controllers",
    "scan",
    "--scan-policies",
    "scan.yaml",
    "--scan-every",
    "1s",
];

#[tokio::test(flavor = "multi_thread")]
async fn the_controller_keeps_reports() {
    let place = Workplace::new();
    fs::write(place.path().join("scan.yaml"), POLICIES).unwrap();
    let told = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["up", "--controllers", "scan"])
        .current_dir(place.path())
        .output()
        .unwrap();
    assert_eq!(told.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&told.stderr).contains("needs --scan-policies"));

    let running = place.start_with(&SCANNING);
    let client = place.client().await;
    fill(&client).await;
    let open: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        "shop",
        &ApiResource::from_gvk(&GroupVersionKind::gvk("openreports.io", "v1alpha1", "Report")),
    );
    let fails = |count: u64| {
        move |report: Option<&DynamicObject>| {
            report.is_some_and(|report| report.data["summary"]["fail"] == json!(count))
        }
    };
    let wait = Duration::from_mins(1);
    tokio::time::timeout(wait, await_condition(open.clone(), "admit-scan", fails(1)))
        .await
        .expect("reports")
        .unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop");
    maps.delete("new", &DeleteParams::default()).await.unwrap();
    tokio::time::timeout(wait, await_condition(open, "admit-scan", fails(0)))
        .await
        .expect("follows")
        .unwrap();
    running.terminate();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_that_takes_too_long_changes_no_report() {
    let place = Workplace::new();
    fs::write(place.path().join("scan.yaml"), POLICIES).unwrap();
    let running = place.start_with(&[SCANNING.as_slice(), &["--scan-timeout", "1ns"]].concat());
    let client = place.client().await;
    fill(&client).await;
    let told = async {
        while !place.log().contains("--scan-timeout gives it longer") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), told).await.expect("says that time is over");
    let reports = reports(&client, "openreports.io", "v1alpha1", "Report");
    assert_eq!(reports.list(&ListParams::default()).await.unwrap().items.len(), 0);
    running.terminate();
}
