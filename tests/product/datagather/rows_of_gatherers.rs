//! What gatherers collect from a cluster with something to collect: the embedded API server, asked by the account that gathers with
//! nothing but the shipped roles. Whatever a gatherer reads, its role has to allow; nothing may be refused.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use admit::gather::archive::GATHERS;
use admit::gather::collect::{Row, Verdict, collect};
use admit::gather::recorder::Recorder;
use admit::gather::{Context, GATHERERS, remote};
use admit_apiserver::{LogError, LogOptions, LogStream, PodLogs};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use futures::{StreamExt, stream};
use jiff::{Timestamp, ToSpan as _};
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::archive::{archive, entries, spool};
use super::rights::Shipped;
use crate::support::shipped::{create, documents};

pub(super) const DIGEST: &str = "sha256:0ca0e25cc4b5a9444bca109bf54cf9ff57839b2e64ed6fe9102f7ea5611fec1c";

/// A log of so many lines for each container; that of `panics` ends in a stack trace.
#[derive(Debug)]
struct Lines;

impl PodLogs for Lines {
    fn open(&self, _pod: &Value, options: LogOptions) -> Result<LogStream, LogError> {
        let LogOptions { container, previous, tail, timestamps, .. } = options;
        assert!(timestamps && tail.is_some(), "all of a log is asked for");
        if container == "waiting" {
            return Err(LogError::Refused("container \"waiting\" is waiting to start".to_owned()));
        }
        let mut lines: Vec<String> = (0..3_000).map(|n| format!("{container} {previous} {n}\n")).collect();
        if container == "panics" {
            lines.extend((0..90).map(|n| format!("\t/src/main.go:{n} +0x1d\n")));
            lines.push("exit status 2\n".to_owned());
        }
        let from = lines.len().saturating_sub(usize::try_from(tail.unwrap()).unwrap());
        let lines = lines.split_off(from).into_iter().map(|line| Ok(Bytes::from(line)));
        Ok(stream::iter(lines.collect::<Vec<_>>()).boxed())
    }
}

/// Creates what `document` describes, with its status.
pub(super) async fn put(shipped: &Shipped, document: Value) {
    create(&shipped.admin, &document).await;
    if document["status"].is_null() {
        return;
    }
    let kind: DynamicObject = serde_json::from_value(document.clone()).unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(kind.types.as_ref().unwrap()).unwrap());
    let api: Api<DynamicObject> = match document["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(shipped.admin.clone(), namespace, &resource),
        None => Api::all_with(shipped.admin.clone(), &resource),
    };
    let patch = Patch::Merge(json!({"status": document["status"]}));
    let name = document["metadata"]["name"].as_str().unwrap();
    api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
}

pub(super) async fn put_namespace(shipped: &Shipped, name: &str) {
    put(shipped, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
}

async fn put_operator(shipped: &Shipped, name: &str, conditions: &[(&str, &str)], related: Value) {
    let condition = |(type_, status): &(&str, &str)| json!({"type": type_, "status": status, "lastTransitionTime": "2026-11-22T10:00:00Z", "reason": "R"});
    let conditions: Vec<_> = conditions.iter().map(condition).collect();
    let operator = json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}, "spec": {},
        "status": {"conditions": conditions, "relatedObjects": related},
    });
    put(shipped, operator).await;
}

pub(super) fn pod(namespace: &str, name: &str, containers: &[&str], status: &Value) -> Value {
    let variable = json!({"name": "HTTPS_PROXY", "value": "http://user:canary@proxy"});
    let container =
        |name: &&str| json!({"name": name, "image": "a/b:1", "command": ["/bin/till"], "env": [variable]});
    let containers: Vec<_> = containers.iter().map(container).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace},
        "spec": {"nodeName": "one", "containers": containers}, "status": status,
    })
}

pub(super) fn running(containers: &[&str], restarts: u32) -> Value {
    let status = |name: &&str| json!({"name": name, "image": "a/b:1", "imageID": format!("a/b@{DIGEST}"), "ready": true, "restartCount": restarts});
    json!({"phase": "Running", "containerStatuses": containers.iter().map(status).collect::<Vec<_>>()})
}

fn event(name: &str, at: Timestamp) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": name, "namespace": "openshift-dns"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "openshift-dns"},
        "lastTimestamp": at.strftime("%FT%TZ").to_string(), "reason": "BackOff", "message": name, "type": "Warning",
    })
}

/// The archive's records by path, and a row for each gatherer of a group.
pub(super) async fn gathered(shipped: &Shipped, wanted: &str) -> (Vec<(String, String)>, Vec<Row>) {
    gathered_by(context(shipped), wanted).await
}

