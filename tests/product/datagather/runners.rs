//! What runs a gathering makes no difference to who asked for it: the same tests for both runners. A Job is played by what its
//! container runs, with what the controller has handed it; `admit up` runs it as a process.

use std::fs;
use std::time::Duration;

use admit::controllers::datagather::crd::DataGather;
use admit::controllers::datagather::{JobSettings, RunnerKind, Settings, TokenSettings, run_one};
use admit::controllers::kit::clock::Clock;
use admit::gather::tunnel::Proxies;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::runs::{Bench, condition, message, uploading};
use super::upload::ingress::{Answers, FakeIngress, NAMED_URL};
use crate::running::Workplace;
use crate::support::cluster::{DATAGATHERS, EVENTS, FakeCluster, PATIENCE};
use crate::support::relay::{FakeProxy, Manner};

const JOBS: &str = "/apis/batch/v1/namespaces/openshift-insights/jobs";
const PODS: &str = "/api/v1/namespaces/openshift-insights/pods";
const SECRETS: &str = "/api/v1/namespaces/openshift-insights/secrets";
const PROXIES: &str = "/apis/config.openshift.io/v1/proxies";
const SUPPORT: &str = "/api/v1/namespaces/openshift-config/secrets";
const MAPS: &str = "/api/v1/namespaces/openshift-insights/configmaps";

#[derive(Clone, Copy, Debug, PartialEq)]
enum Runner {
    InProcess,
    Job,
}

const BOTH: [Runner; 2] = [Runner::InProcess, Runner::Job];

fn bench() -> Bench {
    Bench { cluster: FakeCluster::new(&[JOBS, PODS, SECRETS, SUPPORT, MAPS, PROXIES]), ..Bench::new() }
}

fn as_job(settings: &Settings) -> Settings {
    Settings { runner: RunnerKind::Job(JobSettings::new("admit")), ..settings.clone() }
}

/// Runs the controller until `first` has ended and `seen`, with a cluster around it that runs a Job once.
async fn gathered(
    runner: Runner,
    bench: &Bench,
    settings: Settings,
    spec: &Value,
    seen: impl Fn(&Value) -> bool,
) -> Value {
    let chosen = if runner == Runner::Job { as_job(&settings) } else { settings.clone() };
    let controller = bench.start_with(chosen);
    bench.ask("first", spec);
    let over =
        |object: &Value| matches!(object["status"]["dataGatherState"].as_str(), Some("Completed" | "Failed"));
    let wanted = |object: &Value| over(object) && seen(object);
    let waiting = bench.cluster.until(DATAGATHERS, "first", wanted);
    let object =
        if runner == Runner::Job { tokio::join!(waiting, play(bench, settings)).0 } else { waiting.await };
    controller.stop().await;
    object["status"].clone()
}

