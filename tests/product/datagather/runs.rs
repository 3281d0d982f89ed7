//! Whole runs of the controller in process: what a user sees, and what stays true when the server refuses, watches
//! break or the process dies.

use std::fs;
use std::path::Path;
use std::time::Duration;

use admit::controllers::datagather::{RunError, Settings, TokenSettings, UploadSettings, member, run};
use admit::controllers::kit::lease::Election;
use admit::controllers::kit::manager::Manager;
use admit::gather::upload::Pacing;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::upload::ingress::{Answers, FakeIngress};
use crate::support::cluster::{DATAGATHERS, FakeCluster, PATIENCE};
use crate::support::logs;

const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
pub(super) const PODS: &str = "/api/v1/pods";
/// How often a gathering lists them, whoever looks at them.
pub(super) const LISTS: usize = 1;
const SECRETS: &str = "/api/v1/namespaces/openshift-insights/secrets";

/// A cluster, a folder of archives and, at times, a controller on both.
pub(super) struct Bench {
    pub(super) cluster: FakeCluster,
    pub(super) dir: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        Self { cluster: FakeCluster::new(&[SECRETS]), dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn settings(&self) -> Settings {
        Settings::new(self.dir.path().join("archives"))
    }

    pub(super) fn start(&self) -> Running {
        self.start_with(self.settings())
    }

    pub(super) fn start_with(&self, settings: Settings) -> Running {
        let shutdown = CancellationToken::new();
        let task = tokio::spawn(run(self.cluster.client(), settings, shutdown.clone()));
        Running { shutdown, task }
    }

    /// Starts a controller with a gathering that is Running until [`PODS`] are released.
    pub(super) async fn start_held(&self, name: &str) -> Running {
        self.cluster.hold(PODS);
        let controller = self.start();
        self.ask(name, &json!({}));
        self.until_state(name, "Running").await;
        controller
    }

    pub(super) fn ask(&self, name: &str, spec: &Value) {
        self.cluster.put(
            DATAGATHERS,
            json!({
                "apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
                "metadata": {"name": name}, "spec": spec,
            }),
        );
    }

    pub(super) async fn until_state(&self, name: &str, state: &str) -> Value {
        let object = self.cluster.until(DATAGATHERS, name, |object| {
            let found = object["status"]["dataGatherState"].as_str().unwrap_or_default();
            assert!(
                found == state || !matches!(found, "Completed" | "Failed"),
                "{name} ended as {found}: {object:#}"
            );
            found == state
        });
        object.await["status"].clone()
    }

    pub(super) fn archives(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.dir.path().join("archives")) else { return Vec::new() };
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name != ".claims").collect()
    }

    pub(super) async fn events(&self, wanted: usize) -> Vec<String> {
        // Events are written after the status that they tell of.
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let events = self.cluster.all(EVENTS);
                let reasons = events.iter().map(|event| event["reason"].as_str().unwrap().to_owned());
                let reasons: Vec<_> = reasons.collect();
                if reasons.len() >= wanted {
                    return reasons;
                }
                tokio::task::yield_now().await;
            }
        });
        found.await.unwrap()
    }
}

pub(super) struct Running {
    shutdown: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    /// Ends it as SIGTERM would.
    pub(super) async fn stop(self) {
        self.shutdown.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.unwrap().unwrap().unwrap();
    }

    /// Ends it as a kill would: nothing more runs, nothing is tidied up.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

pub(super) fn condition(status: &Value, type_: &str) -> String {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == type_).unwrap();
    format!("{}/{}", found["status"].as_str().unwrap(), found["reason"].as_str().unwrap())
}

pub(super) fn message(status: &Value, type_: &str) -> String {
    let conditions = status["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|condition| condition["type"] == type_).unwrap();
    found["message"].as_str().unwrap().to_owned()
}

fn row<'a>(status: &'a Value, name: &str) -> &'a Value {
    status["gatherers"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()
}

