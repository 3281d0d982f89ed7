//! One test for each behaviour of the sheet (`dg_07_…`) and for each fault of others that is not to be repeated (`dg_08_…`). Some rows
//! are held beside what they are about: they have such a name there.

use admit::controllers::datagather::{JobSettings, RunnerKind, Settings};
use admit::controllers::kit::conditions::{self, Statement, Truth};
use admit::gather::obfuscate::{Obfuscator, Rules};
use admit::gather::record::Record;
use admit::gather::spool::Kept;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Value, json};

use super::archive::spool;
use super::runs::{Bench, Running, condition, message, uploading};
use super::upload::ingress::{Answers, FakeIngress};
use crate::support::cluster::{DATAGATHERS, FakeCluster};

const JOBS: &str = "/apis/batch/v1/namespaces/openshift-insights/jobs";
const PODS: &str = "/api/v1/namespaces/openshift-insights/pods";
const OPERATORS: &str = "/apis/operator.openshift.io/v1/insightsoperators";

/// A cluster that gathers by Jobs, which nobody runs.
struct ByJobs(Bench);

impl ByJobs {
    fn new() -> Self {
        Self(Bench { cluster: FakeCluster::new(&[JOBS, PODS]), ..Bench::new() })
    }

    fn start(&self) -> Running {
        let runner = RunnerKind::Job(JobSettings::new("admit"));
        self.0.start_with(Settings { runner, ..self.0.settings() })
    }

    /// A DataGather whose Job was made, and its status.
    async fn first(&self) -> Value {
        self.0.ask("first", &json!({}));
        let related = |object: &Value| object["status"]["relatedObjects"].is_array();
        self.0.cluster.until(DATAGATHERS, "first", related).await["status"].clone()
    }

    fn set(&self, state: &str) {
        self.0.cluster.change(DATAGATHERS, "first", |object| {
            object["status"]["dataGatherState"] = json!(state);
            object["status"]["startTime"] = json!("2026-11-21T10:00:00Z");
            if state == "Completed" {
                object["status"]["finishTime"] = json!("2026-11-21T10:01:00Z");
            }
        });
    }

    /// Has a further DataGather gone through the controller: what came before has been seen by then.
    async fn settle(&self, name: &str) {
        self.0.ask(name, &json!({}));
        let related = |object: &Value| object["status"]["relatedObjects"].is_array();
        self.0.cluster.until(DATAGATHERS, name, related).await;
    }
}

#[tokio::test]
async fn dg_07_a_new_object_is_pending_and_has_a_job_of_its_name() {
    let cluster = ByJobs::new();
    let controller = cluster.start();
    let status = cluster.first().await;
    assert_eq!(status["dataGatherState"], "Pending");
    for (step, reason) in [
        ("DataUploaded", "NoUploadYet"),
        ("DataRecorded", "NoDataGatheringYet"),
        ("DataProcessed", "NothingToProcessYet"),
    ] {
        assert_eq!(condition(&status, step), format!("Unknown/{reason}"));
    }
    assert_eq!(cluster.0.cluster.get(JOBS, "first")["metadata"]["name"], "first");
    controller.stop().await;
}

#[tokio::test]
async fn dg_07_an_object_with_a_state_gets_no_second_job_from_the_next_process() {
    let cluster = ByJobs::new();
    let controller = cluster.start();
    cluster.first().await;
    let uid = cluster.0.cluster.get(JOBS, "first")["metadata"]["uid"].clone();
    controller.stop().await;
    let next = cluster.start();
    cluster.settle("second").await;
    assert_eq!(cluster.0.cluster.get(JOBS, "first")["metadata"]["uid"], uid);
    assert_eq!(cluster.0.cluster.all(JOBS).len(), 2);
    next.stop().await;
}

#[tokio::test]
async fn dg_07_an_object_of_the_periodic_prefix_is_not_taken_for_one_on_demand() {
    let cluster = ByJobs::new();
    let controller = cluster.start();
    cluster.0.ask("periodic-gathering-x", &json!({}));
    cluster.settle("second").await;
    assert!(cluster.0.cluster.get(DATAGATHERS, "periodic-gathering-x")["status"].is_null());
    assert!(cluster.0.cluster.get(JOBS, "periodic-gathering-x").is_null());
    controller.stop().await;
}