/// What a cluster does with the Job: its container has what is in the Secret and in the ConfigMap that the Job names, and nothing else.
async fn play(bench: &Bench, mut settings: Settings) {
    let ended = || {
        let state = bench.cluster.get(DATAGATHERS, "first")["status"]["dataGatherState"].clone();
        Some(Value::Null).filter(|_| state == "Failed")
    };
    let made = || Some(bench.cluster.get(JOBS, "first")).filter(|job| job.is_object()).or_else(ended);
    let job = bench.cluster.until_found(made).await.unwrap();
    if job.is_null() {
        return;
    }
    let pod = &job["spec"]["template"]["spec"];
    let args = pod["containers"][0]["args"].to_string();
    assert!(args.contains("--configured") && !args.contains("canary"), "{args}");
    let volume =
        |kind: &str| pod["volumes"].as_array().unwrap().iter().find_map(|volume| volume.get(kind)).cloned();
    if let Some(upload) = &mut settings.upload {
        let secret = volume("secret").unwrap()["secretName"].as_str().unwrap().to_owned();
        let token = bench.cluster.get(SECRETS, &secret)["data"]["token"].as_str().unwrap().to_owned();
        let map = volume("configMap").unwrap()["name"].as_str().unwrap().to_owned();
        let ca = bench.cluster.get(MAPS, &map)["data"]["ca-bundle.crt"].as_str().unwrap().to_owned();
        let path = |name: &str| bench.dir.path().join(name);
        fs::write(path("handed-token"), STANDARD.decode(token).unwrap()).unwrap();
        fs::write(path("handed-ca.pem"), ca).unwrap();
        upload.token = TokenSettings::File(path("handed-token"));
        upload.ca = Some(path("handed-ca.pem"));
        if let Some(ca) = bench.cluster.get(MAPS, &map)["data"]["proxy-ca.crt"].as_str() {
            fs::write(path("handed-proxy-ca.pem"), ca).unwrap();
            settings.proxy_ca = Some(path("handed-proxy-ca.pem"));
        }
    }
    settings.proxies = Proxies::environment(|name| variable(bench, pod, name));
    settings.follow_cluster = false;
    settings.obfuscation.always |= args.contains("--obfuscate-always");
    let container = run_one(bench.cluster.client(), settings, "first", CancellationToken::new());
    tokio::time::timeout(PATIENCE, container).await.unwrap().unwrap();
}

/// What a variable of the container that is kept in a Secret comes to.
fn variable(bench: &Bench, pod: &Value, name: &str) -> Option<String> {
    let env = pod["containers"][0]["env"].as_array().unwrap();
    let from = &env.iter().find(|variable| variable["name"] == name)?["valueFrom"]["secretKeyRef"];
    let secret = bench.cluster.get(SECRETS, from["name"].as_str()?);
    let value = STANDARD.decode(secret["data"][from["key"].as_str()?].as_str()?).unwrap();
    Some(String::from_utf8(value).unwrap())
}

#[tokio::test]
async fn either_runner_gathers_and_says_so() {
    let mut told = Vec::new();
    for runner in BOTH {
        let bench = bench();
        let spec = json!({"gatherersConfig": [{"name": "clusterconfig/crds", "state": "Disabled"}]});
        let status = gathered(runner, &bench, bench.settings(), &spec, |_| true).await;
        assert_eq!(status["dataGatherState"], "Completed", "{runner:?}: {status:#}");
        let steps = ["DataRecorded", "DataUploaded", "DataProcessed"].map(|step| condition(&status, step));
        let names: Vec<_> =
            status["gatherers"].as_array().unwrap().iter().map(|row| row["name"].clone()).collect();
        assert_eq!(bench.archives().len(), 1, "{runner:?}");
        told.push((steps, names));
    }
    assert_eq!(told[0], told[1]);
}

#[tokio::test]
async fn either_runner_obfuscates_when_the_configuration_asks_for_it() {
    for runner in BOTH {
        let bench = bench();
        let map =
            json!({"metadata": {"name": "net", "namespace": "kube-system"}, "data": {"ip": "10.1.2.3"}});
        bench.cluster.put("/api/v1/namespaces/kube-system/configmaps", map);
        let configuration = json!({
            "metadata": {"name": "insights-config"}, "data": {"config.yaml": "dataReporting: {obfuscation: [networking]}"},
        });
        bench.cluster.put(MAPS, configuration);
        let mut settings = bench.settings();
        settings.obfuscation.networks = vec!["10.0.0.0/8".parse().unwrap()];
        let status = gathered(runner, &bench, settings, &json!({}), |_| true).await;
        assert_eq!(status["dataGatherState"], "Completed", "{runner:?}: {status:#}");
        let archive = bench.dir.path().join("archives").join(&bench.archives()[0]);
        assert_eq!(
            super::runs::entry(&archive, "config/configmaps/kube-system/net/ip"),
            "10.0.0.1",
            "{runner:?}"
        );
        let secret = bench.cluster.get(SECRETS, "obfuscation-translation-table");
        assert_eq!(secret["stringData"], json!({"10.1.2.3": "10.0.0.1"}), "{runner:?}");
    }
}

