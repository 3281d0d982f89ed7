//! `admit check --kubeconfig`: the objects of a live cluster, against the embedded server. And progress on a terminal.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::running::Workplace;

/// More than two pages of 500.
const MAPS: usize = 1_001;

const POLICIES: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: not-seven}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {stage: prod}}
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  validations:
  - expression: object.data[?'at'].orValue('') != '7'
    message: it is seven
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: not-seven}
spec: {policyName: not-seven, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: gatherings}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [insights.openshift.io], apiVersions: [v1alpha1], operations: [CREATE], resources: [datagathers]}
  validations:
  - expression: object.metadata.name != 'live'
    message: it is live
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: gatherings}
spec: {policyName: gatherings, validationActions: [Warn]}
";

const MUTATING: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: not-seven}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {stage: prod}}
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: \"[JSONPatch{op: 'remove', path: object.data[?'at'].orValue('') == '7' ? '/none' : '/data'}]\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: not-seven}
spec: {policyName: not-seven}
";

fn check(place: &Workplace, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_admit"));
    command.args(["check", "--kubeconfig"]).arg(place.kubeconfig()).args(["--policies", "live.yaml"]);
    command.args(args).current_dir(place.path()).output().unwrap()
}

async fn fill(client: &Client) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let create = PostParams::default();
    for (name, stage) in [("shop", "prod"), ("lab", "dev")] {
        let namespace = json!({"metadata": {"name": name, "labels": {"stage": stage}}});
        namespaces.create(&create, &serde_json::from_value(namespace).unwrap()).await.unwrap();
    }
    let map = |namespace: &'static str, at: usize| {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
        let map = json!({"metadata": {"name": format!("map-{at}")}, "data": {"at": at.to_string()}});
        async move { maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap() }
    };
    let maps = futures::stream::iter((0..MAPS).map(|at| map("shop", at)).chain([map("lab", 7)]));
    assert_eq!(maps.buffer_unordered(8).count().await, MAPS + 1);
    let kind = GroupVersionKind::gvk("insights.openshift.io", "v1alpha1", "DataGather");
    let gatherings: Api<DynamicObject> =
        Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "datagathers"));
    let gathering = json!({"apiVersion": "insights.openshift.io/v1alpha1", "kind": "DataGather", "metadata": {"name": "live"}, "spec": {}});
    gatherings.create(&create, &serde_json::from_value(gathering).unwrap()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_policies_speak_of_is_listed_and_decided() {
    let place = Workplace::new();
    let running = place.start();
    fill(&place.client().await).await;
    fs::write(place.path().join("live.yaml"), POLICIES).unwrap();

    let told = check(&place, &["--only-denied"]);
    let text = String::from_utf8(told.stdout).unwrap();
    assert_eq!(told.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&told.stderr));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "deny      create     ConfigMap shop/map-7  /api/v1/configmaps", "{text}");
    assert!(lines[1].ends_with("denied request: it is seven"), "{text}");
    assert!(lines[2].starts_with("policy"), "nothing else is denied: {text}");
    // The namespace has one more, with the authority of the cluster.
    let asked = format!("not-seven {} 1 0 0", MAPS + 1);
    let columns = |line: &&str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(lines.iter().any(|line| columns(line) == asked), "{text}");
    assert!(lines.iter().any(|line| columns(line) == "gatherings 1 0 1 0"), "{text}");

    let told = check(&place, &["-o", "json"]);
    let document: Value = serde_json::from_slice(&told.stdout).unwrap();
    let objects = document["objects"].as_array().unwrap();
    let gathering = objects.iter().find(|object| object["kind"] == "DataGather").unwrap();
    assert_eq!(
        (&gathering["namespace"], &gathering["outcome"], &gathering["asWritten"]),
        (&json!(""), &json!("warn"), &json!(false)),
        "its definition is read from the cluster: {gathering}"
    );
    let others =
        objects.iter().filter(|object| object["kind"] != "ConfigMap" && object["kind"] != "DataGather");
    assert_eq!(others.count(), 0, "nothing that no policy speaks of");

    // Of several contexts one is named, whichever is the current one.
    let kubeconfig = fs::read_to_string(place.kubeconfig()).unwrap();
    let other = kubeconfig.replace("current-context: admit", "current-context: gone");
    assert_ne!(kubeconfig, other);
    fs::write(place.kubeconfig(), other).unwrap();
    assert_eq!(check(&place, &["--context", "admit", "--only-denied"]).status.code(), Some(1));
    for args in [&[][..], &["--context", "nowhere"]] {
        let told = check(&place, args);
        let (said, name) = (String::from_utf8_lossy(&told.stderr), args.last().unwrap_or(&"gone"));
        assert_eq!(told.status.code(), Some(2), "{said}");
        assert!(said.contains("cannot use the kubeconfig") && said.contains(*name), "{said}");
    }

    // Policies that change objects have what they speak of listed as well; one that fails denies.
    fs::write(place.path().join("live.yaml"), MUTATING).unwrap();
    let told = check(&place, &["--context", "admit", "--only-denied"]);
    let text = String::from_utf8(told.stdout).unwrap();
    assert_eq!(told.status.code(), Some(1), "{text}{}", String::from_utf8_lossy(&told.stderr));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "deny      create     ConfigMap shop/map-7  /api/v1/configmaps", "{text}");
    assert!(lines[1].contains("policy 'not-seven' with binding 'not-seven' denied request"), "{text}");
    let asked = format!("not-seven {} 1 0 0", MAPS + 1);
    assert!(lines.iter().any(|line| columns(line) == asked), "{text}");
    running.terminate();
}

/// The screen of a terminal on which `command` ran, and the code that it ended with.
fn on_terminal(command: &str, folder: &Path) -> (String, i32) {
    let output = Command::new("script")
        .args(["-qec", command, "/dev/null"])
        .current_dir(folder)
        .env("TERM", "xterm")
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().unwrap())
}

/// Of work that takes long, a bar is drawn while it lasts, and taken away; pipes get none of it.
#[test]
fn long_work_shows_how_far_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("items:\n");
    for number in 0..30_000 {
        writeln!(
            text,
            "- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: c{number}}}, data: {{a: '{number}'}}}}"
        )
        .unwrap();
    }
    text.push_str("kind: List\n");
    fs::write(folder.path().join("many.yaml"), text).unwrap();
    let admit = env!("CARGO_BIN_EXE_admit");
    let command = format!("'{admit}' check -f many.yaml --only-denied");
    let begun = Instant::now();
    let (screen, code) = on_terminal(&command, folder.path());
    let took = begun.elapsed();
    assert_eq!(code, 0, "{screen}");
    let last = screen.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    assert!(last.contains("OK\u{1b}[0m: 30000 objects"), "{last:?}");
    // Reading and checking are drawn each for itself, from their first second on.
    let drawn = screen.contains("objects read: ") || screen.contains("checking [");
    assert!(drawn || took < Duration::from_secs(3), "{took:?}: {screen:?}");
    let (piped, _) = on_terminal(&format!("{command} 2>err; wc -c <err"), folder.path());
    assert!(!piped.contains("checking ["), "{piped:?}");
}