#[tokio::test]
async fn dg_07_a_job_deleted_while_it_runs_fails_the_object() {
    let cluster = ByJobs::new();
    let controller = cluster.start();
    cluster.first().await;
    cluster.set("Running");
    cluster.0.cluster.delete(JOBS, "first");
    let status = cluster.0.until_state("first", "Failed").await;
    assert!(
        status["finishTime"].is_string() && message(&status, "DataRecorded").contains("deleted"),
        "{status:#}"
    );
    controller.stop().await;
}

#[tokio::test]
async fn dg_07_a_job_that_fails_after_completion_changes_nothing() {
    let cluster = ByJobs::new();
    let controller = cluster.start();
    cluster.first().await;
    cluster.set("Completed");
    let before = cluster.0.cluster.get(DATAGATHERS, "first")["status"].clone();
    let failed = json!({"type": "Failed", "status": "True", "reason": "DeadlineExceeded"});
    cluster.0.cluster.change(JOBS, "first", |job| job["status"] = json!({"conditions": [failed]}));
    cluster.settle("second").await;
    assert_eq!(cluster.0.cluster.get(DATAGATHERS, "first")["status"], before);
    controller.stop().await;
}

/// A run with an upload, until `wanted` of its status.
async fn uploaded(bench: &Bench, answers: Answers, wanted: impl Fn(&Value) -> bool) -> Value {
    let service = FakeIngress::start(answers).await;
    let controller = bench.start_with(uploading(bench, &service));
    bench.ask("first", &json!({}));
    let object = bench.cluster.until(DATAGATHERS, "first", |object| wanted(&object["status"])).await;
    controller.stop().await;
    object["status"].clone()
}

fn ended(status: &Value) -> bool {
    matches!(status["dataGatherState"].as_str(), Some("Completed" | "Failed"))
}

fn analysed(status: &Value) -> bool {
    status["conditions"].to_string().contains("AnalysisAvailable")
}

fn reporting(report: &str) -> Answers {
    Answers { report: (200, report.to_owned()), ..Answers::accept("abc") }
}

#[tokio::test]
async fn dg_07_four_times_not_found_is_not_processed() {
    let answers = Answers { status: vec![(404, "{}")], ..Answers::accept("abc") };
    let status = uploaded(&Bench::new(), answers, ended).await;
    assert_eq!(condition(&status, "DataProcessed"), "False/Failure", "{status:#}");
}

/// Processing that failed used to leave the object Completed.
#[tokio::test]
async fn dg_08_10_failed_processing_fails_the_object() {
    let answers = Answers { status: vec![(404, "{}")], ..Answers::accept("abc") };
    let status = uploaded(&Bench::new(), answers, ended).await;
    assert_eq!(status["dataGatherState"], "Failed", "{status:#}");
}

