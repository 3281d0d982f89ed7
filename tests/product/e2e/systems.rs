//! The five systems, each once from its creation to its end: `admit controllers` with every controller under its own account and role,
//! and `admit serve` that decides and converts. Nobody runs Jobs here: they are objects, of which the scenario says how they end, in
//! the words that a Job controller has for it.

use std::fs;

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::apiserver::ApiServer;
use super::cluster::{Cluster, data_gather, said, shipped};
use super::controllers::Replica;
use crate::deploy::base;
use crate::support::postgres::{PASSWORD, Pair};

const SPOKE: &str = "open-cluster-management-addon-observability";
const HUB: &str = "cluster1";
const ADD_ON: &str = "observabilityaddon/observability-addon";
const ARGS: [&str; 8] = [
    "--runner=job",
    "--job-image=registry.example/admit:1",
    "--gather-every=never",
    "--prune-after=never",
    "--hub-namespace",
    HUB,
    "--metrics-listen=127.0.0.1:0",
    "--payload",
];

pub(super) fn each_lives_once(api: &ApiServer) {
    let cluster = Cluster::new(api);
    cluster.define();
    let manifests = base(&["runner=job"]);
    let rights = manifests.path().join("deploy/rbac.yaml").display().to_string();
    // Who decides asks the API server who may use which account.
    let [deciding, kubeconfig] = ["admit", "admit-controllers"].map(|name| cluster.as_account(name, &rights));
    // An API server takes a moment to learn of roles, and who is refused then waits long before asking again.
    let may = ["auth", "can-i", "list", "cyndipipelines.cyndi.cloud.redhat.com", "-A"];
    let as_deciding = "--as=system:serviceaccount:admit-system:admit";
    cluster.until(|| cluster.kubectl(&[&may[..], &[as_deciding]].concat()), |output| output.status.success());
    let policies = shipped("policies");
    let args = ["--policies", &policies, "--kubeconfig", &deciding, "--shutdown-delay", "0"];
    let serving = cluster.place.start(&args);
    cluster.register(&serving);
    cluster.convert_by(&serving);
    cluster.until(|| said(&cluster.dry_run("periodic")), |said| said.contains("names with the prefix"));
    let payload = cluster.place.path("payload");
    fs::create_dir(&payload).unwrap();
    fs::write(payload.join("dns.json"), operator("dns").to_string()).unwrap();
    let payload = payload.display().to_string();
    let replica = Replica::start(&cluster, &kubeconfig, "all", &[&ARGS[..], &[&payload]].concat());

    a_gathering_is_converted_and_ends_with_its_job(&cluster);
    a_must_gather_ends_with_its_job(&cluster);
    an_add_on_goes_from_its_hub_and_back(&cluster);
    an_operator_is_primed_until_it_reports(&cluster, &payload);
    a_pipeline_shows_its_hosts(&cluster);

    replica.terminated();
    let log = fs::read_to_string(cluster.place.path("all.log")).unwrap();
    let refused: Vec<&str> = log.lines().filter(|line| line.to_lowercase().contains("forbidden")).collect();
    assert!(refused.is_empty(), "the roles lack: {refused:#?}");
    cluster.convert_no_longer();
    assert!(serving.terminate().success());
    cluster.unregister();
}

/// A manifest as payloads have them.
fn operator(name: &str) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": name}, "spec": {},
        "status": {"versions": [{"name": "operator", "version": "4.5.0"}],
            "relatedObjects": [{"group": "", "resource": "namespaces", "name": name}]},
    })
}

/// Another command of ours, as the administrator.
fn admit(cluster: &Cluster<'_>, args: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(args).env("KUBECONFIG", cluster.api.kubeconfig()).current_dir(cluster.place.path("."));
    command.output().unwrap()
}

/// What `kubectl get` has of it, as JSON; null where there is none.
fn got(cluster: &Cluster<'_>, what: &[&str]) -> Value {
    let found = cluster.works(&[&["get", "--ignore-not-found", "--output=json"], what].concat());
    if found.trim().is_empty() { Value::Null } else { serde_json::from_str(&found).unwrap() }
}

fn until(cluster: &Cluster<'_>, what: &[&str], wanted: impl Fn(&Value) -> bool) -> Value {
    cluster.until(|| got(cluster, what), wanted)
}

fn gone(cluster: &Cluster<'_>, what: &[&str]) {
    until(cluster, what, Value::is_null);
}

fn create(cluster: &Cluster<'_>, name: &str, object: &Value) {
    cluster.works(&["create", "-f", &cluster.file(&format!("{name}.json"), object)]);
}