pub(super) fn context(shipped: &Shipped) -> Context {
    Context {
        client: shipped.controllers.clone(),
        namespace_prefix: "openshift-".to_owned(),
        config_namespace: "kube-system".to_owned(),
        now: Timestamp::now(),
        interval: Duration::from_hours(2),
        remote: Arc::default(),
        agents: None,
        recorder: Recorder::new(spool(None)),
    }
}

pub(super) async fn gathered_by(context: Context, wanted: &str) -> (Vec<(String, String)>, Vec<Row>) {
    let chosen = GATHERERS.iter().filter(|gatherer| gatherer.id.starts_with(wanted)).collect();
    let rows = collect(chosen, &context, NonZeroUsize::new(4).unwrap()).await;
    let read = entries(&archive(context.recorder.close().unwrap(), &[]));
    let mut records: Vec<_> = read.into_iter().map(|entry| (entry.path, entry.text)).collect();
    records.retain(|(path, _)| path != GATHERS && path != remote::PATH);
    records.sort();
    (records, rows)
}

pub(super) fn row<'r>(rows: &'r [Row], id: &str) -> &'r Row {
    rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row {id}"))
}

pub(super) fn record<'r>(records: &'r [(String, String)], path: &str) -> &'r str {
    let found = records.iter().find(|(found, _)| found == path);
    &found
        .unwrap_or_else(|| panic!("no {path} in {:?}", records.iter().map(|(p, _)| p).collect::<Vec<_>>()))
        .1
}

/// An operator that ails and one that does not, with what they relate to.
async fn failing_cluster() -> Shipped {
    let shipped = Shipped::new().await;
    shipped.server.set_pod_logs(Arc::new(Lines));
    for document in documents("deploy/crds/clusteroperators.yaml")
        .iter()
        .chain(&documents("deploy/crds/mustgathers.yaml"))
    {
        create(&shipped.admin, document).await;
    }
    for namespace in ["openshift-dns", "openshift-well", "shop"] {
        put_namespace(&shipped, namespace).await;
    }
    let of = |group: &str, resource: &str, namespace: &str, name: &str| json!({"group": group, "resource": resource, "namespace": namespace, "name": name});
    let related = json!([
        of("", "namespaces", "", "openshift-dns"),
        of("", "namespaces", "", "shop"),
        of("operator.openshift.io", "mustgathers", "openshift-dns", "first"),
        of("operator.openshift.io", "dnses", "", "default"),
        of("samples.operator.openshift.io", "configs", "", "cluster"),
    ]);
    put_operator(&shipped, "dns", &[("Degraded", "True"), ("Available", "True")], related).await;
    let well = json!([of("", "namespaces", "", "openshift-well")]);
    put_operator(&shipped, "well", &[("Degraded", "False"), ("Available", "True")], well).await;
    let mut must_gather = json!({
        "apiVersion": "operator.openshift.io/v1alpha1", "kind": "MustGather",
        "metadata": {"name": "first", "namespace": "openshift-dns"}, "spec": {"mustGatherTimeout": "5m"},
    });
    put(&shipped, must_gather.clone()).await;
    must_gather["metadata"] = json!({"name": "unrelated", "namespace": "openshift-dns"});
    put(&shipped, must_gather).await;
    put(&shipped, pod("openshift-dns", "good", &["good"], &running(&["good"], 0))).await;
    put(&shipped, pod("openshift-dns", "bad", &["panics", "waiting"], &running(&["panics", "waiting"], 3)))
        .await;
    put(&shipped, pod("openshift-well", "other", &["other"], &running(&["other"], 3))).await;
    put(&shipped, pod("shop", "private", &["private"], &running(&["private"], 3))).await;
    let now = Timestamp::now();
    for (name, hours) in [("old", 3), ("newer", 1), ("new", 0)] {
        put(&shipped, event(name, now - hours.hours())).await;
    }
    shipped
}