#[tokio::test]
async fn dg_07_not_found_twice_and_then_processed_is_processed() {
    let answers = Answers {
        status: vec![(404, "{}"), (404, "{}"), (200, r#"{"status":"processed"}"#)],
        ..Answers::accept("abc")
    };
    let status = uploaded(&Bench::new(), answers, ended).await;
    assert_eq!(condition(&status, "DataProcessed"), "True/Processed", "{status:#}");
    assert_eq!(status["dataGatherState"], "Completed");
}

#[tokio::test]
async fn dg_07_a_report_of_another_request_is_not_copied() {
    let answers = reporting(r#"{"requestID":"other","report":[]}"#);
    let status = uploaded(&Bench::new(), answers, analysed).await;
    assert_eq!(condition(&status, "AnalysisAvailable"), "False/RequestIDMismatch");
    assert!(status["insightsReport"].is_null(), "{status:#}");
}

#[tokio::test]
async fn dg_07_a_report_that_found_nothing_is_there_with_its_time() {
    let answers = reporting(r#"{"requestID":"abc","report":[]}"#);
    let status = uploaded(&Bench::new(), answers, analysed).await;
    let report = &status["insightsReport"];
    assert_eq!(report["healthChecks"], json!([]), "{status:#}");
    assert!(report["downloadedAt"].is_string() && report["uri"].as_str().unwrap().starts_with("https://"));
}

#[tokio::test]
async fn dg_07_of_a_disabled_group_the_one_function_that_is_enabled_runs() {
    let bench = Bench::new();
    let controller = bench.start();
    let choices = json!([
        {"name": "clusterconfig", "state": "Disabled"},
        {"name": "conditional", "state": "Disabled"},
        {"name": "workloads", "state": "Disabled"},
        {"name": "clusterconfig/version", "state": "Enabled"},
    ]);
    bench.ask("first", &json!({"gatherersConfig": choices}));
    let status = bench.until_state("first", "Completed").await;
    let ran = |row: &Value| row["conditions"][0]["reason"] != "GatherError";
    let rows = status["gatherers"].as_array().unwrap().iter().filter(|row| ran(row));
    assert_eq!(rows.map(|row| &row["name"]).collect::<Vec<_>>(), ["clusterconfig/version"]);
    controller.stop().await;
}

/// What is said for the first time used to take the place of the first that was said.
#[test]
fn dg_08_02_a_condition_that_is_new_leaves_the_others() {
    let mut said: Vec<Condition> = Vec::new();
    let at = Timestamp::UNIX_EPOCH;
    for type_ in ["DataUploaded", "DataRecorded", "DataProcessed"] {
        conditions::set(&mut said, Statement::new(type_, Truth::Unknown, "NotYet", type_), None, at);
    }
    let found: Vec<_> =
        said.iter().map(|condition| (condition.type_.as_str(), condition.message.as_str())).collect();
    let pair = |type_| (type_, type_);
    assert_eq!(found, ["DataUploaded", "DataRecorded", "DataProcessed"].map(pair));
}

/// What is kept and compared is what is obfuscated: two texts that differ in an address alone are one.
#[test]
fn dg_08_05_records_are_compared_as_they_are_kept() {
    let rules = Rules { base_domains: vec!["corp.example".to_owned()], ..Rules::default() };
    let mut spool = spool(Some(Obfuscator::new(&rules).unwrap()));
    let record = |text: &str| Record::raw("config/id", text, Timestamp::UNIX_EPOCH);
    assert_eq!(spool.keep(&record("a.corp.example")).unwrap(), Kept::New);
    let same = spool.keep(&record("a.<CLUSTER_BASE_DOMAIN>")).unwrap();
    assert_eq!(same, Kept::Same("config/id".to_owned()));
}

/// Accepted, and documented: nothing in an archive tells a version from an address.
#[test]
fn dg_08_09_a_version_that_looks_like_an_address_is_rewritten() {
    let mut obfuscator = Obfuscator::new(&Rules::default()).unwrap();
    assert_eq!(obfuscator.data("version 1.2.3.4"), "version 0.0.0.0");
}

/// Where the kind is served, the newest completed gathering is copied, and an older one that is late is not.
#[tokio::test]
async fn the_newest_gathering_is_copied_into_the_insights_operator() {
    let finding = r#"{"requestID":"abc","report":[{"rule_fqdn":"r","error_key":"K","description":"something is wrong","total_risk":2}]}"#;
    let bench = Bench { cluster: FakeCluster::new(&[OPERATORS]), ..Bench::new() };
    bench.cluster.put(OPERATORS, json!({"metadata": {"name": "cluster"}, "spec": {}}));
    let service = FakeIngress::start(reporting(finding)).await;
    let controller = bench.start_with(uploading(&bench, &service));
    bench.ask("first", &json!({}));
    let copied = |object: &Value| object["status"]["insightsReport"].is_object();
    let copy = bench.cluster.until(OPERATORS, "cluster", copied).await["status"].clone();
    let status = bench.cluster.get(DATAGATHERS, "first")["status"].clone();
    let gathered = &copy["gatherStatus"];
    assert_eq!(gathered["lastGatherTime"], status["finishTime"]);
    assert_eq!(gathered["gatherers"], status["gatherers"]);
    assert!(gathered["lastGatherDuration"].as_str().unwrap().ends_with('s'), "{gathered:#}");
    assert_eq!(copy["insightsReport"]["healthChecks"], status["insightsReport"]["healthChecks"]);
    controller.stop().await;

    // Of a gathering that ends later than any that is to come.
    bench.cluster.change(OPERATORS, "cluster", |object| {
        object["status"]["gatherStatus"]["lastGatherTime"] = json!("2999-01-01T00:00:00Z");
    });
    let before = bench.cluster.get(OPERATORS, "cluster");
    let controller = bench.start();
    bench.ask("second", &json!({}));
    bench.until_state("second", "Completed").await;
    let asked = format!("{OPERATORS}/cluster");
    bench.cluster.until_asked(&http::Method::GET, &asked, 2).await;
    controller.stop().await;
    assert_eq!(bench.cluster.get(OPERATORS, "cluster"), before);
}