/// The status of a condition; empty where it is not there.
fn condition(object: &Value, type_: &str) -> String {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = conditions.into_iter().find(|it| it["type"] == type_);
    found.map_or_else(String::new, |it| it["status"].as_str().unwrap_or_default().to_owned())
}

/// Ends a Job as its controller does, which first says why it will and then that it has.
fn end_job(cluster: &Cluster<'_>, namespace: &str, name: &str, succeeds: bool) {
    let now = Timestamp::now().round(Unit::Second).unwrap().to_string();
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "Played", "message": "as the scenario has it",
            "lastProbeTime": now, "lastTransitionTime": now})
    };
    let mut status = json!({"startTime": now});
    if succeeds {
        status["completionTime"] = json!(now);
        status["succeeded"] = json!(1);
        status["conditions"] = json!([condition("SuccessCriteriaMet"), condition("Complete")]);
    } else {
        status["failed"] = json!(1);
        status["conditions"] = json!([condition("FailureTarget"), condition("Failed")]);
    }
    let patch = json!({"status": status}).to_string();
    let job = format!("job/{name}");
    cluster.works(&["patch", &job, "-n", namespace, "--subresource=status", "--type=merge", "-p", &patch]);
}

/// Stored in the oldest version, shown in each.
fn a_gathering_is_converted_and_ends_with_its_job(cluster: &Cluster<'_>) {
    let mut object = data_gather("only");
    object["spec"]["dataPolicy"] = json!("ObfuscateNetworking");
    create(cluster, "only", &object);
    let job = ["job/only", "-n", "admit-system"];
    let made = until(cluster, &job, |job| !job.is_null());
    assert_eq!(made["spec"]["template"]["spec"]["serviceAccountName"], "gather");
    end_job(cluster, "admit-system", "only", false);
    let oldest = "datagathers.v1alpha1.insights.openshift.io/only";
    until(cluster, &[oldest], |it| it["status"]["dataGatherState"] == "Failed");
    for version in ["v1alpha2", "v1"] {
        let shown = got(cluster, &[&format!("datagathers.{version}.insights.openshift.io/only")]);
        assert_eq!(shown["apiVersion"], format!("insights.openshift.io/{version}"));
        assert_eq!(shown["spec"]["dataPolicy"], json!(["ObfuscateNetworking"]), "{shown:#}");
        assert_eq!(condition(&shown, "Progressing"), "False", "{shown:#}");
    }
    cluster.works(&["delete", oldest]);
    gone(cluster, &[oldest]);
    cluster.works(&["delete", "jobs", "--all", "--namespace=admit-system"]);
}

fn a_must_gather_ends_with_its_job(cluster: &Cluster<'_>) {
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": "gatherer", "namespace": "default"}});
    create(cluster, "gatherer", &account);
    let object = json!({
        "apiVersion": "operator.openshift.io/v1alpha1", "kind": "MustGather",
        "metadata": {"name": "only", "namespace": "default"},
        "spec": {
            "serviceAccountRef": {"name": "gatherer"}, "mustGatherTimeout": "3m",
            "storage": {"type": "PersistentVolume", "persistentVolume": {"claim": {"name": "must-gather"}}},
        },
    });
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "must-gather", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    create(cluster, "claim", &claim);
    create(cluster, "must-gather", &object);
    let job = ["job/only", "-n", "default"];
    let made = until(cluster, &job, |job| !job.is_null());
    assert_eq!(made["spec"]["template"]["spec"]["serviceAccountName"], "gatherer");
    end_job(cluster, "default", "only", true);
    let what = ["mustgather/only", "-n", "default"];
    let ended = until(cluster, &what, |it| it["status"]["completed"] == true);
    assert_eq!(ended["status"]["status"], "Completed", "{ended:#}");
    // Nothing of it stays that nobody asked to keep.
    gone(cluster, &job);
    cluster.works(&["delete", "mustgather/only", "-n", "default"]);
    gone(cluster, &what);
    cluster.works(&["delete", "persistentvolumeclaim/must-gather", "-n", "default", "--wait=false"]);
}

