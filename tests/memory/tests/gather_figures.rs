//! What gathering from a large cluster takes, in time and in memory of the whole process. No part of the gate: `scripts/bench-gathers`
//! runs each figure in a process of its own, on a machine that does nothing else.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where and stop")]

mod collection;

use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use admit::gather::archive::{Archive, ProcessFacts};
use admit::gather::collect::{Row, collect};
use admit::gather::obfuscate::{Obfuscator, Rules};
use admit::gather::recorder::Recorder;
use admit::gather::spool::Spool;
use admit::gather::{Context, GATHERERS};
use jiff::Timestamp;
use serde_json::Value;
use tokio::runtime::Runtime;

use self::collection::{Collection, client};

const MB: usize = 1_000_000;
const PODS: usize = 20_000;

/// An archive of everything, in a folder.
struct Gathered {
    folder: tempfile::TempDir,
    rows: Vec<Row>,
    took: Duration,
}

fn gathered(collections: Vec<Collection>) -> Gathered {
    let folder = tempfile::tempdir().unwrap();
    let runtime = Runtime::new().unwrap();
    let context = Context {
        client: runtime.block_on(async { client(collections) }),
        namespace_prefix: "kube-".to_owned(),
        config_namespace: "kube-system".to_owned(),
        now: Timestamp::UNIX_EPOCH,
        interval: Duration::from_hours(2),
        remote: Arc::default(),
        agents: None,
        recorder: Recorder::new(Spool::new(tempfile::tempfile().unwrap(), None)),
    };
    let began = Instant::now();
    let bound = NonZeroUsize::new(8).unwrap();
    let rows = runtime.block_on(collect(GATHERERS.iter().collect(), &context, bound));
    let archive = Archive::new(
        context.recorder.close().unwrap(),
        &rows,
        ProcessFacts::default(),
        &context.remote,
        context.now,
    );
    archive.unwrap().write(fs::File::create(folder.path().join("archive.tar.gz")).unwrap()).unwrap();
    Gathered { folder, rows, took: began.elapsed() }
}

impl Gathered {
    fn record(&self, path: &str) -> Value {
        let archive = self.folder.path().join("archive.tar.gz");
        let read = Command::new("tar").arg("-xzOf").arg(archive).arg(path).output().unwrap();
        serde_json::from_slice(&read.stdout).unwrap_or_else(|error| unread(path, &error, &self.rows))
    }
}

#[expect(clippy::panic, reason = "without the record there is no figure")]
fn unread(path: &str, error: &serde_json::Error, rows: &[Row]) -> Value {
    panic!("{path}: {error}: {rows:#?}")
}

/// Bytes that this process held at the most, as the kernel counts.
fn most_resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Tells a figure beside its target.
fn tell(what: &str, figure: u128, unit: &str, target: &str, met: bool) {
    let verdict = if met { "met" } else { "MISSED" };
    let _ = writeln!(std::io::stdout(), "figure: {what}: {figure} {unit} (target: {target}, {verdict})");
}

fn tell_resident(what: &str, target: usize) {
    let most = most_resident();
    tell(what, (most / MB) as u128, "MB resident", &format!("at most {target}"), most <= target * MB);
}

#[test]
#[ignore = "a figure: run by scripts/bench-gathers"]
fn pods() {
    let filler = "x".repeat(5_700);
    let pod = format!(
        "\"spec\":{{\"filler\":\"{filler}\",\"containers\":[{{\"name\":\"a\"}}]}},\"status\":{{\"phase\":\"Running\",\
         \"startTime\":\"2026-11-02T00:00:00Z\",\"containerStatuses\":[{{\"name\":\"a\",\"image\":\"a:1\",\
         \"imageID\":\"a@sha256:{}\"}}]}}}}",
        "0".repeat(64)
    );
    let node = format!("\"status\":{{\"filler\":\"{}\"}}}}", "x".repeat(4_000));
    let gathered = gathered(vec![
        Collection { path: "/api/v1/pods", count: PODS, rest: pod.into() },
        Collection { path: "/api/v1/nodes", count: 200, rest: node.into() },
    ]);
    let counted = &gathered.record("config/running_containers.json")["2026-11"]["a:1"];
    assert_eq!(counted, PODS, "images");
    assert_eq!(gathered.record("config/workload_info.json")["pods"], PODS, "pods");
    let took = gathered.took;
    let within = took <= Duration::from_secs(20);
    tell("20,000 pods of 6 KB on 200 nodes", took.as_millis(), "ms", "at most 20000", within);
    tell_resident("20,000 pods of 6 KB on 200 nodes", 200);
}

#[test]
#[ignore = "a figure: run by scripts/bench-gathers"]
fn config_maps() {
    let rest = format!("\"data\":{{\"k\":\"{}\"}}}}", "x".repeat(MB));
    let path = "/api/v1/namespaces/kube-system/configmaps";
    let gathered = gathered(vec![Collection { path, count: 200, rest: rest.into() }]);
    assert!(gathered.rows.iter().any(|row| row.id == "clusterconfig/config_maps"));
    tell("200 ConfigMaps of 1 MB", gathered.took.as_millis(), "ms", "none", true);
    tell_resident("200 ConfigMaps of 1 MB", 120);
}

#[test]
#[ignore = "a figure: run by scripts/bench-gathers"]
fn obfuscation() {
    let networks = ["10.0.0.0/8", "172.30.0.0/16", "10.128.0.0/14"];
    let rules = Rules {
        networks: networks.iter().map(|network| network.parse().unwrap()).collect(),
        base_domains: vec!["corp.example".to_owned()],
        api_hosts: vec!["api.corp.example".to_owned()],
    };
    let mut obfuscator = Obfuscator::new(&rules).unwrap();
    // As nodes and pods look: an address in every half a kilobyte, a name in every kilobyte.
    let line = |n: usize| {
        let filler = "abcdefgh, ".repeat(45);
        format!(
            "{{\"podIP\":\"10.128.{}.{}\",\"host\":\"n{n}.corp.example\",\"x\":\"{filler}\"}}\n",
            n / 250 % 250,
            n % 250
        )
    };
    let text: String = (0..2_000).map(line).collect();
    let (began, mut done) = (Instant::now(), 0);
    while done < 200 * MB {
        done += text.len();
        assert!(!obfuscator.data(&text).contains("corp.example"));
    }
    let rate = done as u128 * 1_000 / began.elapsed().as_millis().max(1) / MB as u128;
    tell("obfuscation", rate, "MB/s", "at least 100", rate >= 100);
}
