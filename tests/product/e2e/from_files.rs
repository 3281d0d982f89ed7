//! The policies of `admit up`, as real kubectl sees them: in force from files, marked, read-only, and gone with the file.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::cluster::said;
use crate::running::Workplace;
use crate::tour::has_kubectl;

/// A bound for a busy machine, not an expectation.
const PATIENCE: Duration = Duration::from_secs(60);
const RULES: &str = "rules/sizes.yaml";

/// Denies ConfigMaps of this name; its other rule does not fit the type of what it is about.
fn policy(name: &str, denied: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}}
  validations:
  - expression: object.metadata.name != '{denied}'
    message: not {denied}
  - expression: \"!has(object.size) || object.size == 1\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
"
    )
}

struct Cluster {
    place: Workplace,
}

impl Cluster {
    fn write(&self, file: &str, text: &str) {
        fs::create_dir_all(self.place.path().join(Path::new(file).parent().unwrap())).unwrap();
        fs::write(self.place.path().join(file), text).unwrap();
    }

    fn kubectl(&self, args: &[&str]) -> Output {
        let mut command = Command::new("kubectl");
        command.arg("--kubeconfig").arg(self.place.kubeconfig()).args(args).env("HOME", self.place.path());
        command.current_dir(self.place.path()).output().unwrap()
    }

    fn works(&self, args: &[&str]) -> String {
        let output = self.kubectl(args);
        assert!(output.status.success(), "kubectl {args:?}: {}\n{}", said(&output), self.place.log());
        String::from_utf8(output.stdout).unwrap()
    }

    fn fails(&self, args: &[&str]) -> String {
        let output = self.kubectl(args);
        assert!(!output.status.success(), "kubectl {args:?}: {}", said(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    /// What kubectl prints once it is as it should be.
    fn until(&self, args: &[&str], is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let output = self.kubectl(args);
            let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), said(&output));
            if is_so(&text) {
                return text;
            }
            assert!(began.elapsed() < PATIENCE, "kubectl {args:?}: {text}\n{}", self.place.log());
        }
    }
}

#[test]
fn policies_of_files_are_objects_that_their_files_rule() {
    if !has_kubectl() {
        return;
    }
    let cluster = Cluster { place: Workplace::new() };
    cluster.write(RULES, &policy("sizes", "huge"));
    cluster.write("rules/other.yaml", &policy("other", "odd"));
    let running = cluster.place.start_with(&["--policies", "rules"]);

    let listed =
        cluster.works(&["get", "validatingadmissionpolicies", "-l", "admit.dev/from-file", "-o", "name"]);
    let name = |name: &str| format!("validatingadmissionpolicy.admissionregistration.k8s.io/{name}\n");
    assert_eq!(listed, name("other") + &name("sizes"));
    let file = "jsonpath={.metadata.annotations.admit\\.dev/from-file}";
    for kind in ["validatingadmissionpolicy", "validatingadmissionpolicybinding"] {
        assert_eq!(cluster.works(&["get", kind, "sizes", "-o", file]), RULES);
    }
    its_status_is_that_of_a_cluster(&cluster);
    it_is_decided_by(&cluster);
    who_writes_it_is_told_the_file(&cluster);
    it_follows_its_file(&cluster);
    assert!(running.terminate().success(), "{}", cluster.place.log());
    what_a_client_made_keeps_its_name(&cluster);
}

fn its_status_is_that_of_a_cluster(cluster: &Cluster) {
    let status = ["get", "validatingadmissionpolicy", "sizes", "-o", "jsonpath={.status}"];
    let told = cluster.until(&status, |text| text.contains("observedGeneration"));
    let status: Value = serde_json::from_str(told.trim()).unwrap();
    let warnings = status["typeChecking"]["expressionWarnings"].as_array().unwrap();
    assert_eq!(status["observedGeneration"], 1);
    assert_eq!(warnings.len(), 1, "{status}");
    assert_eq!(warnings[0]["fieldRef"], "spec.validations[1].expression");
    let text = warnings[0]["warning"].as_str().unwrap();
    assert!(text.starts_with("/v1, Kind=ConfigMap: ERROR: <input>:1:5: undefined field 'size'\n"), "{text}");
}

