//! The remote configuration: the one that counted is in every archive, what became of it is told, and lines of logs that it asks for are
//! gathered.

use std::sync::Arc;

use admit::controllers::datagather::Settings;
use admit::gather::collect::Verdict;
use admit::gather::record::Record;
use admit::gather::remote::{self, Remote};
use admit::gather::spool::{Kept, MAX_RECORDS};
use admit_apiserver::{LogError, LogOptions, LogStream, PodLogs};
use bytes::Bytes;
use futures::{StreamExt, stream};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::archive::{archive, entries, spool};
use super::rights::Shipped;
use super::rows_of_gatherers::{context, gathered_by, pod, put, put_namespace, record, row, running};
use super::runs::{Bench, condition, entry, message, uploading};
use super::upload::ingress::{Answers, FakeIngress};
use crate::support::cluster::DATAGATHERS;

const AVAILABLE: &str = "RemoteConfigurationAvailable";
const VALID: &str = "RemoteConfigurationValid";

fn built_in() -> Value {
    json!({"conditional_gathering_rules": [], "container_logs": []})
}

/// A gathering by what the service answers: the status, and the configuration in the archive.
async fn gathered(code: u16, answer: &str) -> (Value, Value) {
    let bench = Bench::new();
    let service =
        FakeIngress::start(Answers { gathering: (code, answer.to_owned()), ..Answers::accept("abc") }).await;
    let url = format!("https://{}/api/gathering/v2/%s/gathering_rules", service.address);
    let settings = Settings {
        remote: Some(url.parse().unwrap()),
        release: Some("4.18.0".to_owned()),
        ..uploading(&bench, &service)
    };
    let controller = bench.start_with(settings);
    bench.ask("first", &json!({}));
    let status = bench.until_state("first", "Completed").await;
    controller.stop().await;
    let name = bench.archives().remove(0);
    let kept = entry(&bench.dir.path().join("archives").join(name), remote::PATH);
    (status, serde_json::from_str(&kept).unwrap())
}

#[tokio::test]
async fn dg_04_the_remote_configuration_that_counted_is_in_the_archive() {
    let asked = json!({"version": "1.2", "container_logs": [], "conditional_gathering_rules": [{"a": 1}]});
    let (status, kept) = gathered(200, &asked.to_string()).await;
    assert_eq!(kept, asked);
    for type_ in [AVAILABLE, VALID] {
        assert_eq!(condition(&status, type_), "True/AsExpected");
    }
}

#[tokio::test]
async fn dg_04_without_a_remote_configuration_the_built_in_one_counts_and_that_is_told() {
    let bad = json!({"container_logs": [{"namespace": "default", "pod_name_regex": "a", "messages": ["b"]}]});
    for (code, answer, available, valid, why) in [
        (500, "canary-4711".to_owned(), "False/HttpStatus500", "Unknown/NoValidationYet", "answered 500"),
        (200, "no JSON".to_owned(), "True/AsExpected", "False/Invalid", "cannot be read"),
        (200, bad.to_string(), "True/AsExpected", "False/Invalid", "container_logs[0].namespace"),
    ] {
        let (status, kept) = gathered(code, &answer).await;
        assert_eq!(kept, built_in());
        assert_eq!(
            (condition(&status, AVAILABLE), condition(&status, VALID)),
            (available.into(), valid.into())
        );
        let told = format!("{} {}", message(&status, AVAILABLE), message(&status, VALID));
        assert!(told.contains(why) && !status.to_string().contains("canary"), "{status:#}");
    }
}

#[tokio::test]
async fn dg_04_where_nobody_is_asked_the_built_in_configuration_is_in_the_archive() {
    let bench = Bench::new();
    let controller = bench.start();
    bench.ask("first", &json!({}));
    let status = bench.until_state("first", "Completed").await;
    controller.stop().await;
    let name = bench.archives().remove(0);
    let kept = entry(&bench.dir.path().join("archives").join(name), remote::PATH);
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), built_in());
    assert!(!status["conditions"].to_string().contains("RemoteConfiguration"), "{status:#}");
    assert_eq!(bench.cluster.get(DATAGATHERS, "first")["status"]["dataGatherState"], "Completed");
}