#[tokio::test]
async fn either_runner_uploads_and_gets_the_report() {
    for runner in BOTH {
        let bench = bench();
        let mut answers = Answers::accept("abc");
        answers.report = (200, r#"{"requestID":"abc","report":[]}"#.to_owned());
        let service = FakeIngress::start(answers).await;
        let reported = |object: &Value| object["status"]["insightsReport"].is_object();
        let status = gathered(runner, &bench, uploading(&bench, &service), &json!({}), reported).await;
        for (step, expected) in [
            ("DataUploaded", "True/HttpStatus202"),
            ("DataProcessed", "True/Processed"),
            ("AnalysisAvailable", "True/ReportMatches"),
        ] {
            assert_eq!(condition(&status, step), expected, "{runner:?}: {status:#}");
        }
        let uploads = service.uploads();
        assert_eq!(
            (uploads.len(), uploads[0].authorization.as_str()),
            (1, "Bearer canary-4711"),
            "{runner:?}"
        );
    }
}

/// The Secret `support` names a proxy with a login, the cluster's Proxy another and whom it spares, which is not the service.
#[tokio::test]
async fn either_runner_uploads_by_the_proxy_that_the_cluster_names() {
    for runner in BOTH {
        let service = FakeIngress::start(Answers::accept("abc")).await;
        let proxy =
            FakeProxy::start(Manner::Quiet(service.address, Some(("robot", "canary-proxy"))), true).await;
        let bench = bench();
        let url = STANDARD.encode(format!("https://robot:canary-proxy@{}", proxy.address));
        let secret = json!({"metadata": {"name": "support"}, "data": {"httpsProxy": url}});
        bench.cluster.put(SUPPORT, secret);
        let spec = json!({"httpsProxy": "http://u:canary-cluster@127.0.0.1:1", "noProxy": "other.test"});
        bench.cluster.put(PROXIES, json!({"metadata": {"name": "cluster"}, "spec": spec}));
        let mut settings = uploading(&bench, &service);
        settings.upload.as_mut().unwrap().url = NAMED_URL.to_owned();
        settings.proxy_ca = Some(bench.dir.path().join("proxy-ca.pem"));
        fs::write(settings.proxy_ca.as_ref().unwrap(), &proxy.ca).unwrap();
        let status = gathered(runner, &bench, settings, &json!({}), |_| true).await;
        assert_eq!(condition(&status, "DataUploaded"), "True/HttpStatus202", "{runner:?}: {status:#}");
        assert_eq!(condition(&status, "DataProcessed"), "True/Processed", "{runner:?}: {status:#}");
        assert_eq!(service.uploads().len(), 1);
        let asked = proxy.requests();
        assert!(
            asked.len() >= 2 && asked.iter().all(|line| line.contains(" ingest.example.test:443 ")),
            "{asked:?}"
        );
        let told = format!("{status} {:?} {:?}", bench.cluster.all(JOBS), bench.cluster.all(EVENTS));
        assert!(!told.contains("canary") && !told.contains(&url), "{runner:?}: {told}");
    }
}

#[tokio::test]
async fn either_runner_says_why_an_upload_failed() {
    for runner in BOTH {
        let service = FakeIngress::start(Answers::refuse(401)).await;
        let bench = bench();
        let status = gathered(runner, &bench, uploading(&bench, &service), &json!({}), |_| true).await;
        assert_eq!(status["dataGatherState"], "Failed", "{runner:?}");
        assert_eq!(condition(&status, "DataUploaded"), "False/HttpStatus401", "{runner:?}");

        let bench = super::runners::bench();
        let mut settings = uploading(&bench, &service);
        settings.upload.as_mut().unwrap().token = TokenSettings::Secret {
            namespace: "openshift-insights".to_owned(),
            name: "missing".to_owned(),
            key: "token".to_owned(),
        };
        let status = gathered(runner, &bench, settings, &json!({}), |_| true).await;
        assert_eq!(status["dataGatherState"], "Failed", "{runner:?}");
        assert_eq!(condition(&status, "DataUploaded"), "False/HttpStatus0", "{runner:?}: {status:#}");
        let told = message(&status, "DataUploaded");
        assert!(told.starts_with("cannot read Secret openshift-insights/missing"), "{runner:?}: {told}");
    }
}

/// A clock that goes with tokio's, which is paused: what is waited for comes at once.
fn clock() -> Clock {
    let (noon, start) = ("2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap(), Instant::now());
    Clock::new(move || noon + start.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_cannot_start_fails_the_gathering_within_two_minutes() {
    let unscheduled = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: persistentvolumeclaim \"archives\" not found.",
    }]});
    let unpulled = json!({"phase": "Pending", "containerStatuses": [{
        "name": "insights-gathering", "image": "nowhere/admit:1", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such host"}},
    }]});
    for (status, expected) in
        [(unscheduled, "persistentvolumeclaim \"archives\" not found"), (unpulled, "nowhere/admit:1")]
    {
        let clock = clock();
        let cluster = FakeCluster::new(&[JOBS, PODS, SECRETS, MAPS]).with_clock(clock.clone());
        let bench = Bench { cluster, ..Bench::new() };
        let controller = bench.start_with(Settings { clock: clock.clone(), ..as_job(&bench.settings()) });
        bench.ask("first", &json!({}));
        let related = |object: &Value| object["status"]["relatedObjects"].is_array();
        bench.cluster.until(DATAGATHERS, "first", related).await;
        let began = clock.now();
        let labels = json!({"insights-gathering": "", "batch.kubernetes.io/job-name": "first"});
        let metadata = json!({"name": "first-x", "namespace": "openshift-insights", "labels": labels});
        bench.cluster.put(PODS, json!({"metadata": metadata, "spec": {"containers": []}, "status": status}));
        // A paused clock passes when nothing else is to be done.
        tokio::time::sleep(Duration::from_secs(95)).await;
        let failed = |object: &Value| object["status"]["dataGatherState"] == "Failed";
        let object = bench.cluster.until(DATAGATHERS, "first", failed).await;
        let told = message(&object["status"], "DataRecorded");
        assert!(told.contains("does not start") && told.contains(expected), "{told}");
        let took = Duration::try_from(clock.now().duration_since(began)).unwrap();
        assert!(took < Duration::from_mins(2), "{took:?}");
        assert!(bench.cluster.get(JOBS, "first").is_null(), "its Pod would gather for nobody");
        controller.stop().await;
    }
}

