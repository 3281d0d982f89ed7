//! Gatherers side by side: what one does, however bad, is a row of its own.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use admit::gather::archive::GATHERS;
use admit::gather::cluster::id;
use admit::gather::collect::{Verdict, collect};
use admit::gather::recorder::Recorder;
use admit::gather::{Context, Failure, GATHERERS, Gatherer, Run, remote};
use futures::FutureExt;
use jiff::Timestamp;
use kube::Client;
use serde_json::json;

use super::archive::{archive, entries, spool};
use crate::support::cluster::FakeCluster;

const NOW: Timestamp = Timestamp::constant(1_763_692_206, 0);

const fn row(
    id: &'static str,
    run: fn(Context) -> futures::future::BoxFuture<'static, Result<(), Failure>>,
) -> Gatherer {
    Gatherer { id, collects: "", path: "", run: Run::Alone(run) }
}

pub(super) fn context(client: Client) -> Context {
    Context {
        client,
        namespace_prefix: "kube-".to_owned(),
        config_namespace: "kube-system".to_owned(),
        now: NOW,
        interval: Duration::from_hours(2),
        remote: Arc::default(),
        agents: None,
        recorder: Recorder::new(spool(None)),
    }
}

static ODD: &[Gatherer] = &[
    row("odd/panics", |_| async { panic!("boom {}", 1) }.boxed()),
    row("odd/stalls", |_| std::future::pending().boxed()),
    row("odd/partly", |context| {
        async move {
            context.raw("config/x", "x").await?;
            context.recorder.fail("half".to_owned());
            Ok(())
        }
        .boxed()
    }),
    row("odd/breaks", |context| {
        async move {
            context.raw("config/y", "y").await?;
            Err(Failure::MissingApi("x/v1 ys".to_owned()))
        }
        .boxed()
    }),
    row("odd/nothing", |_| async { Ok(()) }.boxed()),
    row("odd/unserved", |_| async { Err(Failure::MissingApi("x/v1 xs".to_owned())) }.boxed()),
    row("odd/good", |context| async move { context.raw("config/z", "z").await }.boxed()),
];

#[tokio::test(start_paused = true)]
async fn an_error_a_panic_and_a_stall_are_rows_of_their_own() {
    let cluster = FakeCluster::new(&[]);
    let rows = collect(ODD.iter().collect(), &context(cluster.client()), NonZeroUsize::new(2).unwrap()).await;
    let verdicts: Vec<_> = rows.iter().map(|row| (row.id.as_str(), row.verdict.clone())).collect();
    assert_eq!(
        verdicts,
        [
            ("odd/panics", Verdict::Panicked("boom 1".to_owned())),
            ("odd/stalls", Verdict::Failed("no answer within 300 s".to_owned())),
            ("odd/partly", Verdict::GatheredWithErrors { records: 1, errors: vec!["half".to_owned()] }),
            (
                "odd/breaks",
                Verdict::GatheredWithErrors {
                    records: 1,
                    errors: vec!["the server does not serve x/v1 ys".to_owned()],
                },
            ),
            ("odd/nothing", Verdict::NoData("nothing found".to_owned())),
            ("odd/unserved", Verdict::NoData("the server does not serve x/v1 xs".to_owned())),
            ("odd/good", Verdict::Gathered { records: 1 }),
        ]
    );
    assert_eq!(rows[1].duration, Duration::from_mins(5));
}

static RUNNING: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static BUSY: &[Gatherer] = &[const {
    row("busy/one", |_| {
        async {
            MOST.fetch_max(RUNNING.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(1)).await;
            RUNNING.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        }
        .boxed()
    })
}];

#[tokio::test(start_paused = true)]
async fn no_more_run_at_a_time_than_the_bound() {
    let cluster = FakeCluster::new(&[]);
    let started = tokio::time::Instant::now();
    let ten = std::iter::repeat_n(&BUSY[0], 10).collect();
    let rows = collect(ten, &context(cluster.client()), NonZeroUsize::new(4).unwrap()).await;
    assert_eq!((rows.len(), MOST.load(Ordering::SeqCst)), (10, 4));
    assert_eq!(started.elapsed().as_secs(), 3, "ten seconds of work, four at a time");
}