#[test]
fn dg_04_the_remote_configuration_is_kept_beyond_the_limit_of_records() {
    let mut full = spool(None);
    let record = Record::raw("config/large", "x".repeat(MAX_RECORDS), Timestamp::UNIX_EPOCH);
    assert_eq!(full.keep(&record).unwrap(), Kept::New);
    let kept = entries(&archive(full, &[]));
    let kept = kept.iter().find(|entry| entry.path == remote::PATH).unwrap();
    assert_eq!(kept.text, Remote::default().text());
}

/// A log of three lines for each container.
#[derive(Debug)]
struct Lines;

impl PodLogs for Lines {
    fn open(&self, _pod: &Value, options: LogOptions) -> Result<LogStream, LogError> {
        let LogOptions { container, previous, tail, timestamps, .. } = options;
        assert!(timestamps && tail.is_none());
        let lines = ["all is well", "etcd took too long", "panic: at last"];
        let lines: Vec<_> =
            lines.iter().map(|line| Ok(Bytes::from(format!("{container} {previous} {line}\n")))).collect();
        Ok(stream::iter(lines).boxed())
    }
}

#[tokio::test]
async fn dg_05_lines_of_logs_that_are_asked_for_are_gathered() {
    let shipped = Shipped::new().await;
    shipped.server.set_pod_logs(Arc::new(Lines));
    for namespace in ["openshift-etcd", "kube-other"] {
        put_namespace(&shipped, namespace).await;
        for name in ["etcd-0", "etcd-1", "guard"] {
            put(&shipped, pod(namespace, name, &["etcd"], &running(&["etcd"], 0))).await;
        }
    }
    let logs = |namespace: &str, pods: &str, messages: &[&str], previous: bool| json!({"namespace": namespace, "pod_name_regex": pods, "messages": messages, "previous": previous});
    let rule = json!({"conditions": [{"type": "alert_is_firing", "alert": {"name": "A"}}]});
    let asked = json!({"version": "1", "conditional_gathering_rules": [rule], "container_logs": [
        logs("openshift-etcd", "^etcd-", &["took too long", "^etcd false panic"], false),
        logs("openshift-etcd", "guard", &["panic"], true),
        logs("openshift-etcd", "etcd-1", &["nothing says so"], true),
        logs("kube-other", ".*", &["."], false),
    ]});
    let remote = Remote::parse(asked.to_string().as_bytes(), "https://a.example").unwrap();
    let mut context = context(&shipped);
    context.remote = Arc::new(remote);
    let (records, rows) = gathered_by(context, "conditional/").await;
    let paths: Vec<_> = records.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "insights-operator/conditional-gatherer-rules.json",
            "namespaces/openshift-etcd/pods/etcd-0/etcd/current.log",
            "namespaces/openshift-etcd/pods/etcd-1/etcd/current.log",
            "namespaces/openshift-etcd/pods/guard/etcd/previous.log",
        ]
    );
    assert_eq!(records[1].1, "etcd false etcd took too long\netcd false panic: at last\n");
    assert_eq!(records[3].1, "etcd true panic: at last\n");
    let rules: Value = serde_json::from_str(record(&records, paths[0])).unwrap();
    assert_eq!((&rules["version"], &rules["endpoint"]), (&json!("1"), &json!("https://a.example")));
    assert_eq!((&rules["rules"][0]["rule"], &rules["rules"][0]["was_triggered"]), (&rule, &json!(false)));
    assert!(rules["rules"][0]["errors"][0].as_str().unwrap().contains("Prometheus"), "{rules}");
    let logs = row(&rows, "conditional/rapid_container_logs");
    assert_eq!(logs.verdict, Verdict::Gathered { records: 3 });
    assert!(logs.warnings.join("\n").contains("logs of kube-other are asked for and not read"), "{logs:?}");
}