#[tokio::test]
async fn a_name_too_long_for_a_job_fails_with_that_reason() {
    let bench = bench();
    let controller = bench.start_with(as_job(&bench.settings()));
    let name = "n".repeat(64);
    bench.ask(&name, &json!({}));
    let status = bench.until_state(&name, "Failed").await;
    assert!(message(&status, "DataRecorded").contains("63 characters"), "{status:#}");
    controller.stop().await;
}

/// Active periodic Jobs of an operator that is gone are ended at start, and their gatherings fail; others go on.
#[tokio::test]
async fn periodic_jobs_of_a_dead_operator_are_ended_at_start() {
    let bench = bench();
    let owner = |name: &str| {
        let object = bench.cluster.get(DATAGATHERS, name);
        json!([{"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather", "name": name, "controller": true,
                "uid": object["metadata"]["uid"]}])
    };
    let ended = json!({"conditions": [{"type": "Complete", "status": "True"}]});
    for (name, status) in
        [("periodic-gathering-a", json!({})), ("periodic-gathering-b", ended), ("asked-for", json!({}))]
    {
        bench.ask(name, &json!({}));
        bench.cluster.change(DATAGATHERS, name, |object| {
            let related = json!([{"group": "batch", "resource": "jobs", "name": name, "namespace": "openshift-insights"}]);
            let state = if status["conditions"].is_null() { "Pending" } else { "Completed" };
            object["status"] = json!({"dataGatherState": state, "conditions": [], "relatedObjects": related});
        });
        let metadata =
            json!({"name": name, "labels": {"insights-gathering": ""}, "ownerReferences": owner(name)});
        bench.cluster.put(JOBS, json!({"metadata": metadata, "spec": {}, "status": status}));
    }
    let mut settings = as_job(&bench.settings());
    settings.gather_every = Some(Duration::from_hours(2));
    let controller = bench.start_with(settings);
    let status = bench.until_state("periodic-gathering-a", "Failed").await;
    assert!(message(&status, "DataRecorded").contains("deleted"), "{status:#}");
    assert!(bench.cluster.get(JOBS, "periodic-gathering-a").is_null());
    for kept in ["periodic-gathering-b", "asked-for"] {
        assert!(bench.cluster.get(JOBS, kept).is_object(), "{kept}");
    }
    controller.stop().await;
}