/// Every gatherer of the table against a server that has one object of each kind: path and content of the records.
#[tokio::test]
async fn the_records_of_each_gatherer() {
    let named = |name: &str| json!({"metadata": {"name": name, "managedFields": [{}]}});
    let in_namespace =
        |name: &str, namespace: &str| json!({"metadata": {"name": name, "namespace": namespace}});
    let mut crash = in_namespace("looping", "kube-system");
    crash["status"] = json!({"startTime": "2026-11-02T00:00:00Z", "containerStatuses": [
        {"image": "a:1", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]});
    let objects = [
        ("/api/v1/pods", crash),
        ("/api/v1/nodes", named("worker-1")),
        ("/api/v1/serviceaccounts", in_namespace("default", "kube-system")),
        ("/apis/storage.k8s.io/v1/storageclasses", named("fast")),
        ("/apis/policy/v1/poddisruptionbudgets", in_namespace("db", "shop")),
        ("/apis/certificates.k8s.io/v1/certificatesigningrequests", named("csr-1")),
        ("/apis/config.openshift.io/v1/clusteroperators", named("dns")),
        ("/apis/rbac.authorization.k8s.io/v1/clusterroles", named("admin")),
        (
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            named("datagathers.insights.openshift.io"),
        ),
        ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", named("m")),
        ("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", named("v")),
    ];
    let cluster = FakeCluster::new(&objects.clone().map(|(collection, _)| collection));
    for (collection, object) in objects {
        cluster.put(collection, object);
    }
    cluster.put(
        "/api/v1/namespaces/kube-system/configmaps",
        json!({
            "metadata": {"name": "ca", "namespace": "kube-system"},
            "data": {"ca.crt": "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----"},
        }),
    );
    let context = context(cluster.client());
    let rows = collect(GATHERERS.iter().collect(), &context, NonZeroUsize::MIN).await;
    let read = entries(&archive(context.recorder.close().unwrap(), &rows));
    let mut found: Vec<_> = read.into_iter().map(|entry| (entry.path, entry.text)).collect();
    found.retain(|(path, _)| path != GATHERS && path != remote::PATH);
    found.sort();
    let paths: Vec<_> = found.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "cluster-scoped-resources/rbac.authorization.k8s.io/clusterroles/admin.json",
            "config/certificatesigningrequests/csr-1.json",
            "config/clusteroperator/dns.json",
            "config/configmaps/kube-system/ca/ca.crt",
            "config/crd/datagathers.insights.openshift.io.json",
            "config/id",
            "config/mutatingwebhookconfigurations/m.json",
            "config/node/worker-1.json",
            "config/pdbs/shop/db.json",
            "config/pod/kube-system/looping.json",
            "config/running_containers.json",
            "config/serviceaccounts.json",
            "config/storage/storageclasses/fast.json",
            "config/validatingwebhookconfigurations/v.json",
            "config/version.json",
            "config/workload_info.json",
        ]
    );
    let text = |path: &str| &found.iter().find(|(found, _)| found == path).unwrap().1;
    assert_eq!(text("config/configmaps/kube-system/ca/ca.crt"), "ANONYMIZED");
    assert_eq!(text("config/running_containers.json"), r#"{"2026-11":{"a:1":1}}"#);
    assert!(
        text("config/storage/storageclasses/fast.json")
            .starts_with(r#"{"apiVersion":"storage.k8s.io/v1","kind":"StorageClass""#)
    );
    assert!(!found.iter().any(|(_, text)| text.contains("managedFields")));
    assert!(text("config/version.json").contains("v1.36.2"));
}

#[tokio::test]
async fn the_clusters_id_is_found_where_cluster_versions_may_not_be_asked_for() {
    let cluster = FakeCluster::new(&[]);
    let version = "/apis/config.openshift.io/v1/clusterversions/version";
    let uid = cluster.get("/api/v1/namespaces", "kube-system")["metadata"]["uid"].clone();
    for code in [404, 403] {
        cluster.refuse_once(http::Method::GET, version, code);
        assert_eq!(id(&cluster.client()).await.unwrap(), uid, "{code}");
    }
    cluster.refuse_once(http::Method::GET, version, 500);
    assert!(id(&cluster.client()).await.is_err(), "a failing server must not change the id");
}