#[tokio::test]
async fn around_an_operator_that_ails_pods_logs_and_events_are_gathered() {
    let shipped = failing_cluster().await;
    let (records, rows) = gathered(&shipped, "clusterconfig/operators").await;
    let paths: Vec<_> = records.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "config/clusteroperator/dns.json",
            "config/clusteroperator/operator.openshift.io/mustgather/openshift-dns/first.json",
            "config/clusteroperator/well.json",
            "config/pod/openshift-dns/bad.json",
            "config/pod/openshift-dns/logs/bad/panics_current.log",
            "config/pod/openshift-dns/logs/bad/panics_previous.log",
            "config/pod/openshift-dns/logs/good/good_current.log",
            "events/openshift-dns.json",
        ]
    );
    let good = record(&records, "config/pod/openshift-dns/logs/good/good_current.log");
    assert_eq!((good.lines().count(), good.lines().next()), (100, Some("good false 2900")));
    // Of 91 lines the trace, whose middle is left out, with twenty lines before it and all after.
    let panics = record(&records, "config/pod/openshift-dns/logs/bad/panics_previous.log");
    let lines: Vec<_> = panics.lines().collect();
    assert_eq!(
        (lines[0], lines[35]),
        ("panics true 2980", "... (69 stacktrace lines suppressed) ..."),
        "{panics}"
    );
    assert_eq!((lines.len(), lines[42]), (43, "exit status 2"), "{panics}");
    let bad = record(&records, "config/pod/openshift-dns/bad.json");
    assert!(bad.contains("\"HTTPS_PROXY\"") && !bad.contains("canary"), "{bad}");
    let events: Value = serde_json::from_str(record(&records, "events/openshift-dns.json")).unwrap();
    let messages: Vec<_> =
        events["items"].as_array().unwrap().iter().map(|event| &event["message"]).collect();
    assert_eq!(messages, ["newer", "new"]);
    let first =
        record(&records, "config/clusteroperator/operator.openshift.io/mustgather/openshift-dns/first.json");
    let first: Value = serde_json::from_str(first).unwrap();
    assert_eq!(
        (&first["spec"]["mustGatherTimeout"], &first["metadata"]),
        (&json!("5m"), &Value::Null),
        "{first}"
    );

    told_about_failing_cluster(&rows);
}

fn told_about_failing_cluster(rows: &[Row]) {
    let around = row(rows, "clusterconfig/operators_pods_and_events");
    assert_eq!(around.verdict, Verdict::Gathered { records: 5 });
    let told = around.warnings.join("\n");
    assert!(told.contains("their names do not begin with `openshift-`: shop"), "{told}");
    assert!(told.contains("container waiting of pod openshift-dns/bad is not there"), "{told}");
    let operators = row(rows, "clusterconfig/operators");
    assert_eq!(operators.verdict, Verdict::Gathered { records: 3 });
    let told = operators.warnings.join("\n");
    assert!(told.contains("dnses.operator.openshift.io default is not there"), "{told}");
    assert!(
        told.contains("configs.samples.operator.openshift.io cluster is not read: its group is not served"),
        "{told}"
    );
}

#[tokio::test]
async fn workloads_are_counted_and_their_namespaces_hashed() {
    let shipped = Shipped::new().await;
    put_namespace(&shipped, "shop").await;
    for name in ["a", "b"] {
        put(&shipped, pod("shop", name, &["till"], &running(&["till"], 0))).await;
    }
    put(&shipped, pod("shop", "done", &["till"], &json!({"phase": "Succeeded"}))).await;
    for (name, labels) in [
        ("chart", json!({"app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "jenkins-0.0.3"})),
        ("hand", json!({"helm.sh/chart": "jenkins-0.0.3"})),
    ] {
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop", "labels": labels},
            "spec": {"ports": [{"port": 80}]},
        });
        put(&shipped, service).await;
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}});
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "shop", "labels": labels},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        });
        put(&shipped, deployment).await;
    }
    let (records, rows) = gathered(&shipped, "workloads/").await;
    let hash = digest(&SHA256, b"shop");
    let long: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let short = &URL_SAFE_NO_PAD.encode(hash)[..12];
    let charts: Value = serde_json::from_str(record(&records, "config/helmchart_info.json")).unwrap();
    let resources = json!({"deployments": 1, "services": 1});
    assert_eq!(charts, json!({long: [{"name": "jenkins", "version": "0.0.3", "resources": resources}]}));
    let workloads: Value = serde_json::from_str(record(&records, "config/workload_info.json")).unwrap();
    assert_eq!((&workloads["pods"], &workloads["imageCount"]), (&json!(3), &json!(1)), "{workloads}");
    let namespace = &workloads["namespaces"][short];
    assert_eq!((&namespace["count"], &namespace["terminalCount"]), (&json!(3), &json!(1)), "{workloads}");
    assert_eq!(namespace["shapes"][0]["duplicates"], 1);
    assert_eq!(namespace["shapes"][0]["containers"][0]["imageID"], DIGEST);
    for (path, text) in &records {
        assert!(
            !text.contains("shop") && !text.contains("till") && !text.contains("canary"),
            "{path}: {text}"
        );
    }
    for row in &rows {
        assert_eq!(row.verdict, Verdict::Gathered { records: 1 }, "{row:?}");
    }
}

/// The whole table under the shipped roles: a gatherer finds something, or nothing to find, and is never refused.
#[tokio::test]
async fn no_gatherer_is_refused_by_the_shipped_roles() {
    let shipped = Shipped::new().await;
    let (_, rows) = gathered(&shipped, "").await;
    assert_eq!(rows.len(), GATHERERS.len());
    for row in rows {
        let fine = matches!(row.verdict, Verdict::Gathered { .. } | Verdict::NoData(_));
        assert!(fine && !format!("{row:?}").contains("forbidden"), "{row:?}");
    }
}
