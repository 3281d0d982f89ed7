//! Gatherings that run as Jobs: what is created, adopted and concluded, with `run_one` in the part of the container.

use admit::controllers::datagather::crd::{DataGather, DataGatherSpec};
use admit::controllers::datagather::job::{JobView, manifest, view};
use admit::controllers::datagather::job_inputs::JobInputs;
use admit::controllers::datagather::{JobSettings, RunnerKind, Settings, run, run_one};
use http::Method;
use k8s_openapi::api::batch::v1::Job;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::cluster::{DATAGATHERS, FakeCluster, PATIENCE};

const JOBS: &str = "/apis/batch/v1/namespaces/openshift-insights/jobs";
const PODS: &str = "/api/v1/namespaces/openshift-insights/pods";

fn settings() -> JobSettings {
    let mut settings = JobSettings::new("example.com/admit:1");
    settings.args = vec!["--namespace-prefix=x".to_owned()];
    settings.environment = vec![("HTTPS_PROXY".to_owned(), "http://proxy".to_owned())];
    settings
}

fn state(object: &Value) -> &str {
    object["status"]["dataGatherState"].as_str().unwrap_or_default()
}

#[test]
fn dg_08_12_the_manifest() {
    let mut object = DataGather::new("first", DataGatherSpec::default());
    object.metadata.uid = Some("uid-1".to_owned());
    let job = manifest(&object, &settings(), &JobInputs::default()).unwrap();
    assert_eq!(view(Some(&job), "uid-1"), JobView::Active);
    assert_eq!(view(Some(&job), "uid-2"), JobView::Foreign);
    let job = serde_json::to_value(job).unwrap();
    assert_eq!(
        job["metadata"],
        json!({
            "name": "first",
            "labels": {"insights-gathering": ""},
            "ownerReferences": [{
                "apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather", "name": "first", "uid": "uid-1",
                "controller": true,
            }],
        })
    );
    let annotations = &job["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(annotations, &json!({"openshift.io/required-scc": "restricted-v2"}));
    assert_eq!(job["spec"]["backoffLimit"], 0);
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["restartPolicy"], "Never");
    assert_eq!(
        pod["securityContext"],
        json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}})
    );
    assert_eq!(pod["volumes"], json!([{"name": "archives-path", "emptyDir": {}}]));
    let container = &pod["containers"][0];
    assert_eq!(
        container["env"],
        json!([{"name": "DATAGATHER_NAME", "value": "first"}, {"name": "HTTPS_PROXY", "value": "http://proxy"}])
    );
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 8 * 3600, "four intervals");
    assert_eq!(pod["serviceAccountName"], "gather");
    assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
    assert_eq!(container["args"][3], "--namespace-prefix=x");

    let with = |status: &str| {
        let mut job = job.clone();
        let condition = json!({"type": status, "status": "True", "reason": "R", "message": "m"});
        job["status"] = json!({"conditions": [condition]});
        view(Some(&serde_json::from_value::<Job>(job).unwrap()), "uid-1")
    };
    assert_eq!(with("Failed"), JobView::Failed("R m".to_owned()));
    assert_eq!(with("Complete"), JobView::Succeeded);
    assert_eq!(with("Suspended"), JobView::Active);
    assert_eq!(view(None, "uid-1"), JobView::Missing);
}

#[test]
fn dg_07_a_datagather_says_where_its_own_archive_lies() {
    let place = |storage: Value| {
        let spec = serde_json::from_value(json!({"storage": storage})).unwrap();
        let mut object = DataGather::new("first", spec);
        object.metadata.uid = Some("uid-1".to_owned());
        let settings = JobSettings { claim: Some("of-all".to_owned()), ..settings() };
        let job = manifest(&object, &settings, &JobInputs::default()).unwrap();
        let pod = serde_json::to_value(job).unwrap()["spec"]["template"]["spec"].take();
        let mounts = &pod["containers"][0]["volumeMounts"][0];
        assert_eq!(mounts["mountPath"], pod["containers"][0]["args"][2]);
        (pod["volumes"][0].clone(), mounts["mountPath"].clone())
    };
    let claim = |name: &str| json!({"name": "archives-path", "persistentVolumeClaim": {"claimName": name}});
    assert_eq!(place(Value::Null), (claim("of-all"), json!("/var/lib/insights-operator")));
    let own = |more: Value| json!({"type": "PersistentVolume", "persistentVolume": more});
    let volume = json!({"claim": {"name": "mine"}, "mountPath": "/data"});
    assert_eq!(place(own(volume)), (claim("mine"), json!("/data")));
    let volume = json!({"claim": {"name": "mine"}});
    assert_eq!(place(own(volume)), (claim("mine"), json!("/var/lib/insights-operator")));
    let empty = json!({"name": "archives-path", "emptyDir": {}});
    assert_eq!(place(json!({"type": "Ephemeral"})), (empty, json!("/var/lib/insights-operator")));
}