#[tokio::test]
async fn a_gathering_from_request_to_archive() {
    let bench = Bench::new();
    let settings = json!({"metadata": {"name": "settings", "namespace": "kube-system"}, "data": {"a": "b"}});
    bench.cluster.put("/api/v1/namespaces/kube-system/configmaps", settings);
    let controller = bench.start();
    bench.ask("first", &json!({"gatherersConfig": [{"name": "clusterconfig/crds", "state": "Disabled"}]}));
    let status = bench.until_state("first", "Completed").await;

    assert_eq!(condition(&status, "DataRecorded"), "True/AsExpected");
    assert_eq!(condition(&status, "DataUploaded"), "False/UploadNotConfigured");
    assert_eq!(condition(&status, "DataProcessed"), "False/UploadNotConfigured");
    assert!(status["startTime"].is_string() && status["finishTime"].is_string());
    let names: Vec<_> = status["gatherers"].as_array().unwrap().iter().map(|row| &row["name"]).collect();
    assert!(names.len() >= 8 && !names.contains(&&json!("clusterconfig/crds")), "{names:?}");
    let version = row(&status, "clusterconfig/version");
    assert_eq!(condition(version, "DataGathered"), "True/GatheredOK");
    assert!(!version["lastGatherDuration"].as_str().unwrap().is_empty());
    let missing = row(&status, "clusterconfig/storage_classes");
    assert_eq!(condition(missing, "DataGathered"), "False/NoData");
    assert!(
        missing["conditions"][0]["message"].as_str().unwrap().contains("storage.k8s.io/v1 storageclasses")
    );

    let archives = bench.archives();
    assert_eq!(archives.len(), 1, "{archives:?}");
    assert_eq!(bench.events(2).await, ["DataGatherStarted", "DataGatherCompleted"]);
    controller.stop().await;
}

#[tokio::test]
async fn a_finished_gathering_is_not_run_again_by_the_next_process() {
    let bench = Bench::new();
    let controller = bench.start();
    bench.ask("first", &json!({}));
    let before = bench.until_state("first", "Completed").await;
    controller.stop().await;

    let next = bench.start();
    bench.ask("second", &json!({}));
    bench.until_state("second", "Completed").await;
    assert_eq!(bench.cluster.get(DATAGATHERS, "first")["status"], before);
    assert_eq!(bench.archives().len(), 2);
    next.stop().await;
}

#[tokio::test]
async fn a_gathering_killed_half_way_ends_failed_and_has_no_archive() {
    let bench = Bench::new();
    let controller = bench.start_held("first").await;
    controller.kill().await;
    bench.cluster.release(PODS);

    let next = bench.start();
    let status = bench.until_state("first", "Failed").await;
    assert_eq!(condition(&status, "DataRecorded"), "False/RecordingFailed");
    let message = status["conditions"].to_string();
    assert!(message.contains("interrupted"), "{message}");
    assert_eq!(bench.archives(), Vec::<String>::new());
    next.stop().await;
}