/// The webhook decides by what is of files, and the API server where a client made the binding.
fn it_is_decided_by(cluster: &Cluster) {
    let denied_by = |binding: &str| {
        let denied = cluster.fails(&["create", "configmap", "huge"]);
        let said =
            format!("ValidatingAdmissionPolicy 'sizes' with binding '{binding}' denied request: not huge\n");
        let by_webhook = denied.contains("admission webhook \"policies.admit.local\" denied the request");
        assert!(denied.ends_with(&said) && by_webhook == (binding == "sizes"), "{denied}");
    };
    denied_by("sizes");
    cluster.write(
        "binding.yaml",
        "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: mine}
spec: {policyName: sizes, validationActions: [Deny]}
",
    );
    cluster.works(&["apply", "-f", "binding.yaml"]);
    denied_by("mine");
    cluster.works(&["delete", "-f", "binding.yaml"]);
    denied_by("sizes");
}

fn who_writes_it_is_told_the_file(cluster: &Cluster) {
    let told = format!(
        "validatingadmissionpolicies.admissionregistration.k8s.io \"sizes\" is forbidden: it is in force from the file \
         {RULES} and read-only here; change it in the file, or remove it from there\n"
    );
    let policy = "validatingadmissionpolicy/sizes";
    for args in [
        &["delete", policy] as &[&str],
        &["label", policy, "a=b"],
        &["annotate", policy, "admit.dev/from-file-"],
        &["patch", policy, "--type=merge", "-p", "{\"spec\":{\"failurePolicy\":\"Ignore\"}}"],
        &["apply", "--server-side", "--force-conflicts", "-f", RULES],
    ] {
        let heard = cluster.fails(args);
        assert!(heard.contains(&told), "kubectl {args:?}: {heard}");
    }
    let created = cluster.fails(&["create", "-f", RULES]);
    assert!(
        created.contains(&format!("\"sizes\" already exists: it is in force from the file {RULES}")),
        "{created}"
    );
}

fn it_follows_its_file(cluster: &Cluster) {
    cluster.write(RULES, &policy("sizes", "large"));
    let generation = [
        "get",
        "validatingadmissionpolicy",
        "sizes",
        "-o",
        "jsonpath={.metadata.generation} {.status.observedGeneration}",
    ];
    cluster.until(&generation, |text| text.starts_with("2 2"));
    cluster.until(&["create", "configmap", "large", "--dry-run=server"], |text| text.contains("not large"));
    // Renamed, it is of another file, and nothing else of it changes.
    fs::rename(cluster.place.path().join(RULES), cluster.place.path().join("rules/moved.yaml")).unwrap();
    let file = [
        "get",
        "validatingadmissionpolicy",
        "sizes",
        "-o",
        "jsonpath={.metadata.annotations.admit\\.dev/from-file}",
    ];
    cluster.until(&file, |text| text.starts_with("rules/moved.yaml"));
    fs::remove_file(cluster.place.path().join("rules/moved.yaml")).unwrap();
    cluster.until(
        &["get", "validatingadmissionpolicies,validatingadmissionpolicybindings", "-o", "name"],
        |text| !text.contains("/sizes") && text.contains("/other"),
    );
    cluster.works(&["create", "configmap", "large"]);
}

/// A policy that a client made, in a state that the next start finds, and whose file comes afterwards.
fn what_a_client_made_keeps_its_name(cluster: &Cluster) {
    let running = cluster.place.start_with(&["--policies", "rules"]);
    cluster.write("mine.yaml", &policy("sizes", "mine"));
    cluster.works(&["apply", "-f", "mine.yaml"]);
    cluster.write(RULES, &policy("sizes", "theirs"));
    // Both are enforced, and the one that the client made is shown.
    let make = |name: &'static str| ["create", "configmap", name, "--dry-run=server"];
    cluster.until(&make("theirs"), |text| text.contains("not theirs"));
    cluster.until(&make("mine"), |text| text.contains("not mine"));
    let rule = ["get", "validatingadmissionpolicy", "sizes", "-o", "jsonpath={.spec.validations[0].message}"];
    assert_eq!(cluster.works(&rule), "not mine");
    assert!(cluster.place.log().contains("in force from the file, and not shown"), "{}", cluster.place.log());
    cluster.works(&["delete", "-f", "mine.yaml"]);
    assert_eq!(cluster.works(&rule), "not theirs");
    assert!(running.terminate().success(), "{}", cluster.place.log());
}