fn an_add_on_goes_from_its_hub_and_back(cluster: &Cluster<'_>) {
    for namespace in [SPOKE, HUB] {
        cluster.works(&["create", "namespace", namespace]);
    }
    let object = json!({
        "apiVersion": "observability.open-cluster-management.io/v1beta1", "kind": "ObservabilityAddon",
        "metadata": {"name": "observability-addon", "namespace": HUB}, "spec": {"interval": 60},
    });
    create(cluster, "add-on", &object);
    let spoke = until(cluster, &[ADD_ON, "-n", SPOKE], |it| !it.is_null());
    assert_eq!(spoke["spec"]["interval"], 60);
    let report = ["report-condition", "--component", "mc", "--reason", "ForwardSuccessful"];
    let reported = admit(cluster, &report);
    assert!(reported.status.success(), "{}", said(&reported));
    for namespace in [SPOKE, HUB] {
        until(cluster, &[ADD_ON, "-n", namespace], |it| condition(it, "Available") == "True");
    }
    cluster.works(&["delete", ADD_ON, "-n", HUB, "--wait=false"]);
    for namespace in [HUB, SPOKE] {
        gone(cluster, &[ADD_ON, "-n", namespace]);
    }
}

fn an_operator_is_primed_until_it_reports(cluster: &Cluster<'_>, payload: &str) {
    let dns = ["clusteroperator/dns"];
    let primed = |it: &Value| condition(it, "Available") == "Unknown";
    let first = until(cluster, &dns, primed);
    cluster.works(&["delete", "clusteroperator/dns"]);
    until(cluster, &dns, |it| primed(it) && it["metadata"]["uid"] != first["metadata"]["uid"]);
    let now = Timestamp::now().round(Unit::Second).unwrap().to_string();
    let says = |type_: &str, status: &str| {
        json!({"type": type_, "status": status, "reason": "AsExpected", "message": "All is well",
            "lastTransitionTime": now})
    };
    let report = json!({"status": {
        "conditions": [says("Available", "True"), says("Progressing", "False"), says("Degraded", "False")],
        "versions": [{"name": "operator", "version": "4.5.0"}],
    }});
    let args = ["patch", "clusteroperator/dns", "--subresource=status", "--type=merge", "-p"];
    cluster.works(&[&args[..], &[&report.to_string()]].concat());
    let waited = admit(cluster, &["wait-operators", "--payload", payload, "--timeout", "30s"]);
    assert!(waited.status.success(), "{}", said(&waited));
    // Out of the payload it goes for good: the pass that makes another one has seen that.
    fs::remove_file(format!("{payload}/dns.json")).unwrap();
    fs::write(format!("{payload}/other.json"), operator("other").to_string()).unwrap();
    cluster.works(&["delete", "clusteroperator/dns"]);
    until(cluster, &["clusteroperator/other"], primed);
    assert_eq!(got(cluster, &dns), Value::Null);
}

/// With a real PostgreSQL; the test is what fills the table, as a connector would.
fn a_pipeline_shows_its_hosts(cluster: &Cluster<'_>) {
    let runtime = Runtime::new().unwrap();
    // Says so loudly where there is none.
    let Some(pair) = runtime.block_on(Pair::new()) else { return };
    for (name, database) in [("only-db", &pair.app), ("host-inventory-read-only-db", &pair.inventory)] {
        let login = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "default"},
            "stringData": {
                "db.host": "127.0.0.1", "db.port": pair.port.to_string(), "db.name": database,
                "db.user": pair.user, "db.password": PASSWORD,
            },
        });
        create(cluster, name, &login);
    }
    let quickly = ["standard.interval", "init.validation.interval", "validation.interval"];
    let mut data: serde_json::Map<_, _> =
        quickly.into_iter().map(|key| (key.to_owned(), json!("1"))).collect();
    data.insert("init.validation.attempts.threshold".to_owned(), json!("1000"));
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cyndi", "namespace": "default"}, "data": data});
    create(cluster, "cyndi", &settings);
    runtime.block_on(pair.hosts([1, 2]));
    let object = json!({"apiVersion": "cyndi.cloud.redhat.com/v1alpha1", "kind": "CyndiPipeline",
        "metadata": {"name": "only", "namespace": "default"},
        "spec": {"appName": "only", "managedConnectors": false}});
    let file = cluster.file("pipeline.json", &object);
    // Decided in view of all other pipelines, once those are known.
    cluster.until(|| cluster.kubectl(&["create", "-f", &file]), |output| output.status.success());
    let what = ["cyndipipeline/only", "-n", "default"];
    let started = until(cluster, &what, |it| it["status"]["tableName"].is_string());
    let table = started["status"]["tableName"].as_str().unwrap();
    runtime.block_on(async { while !pair.try_fill(table, [1, 2]).await {} });
    until(cluster, &what, |it| it["status"]["activeTableName"] == table && condition(it, "Valid") == "True");
    cluster.works(&["delete", "cyndipipeline/only", "-n", "default", "--wait=false"]);
    gone(cluster, &what);
    assert!(runtime.block_on(pair.relations()).is_empty(), "nothing of it stays in the database");
    cluster.works(&["delete", "configmap/cyndi", "-n", "default"]);
}