struct Bench {
    cluster: FakeCluster,
    dir: tempfile::TempDir,
    shutdown: CancellationToken,
}

impl Bench {
    fn new() -> Self {
        Self {
            cluster: FakeCluster::new(&[JOBS, PODS]),
            dir: tempfile::tempdir().unwrap(),
            shutdown: CancellationToken::new(),
        }
    }

    /// Starts the controller and asks for a gathering.
    fn ask_for_first(&self) {
        let mut with_jobs = Settings::new(self.dir.path());
        with_jobs.runner = RunnerKind::Job(settings());
        tokio::spawn(run(self.cluster.client(), with_jobs, self.shutdown.clone()));
        self.cluster.put(
            DATAGATHERS,
            json!({"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather",
            "metadata": {"name": "first"}, "spec": {}}),
        );
    }

    async fn job_of_first(&self) -> Value {
        self.ask_for_first();
        let related = |object: &Value| object["status"]["relatedObjects"].is_array();
        let object = self.cluster.until(DATAGATHERS, "first", related).await;
        assert_eq!(state(&object), "Pending");
        self.cluster.get(JOBS, "first")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

#[tokio::test]
async fn dg_08_07_a_job_gathers_and_is_made_once() {
    let bench = Bench::new();
    // The status write after the creation is lost once: the Job must be found again.
    bench.cluster.refuse_once(Method::PATCH, &format!("{DATAGATHERS}/first/status"), 500);
    let job = bench.job_of_first().await;
    assert_eq!(
        job["metadata"]["ownerReferences"][0]["uid"],
        bench.cluster.get(DATAGATHERS, "first")["metadata"]["uid"]
    );

    let pod =
        run_one(bench.cluster.client(), Settings::new(bench.dir.path()), "first", CancellationToken::new());
    tokio::time::timeout(PATIENCE, pod).await.unwrap().unwrap();
    assert_eq!(state(&bench.cluster.get(DATAGATHERS, "first")), "Completed");
    assert_eq!(bench.cluster.all(JOBS).len(), 1);
    assert_eq!(bench.cluster.get(JOBS, "first")["metadata"]["uid"], job["metadata"]["uid"]);
}

#[tokio::test]
async fn a_job_that_is_deleted_or_fails_ends_the_gathering() {
    for deleted in [true, false] {
        let bench = Bench::new();
        let mut job = bench.job_of_first().await;
        if deleted {
            bench.cluster.delete(JOBS, "first");
        } else {
            job["status"] = json!({"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]});
            bench.cluster.put(JOBS, job);
        }
        let object = bench.cluster.until(DATAGATHERS, "first", |object| state(object) == "Failed").await;
        let expected = if deleted { "deleted" } else { "BackoffLimitExceeded" };
        assert!(object["status"]["conditions"].to_string().contains(expected), "{object:#}");
        assert!(object["status"]["finishTime"].is_string());
    }
}

#[tokio::test]
async fn a_strangers_job_is_left_alone() {
    let bench = Bench::new();
    let stranger = bench.cluster.put(
        JOBS,
        json!({"apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "first", "namespace": "openshift-insights"}, "spec": {}}),
    );
    bench.ask_for_first();
    bench.cluster.until(DATAGATHERS, "first", |object| state(object) == "Failed").await;
    assert_eq!(bench.cluster.get(JOBS, "first"), stranger);
}
