//! The same policies, stored in the API server and served by `admit serve`: users are told the same.

use serde_json::{Value, json};

use super::apiserver::ApiServer;
use super::cluster::{Cluster, data_gather, policy_files, said, shipped};

/// What kube-apiserver puts before the words of a webhook that has no more to say than a message.
const PREFIX: &str = "admission webhook \"policies.admit.local\" denied the request: ";

/// Plays the same steps against both, and compares what kubectl prints.
pub(super) fn are_those_of_stored_policies(api: &ApiServer) {
    let cluster = Cluster::new(api);
    cluster.define();
    cluster.works(&["create", "namespace", "words"]);
    let files: Vec<String> = policy_files().iter().map(|path| path.display().to_string()).collect();
    let all: Vec<&str> = files.iter().flat_map(|file| ["-f", file]).collect();
    let stored = cluster.kubectl(&[&["apply"], all.as_slice()].concat());
    assert!(stored.status.success() && said(&stored).is_empty(), "{}", said(&stored));
    in_force(&cluster);
    let expected = play(&cluster);
    let registered = "validatingadmissionpolicybindings,validatingadmissionpolicies";
    cluster.works(&["delete", registered, "--all", "--wait=false"]);
    cluster.works(&["delete", "configmaps", "--all", "--namespace=admit-system"]);

    let (policies, kubeconfig) =
        (shipped("policies"), cluster.as_account("admit", &shipped("deploy/rbac.yaml")));
    let args = ["--policies", &policies, "--kubeconfig", &kubeconfig, "--shutdown-delay", "0"];
    let serving = cluster.place.start(&args);
    cluster.until(|| cluster.dry_run("periodic").status.success(), |allowed| *allowed);
    cluster.register(&serving);
    in_force(&cluster);
    let told = play(&cluster);
    cluster.unregister();
    cluster.works(&["delete", "namespace", "words", "--wait=false"]);
    for (expected, told) in expected.iter().zip(&told) {
        assert_eq!(told.replace(PREFIX, ""), *expected);
    }
    let refused = expected.iter().filter(|text| text.contains("denied request: ")).count();
    assert!(refused >= 8 && expected.iter().any(|text| text.starts_with("Warning: ")), "{expected:#?}");
}

/// Waits for the policies that are stored first and last: an API server learns of them in this order.
fn in_force(cluster: &Cluster<'_>) {
    let creations = creations();
    for (number, message) in [(0, "names with the prefix"), (2, "host is not a valid")] {
        let file = cluster.file("early.json", &creations[number]);
        let create = ["create", "--dry-run=server", "-f", &file];
        cluster.until(|| said(&cluster.kubectl(&create)), |said| said.contains(message));
    }
}

/// What each step prints. Nothing is left behind.
fn play(cluster: &Cluster<'_>) -> Vec<String> {
    let mut printed = Vec::new();
    let mut step = |args: &[&str]| {
        let output = cluster.kubectl(args);
        let text = String::from_utf8_lossy(&output.stdout);
        printed.push(format!("{}{text}", said(&output)));
    };
    for (number, object) in creations().iter().enumerate() {
        let file = cluster.file(&format!("creation-{number}.json"), object);
        step(&["create", "-f", &file]);
        step(&["apply", "--server-side", "--dry-run=server", "-f", &file]);
    }
    for (target, patch) in patches() {
        let patch = patch.to_string();
        let (kind, subresource) = target.split_once(' ').unwrap();
        let to = ["patch", "-n", "words", kind, "--type=merge", "-p", &patch];
        step(&[&to[..], if subresource.is_empty() { &[] } else { &["--subresource=status"] }].concat());
    }
    step(&["delete", "datagather/a", "clusteroperator/a"]);
    step(&["delete", "-n", "words", "mustgather/a", "cyndipipeline/a"]);
    printed
}

fn creations() -> Vec<Value> {
    let namespaced = |api_version: &str, kind: &str, name: &str, spec: Value| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "words"}, "spec": spec});
    let must_gather = |name: &str, host: &str, case: &str| {
        let target = json!({
            "type": "SFTP",
            "sftp": {"caseID": case, "host": host, "caseManagementAccountSecretRef": {"name": "s"}}});
        namespaced(
            "operator.openshift.io/v1alpha1",
            "MustGather",
            name,
            json!({"serviceAccountRef": {"name": "x"}, "uploadTarget": target}),
        )
    };
    let pipeline =
        |name: &str, spec: Value| namespaced("cyndi.cloud.redhat.com/v1alpha1", "CyndiPipeline", name, spec);
    vec![
        data_gather("periodic-1"),
        data_gather("a"),
        must_gather("b", "example.com;reboot", "1"),
        must_gather("b", "example.com", "../1"),
        must_gather("a", "sftp.example.com:2222", "1"),
        pipeline("b", json!({"appName": "advisor", "validationThreshold": 101})),
        pipeline("a", json!({"appName": "advisor", "maxAge": 45})),
        json!({"apiVersion": "config.openshift.io/v1", "kind": "ClusterOperator", "metadata": {"name": "a"}, "spec": {}}),
    ]
}

/// Each breaks one policy at most: an API server names one of several, and not always the same. Kind and name, a subresource or none, and what is patched.
fn patches() -> Vec<(&'static str, Value)> {
    let state = |state: &str| json!({"status": {"dataGatherState": state}});
    let condition = |name: &str, status: &str| {
        json!({"type": name, "status": status, "reason": "AsExpected",
        "message": "", "lastTransitionTime": "2026-03-01T10:00:00Z"})
    };
    vec![
        ("datagather/a ", json!({"spec": {"dataPolicy": "ClearText"}})),
        ("datagather/a status", state("Pending")),
        ("datagather/a status", state("Running")),
        (
            "datagather/a status",
            json!({"status": {"dataGatherState": "Running", "startTime": "2026-03-01T10:00:00Z"}}),
        ),
        ("datagather/a status", json!({"status": {"startTime": "2026-03-01T10:00:01Z"}})),
        (
            "datagather/a status",
            json!({"status": {"dataGatherState": "Failed", "finishTime": "2026-03-01T10:00:02Z"}}),
        ),
        ("datagather/a status", state("Running")),
        ("mustgather/a ", json!({"spec": {"uploadTarget": {"sftp": {"host": "sftp.example.org"}}}})),
        ("cyndipipeline/a ", json!({"spec": {"maxAge": -1}})),
        ("cyndipipeline/a ", json!({"spec": {"appName": "other"}})),
        ("clusteroperator/a status", json!({"status": {"conditions": [condition("Available", "True")]}})),
        ("clusteroperator/a status", json!({"status": {"conditions": [condition("Available", "False")]}})),
    ]
}