/// With nothing that a test plays: `admit up` runs the Job as a process under the account `gather`, roles in force; token and proxy get
/// there by a Secret, the archive lies in the claimed volume.
#[tokio::test(flavor = "multi_thread")]
async fn in_up_a_job_gathers_under_an_account_of_its_own() {
    let service = FakeIngress::start(Answers::accept("abc")).await;
    let workplace = Workplace::new();
    let path = |name: &str| workplace.path().join(name);
    fs::write(path("token"), "canary-4711").unwrap();
    fs::write(path("ca.pem"), &service.ca_pem).unwrap();
    let args = [
        "--runner=job",
        "--job-claim=archives",
        "--allow-upload-to=127.0.0.0/8",
        "--upload-token-file=token",
        "--upload-ca=ca.pem",
        "--upload-url",
        NAMED_URL,
    ];
    let proxy =
        FakeProxy::start(Manner::Quiet(service.address, Some(("robot", "canary-proxy"))), false).await;
    let mut command = workplace.command();
    command.args(args).env("HTTPS_PROXY", format!("http://robot:canary-proxy@{}", proxy.address));
    let running = workplace.launch(command);
    let client = workplace.client().await;
    let claims: Api<PersistentVolumeClaim> = Api::namespaced(client.clone(), "admit-system");
    let claim = json!({
        "metadata": {"name": "archives"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    claims.create(&PostParams::default(), &serde_json::from_value(claim).unwrap()).await.unwrap();
    let gatherings: Api<DataGather> = Api::all(client);
    let object = json!({"metadata": {"name": "first"}, "spec": {}});
    gatherings.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    // An hour may pass until it is processed; that it was uploaded is told before.
    let uploaded = |object: Option<&DataGather>| {
        object.and_then(|object| object.status.as_ref()).is_some_and(|status| {
            let told = status.conditions.iter().any(|c| c.type_ == "DataUploaded" && c.status != "Unknown");
            told || status.finish_time.is_some()
        })
    };
    let seen = await_condition(gatherings, "first", uploaded);
    let seen = tokio::time::timeout(Duration::from_mins(3), seen).await;
    let object = seen.unwrap_or_else(|_| panic!("{}", workplace.log())).unwrap().unwrap();
    let status = serde_json::to_value(object.status.unwrap()).unwrap();
    assert_eq!(condition(&status, "DataUploaded"), "True/HttpStatus202", "{status:#}\n{}", workplace.log());
    assert_eq!(service.uploads()[0].authorization, "Bearer canary-4711");
    for row in status["gatherers"].as_array().unwrap() {
        assert!(!row.to_string().contains("forbidden"), "{row:#}");
    }
    let folder = path(".admit/local");
    let found = std::process::Command::new("find")
        .arg(&folder)
        .args(["-name", "insights-*.tar.gz"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(found.stdout).unwrap().lines().count(), 1, "{folder:?}");
    assert!(running.terminate().success());
    assert!(!workplace.log().contains("canary"), "the token shows");
}