#[tokio::test]
async fn a_gathering_found_pending_is_run() {
    let bench = Bench::new();
    bench.ask("first", &json!({}));
    // As a process leaves it that was killed between two writes.
    let mut object = bench.cluster.get(DATAGATHERS, "first");
    object["status"] = json!({"dataGatherState": "Pending", "conditions": []});
    bench.cluster.put(DATAGATHERS, object);
    let controller = bench.start();
    bench.until_state("first", "Completed").await;
    assert_eq!(bench.archives().len(), 1);
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn dg_08_06_refused_writes_and_cut_watches_neither_stop_nor_repeat_a_run() {
    let bench = Bench::new();
    let status = format!("{DATAGATHERS}/first/status");
    for code in [409, 500, 403, 409] {
        bench.cluster.refuse_once(Method::PATCH, &status, code);
    }
    bench.cluster.refuse_once(Method::GET, DATAGATHERS, 410);
    let controller = bench.start_held("first").await;
    bench.cluster.cut_watches();
    bench.cluster.release(PODS);
    bench.until_state("first", "Completed").await;
    assert_eq!(bench.archives().len(), 1);
    assert_eq!(bench.cluster.count(&Method::GET, PODS), LISTS, "gathered once");
    controller.stop().await;
}

/// Twenty gatherings while one write in four is refused and watches are cut all the time.
#[tokio::test(start_paused = true)]
async fn in_a_storm_of_faults_each_gathering_has_one_archive() {
    const GATHERINGS: usize = 20;
    let bench = Bench::new();
    let mut settings = bench.settings();
    settings.keep_archives = GATHERINGS;
    let controller = bench.start_with(settings);
    for n in 0..GATHERINGS {
        let name = format!("g{n}");
        let status = format!("{DATAGATHERS}/{name}/status");
        for turn in 0..3 {
            bench.cluster.refuse_once(Method::PATCH, &status, [409, 500, 429, 503][(n + turn) % 4]);
        }
        bench.ask(&name, &json!({}));
        bench.cluster.cut_watches();
    }
    for n in 0..GATHERINGS {
        bench.until_state(&format!("g{n}"), "Completed").await;
        bench.cluster.cut_watches();
    }
    assert_eq!(bench.archives().len(), GATHERINGS);
    assert_eq!(bench.cluster.count(&Method::GET, PODS), LISTS * GATHERINGS, "each gathered once");
    controller.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_loses_its_lease_stops_its_runs_for_good() {
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/admit/leases";
    let bench = Bench { cluster: FakeCluster::new(&[LEASES]), ..Bench::new() };
    let election = Election::new("admit", "controllers", "one");
    let member = member(bench.cluster.client(), bench.settings()).unwrap();
    let manager = Manager::new(bench.cluster.client(), Some(election)).with(member);
    bench.cluster.hold(PODS);
    let shutdown = CancellationToken::new();
    let controller = tokio::spawn(manager.run(shutdown.clone()));
    bench.ask("first", &json!({}));
    bench.until_state("first", "Running").await;
    bench.cluster.refuse_once(Method::PUT, &format!("{LEASES}/controllers"), 409);
    // Its next term finds a gathering whose run has stopped with the last one.
    let status = bench.until_state("first", "Failed").await;
    assert!(status["conditions"].to_string().contains("interrupted"), "{status:#}");
    bench.cluster.release(PODS);
    shutdown.cancel();
    tokio::time::timeout(PATIENCE, controller).await.unwrap().unwrap().unwrap();
    assert_eq!(bench.archives(), Vec::<String>::new());
}

#[tokio::test]
async fn an_object_that_does_not_decode_disturbs_no_other() {
    let bench = Bench::new();
    bench.ask("broken", &json!({"dataPolicy": "NoSuchPolicy"}));
    bench.ask("good", &json!({}));
    let controller = bench.start();
    bench.until_state("good", "Completed").await;
    assert_eq!(bench.cluster.get(DATAGATHERS, "broken")["status"], Value::Null);
    controller.stop().await;
}

#[tokio::test]
async fn a_deleted_gathering_stops_and_leaves_no_archive() {
    let bench = Bench::new();
    let controller = bench.start_held("first").await;
    bench.cluster.delete(DATAGATHERS, "first");
    // The next gathering has gone through the same watch, so the deletion has been seen by then.
    bench.ask(
        "second",
        &json!({"gatherersConfig": [
            {"name": "clusterconfig/container_images", "state": "Disabled"},
            {"name": "workloads/workload_info", "state": "Disabled"},
        ]}),
    );
    bench.until_state("second", "Completed").await;
    bench.cluster.release(PODS);
    controller.stop().await;
    assert_eq!(bench.archives().len(), 1);
}

#[tokio::test]
async fn obfuscation_keeps_its_table_in_a_secret() {
    let bench = Bench::new();
    let map = json!({"metadata": {"name": "net", "namespace": "kube-system"}, "data": {"ip": "10.1.2.3"}});
    bench.cluster.put("/api/v1/namespaces/kube-system/configmaps", map);
    let mut settings = bench.settings();
    settings.obfuscation.networks = vec!["10.0.0.0/8".parse().unwrap()];
    let controller = bench.start_with(settings);
    bench.ask("first", &json!({"dataPolicy": "ObfuscateNetworking"}));
    let status = bench.until_state("first", "Completed").await;
    assert_eq!(
        status["relatedObjects"],
        json!([{
            "group": "", "resource": "secrets", "name": "obfuscation-translation-table", "namespace": "openshift-insights",
        }])
    );
    let secret = bench.cluster.get(SECRETS, "obfuscation-translation-table");
    assert_eq!(secret["stringData"], json!({"10.1.2.3": "10.0.0.1"}));
    let archive = bench.dir.path().join("archives").join(&bench.archives()[0]);
    assert_eq!(entry(&archive, "config/configmaps/kube-system/net/ip"), "10.0.0.1");
    controller.stop().await;
}

#[tokio::test]
async fn an_uploaded_gathering_gets_its_report() {
    let bench = Bench::new();
    let body = r#"{"requestID":"abc","report":[{"rule_fqdn":"r","error_key":"K","description":"something is wrong","total_risk":2}]}"#;
    let mut answers = Answers::accept("abc");
    answers.status = vec![(404, "{}"), (404, "{}"), (200, r#"{"status":"processed"}"#)];
    answers.report = (200, body.to_owned());
    let service = FakeIngress::start(answers).await;
    let controller = bench.start_with(uploading(&bench, &service));
    bench.ask("first", &json!({}));
    bench.until_state("first", "Completed").await;
    let seen = |object: &Value| object["status"]["insightsReport"].is_object();
    let object = bench.cluster.until(DATAGATHERS, "first", seen).await;
    let status = &object["status"];
    assert_eq!(condition(status, "DataUploaded"), "True/HttpStatus202");
    assert_eq!(condition(status, "DataProcessed"), "True/Processed");
    assert_eq!(condition(status, "AnalysisAvailable"), "True/ReportMatches");
    assert_eq!(status["insightsRequestID"], "abc");
    assert_eq!(status["insightsReport"]["healthChecks"][0]["totalRisk"], 2);
    assert_eq!(service.uploads().len(), 1);
    controller.stop().await;
}

#[tokio::test]
async fn a_refused_upload_fails_the_gathering_and_keeps_the_archive() {
    let bench = Bench::new();
    let service = FakeIngress::start(Answers::refuse(401)).await;
    let controller = bench.start_with(uploading(&bench, &service));
    bench.ask("first", &json!({}));
    let status = bench.until_state("first", "Failed").await;
    assert_eq!(condition(&status, "DataUploaded"), "False/HttpStatus401");
    assert_eq!(status["insightsRequestID"], Value::Null);
    assert!(!status.to_string().contains("canary"), "{status}");
    assert_eq!(bench.archives().len(), 1);
    assert_eq!(bench.events(2).await, ["DataGatherStarted", "DataGatherFailed"]);
    controller.stop().await;
}

#[tokio::test]
async fn neither_token_nor_secret_shows_in_logs_events_or_status() {
    const CONFIG_SECRETS: &str = "/api/v1/namespaces/openshift-config/secrets";
    for answers in [Answers::accept("abc"), Answers::refuse(403)] {
        let logs = logs::capture();
        let service = FakeIngress::start(answers).await;
        let bench = Bench { cluster: FakeCluster::new(&[SECRETS, CONFIG_SECRETS]), ..Bench::new() };
        let login = STANDARD.encode(r#"{"auths":{"cloud.openshift.com":{"auth":"canary-4711"}}}"#);
        let secret = json!({"metadata": {"name": "pull-secret"}, "data": {".dockerconfigjson": login}});
        bench.cluster.put(CONFIG_SECRETS, secret);
        let mut settings = uploading(&bench, &service);
        settings.upload.as_mut().unwrap().token = TokenSettings::PullSecret;
        let controller = bench.start_with(settings);
        bench.ask("first", &json!({}));
        let over = |object: &Value| {
            matches!(object["status"]["dataGatherState"].as_str(), Some("Completed" | "Failed"))
        };
        let object = bench.cluster.until(DATAGATHERS, "first", over).await;
        bench.events(2).await;
        controller.stop().await;

        assert_eq!(service.uploads()[0].authorization, "Bearer canary-4711", "the token was used");
        let logged = logs.take();
        assert!(logged.contains("TRACE") && logged.contains("archive written"), "logs were captured");
        let told = format!("{object} {:?} {logged}", bench.cluster.all(EVENTS));
        for secret in ["canary", login.as_str()] {
            let line = told.lines().find(|line| line.contains(secret));
            assert_eq!(line, None, "a secret shows");
        }
    }
}

#[tokio::test]
async fn bad_settings_show_at_start() {
    let bench = Bench::new();
    let token = bench.dir.path().join("token");
    for (url, expected) in [("http://example.com", "https"), ("https://example.com", "token")] {
        let mut settings = bench.settings();
        settings.upload = Some(UploadSettings::new(url, TokenSettings::File(token.clone())));
        let error = run(bench.cluster.client(), settings, CancellationToken::new()).await.unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

pub(super) fn uploading(bench: &Bench, service: &FakeIngress) -> Settings {
    let path = |name: &str| bench.dir.path().join(name);
    fs::write(path("token"), "canary-4711").unwrap();
    fs::write(path("ca.pem"), &service.ca_pem).unwrap();
    let mut upload = UploadSettings::new(&service.upload_url, TokenSettings::File(path("token")));
    upload.ca = Some(path("ca.pem"));
    upload.pacing = Pacing {
        upload_wait: Duration::ZERO,
        processing_delay: Duration::ZERO,
        processing_interval: Duration::ZERO,
        ..Pacing::default()
    };
    let mut settings = bench.settings();
    settings.upload = Some(upload);
    settings.allow_uploads_to = vec!["127.0.0.0/8".parse().unwrap()];
    settings.cluster_id = Some("c-1".to_owned());
    settings
}

pub(super) fn entry(archive: &Path, path: &str) -> String {
    let mut tar = tar::Archive::new(flate2::read::GzDecoder::new(fs::File::open(archive).unwrap()));
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        if entry.path().unwrap().to_str() == Some(path) {
            let mut text = String::new();
            std::io::Read::read_to_string(&mut entry, &mut text).unwrap();
            return text;
        }
    }
    panic!("no {path} in the archive");
}
