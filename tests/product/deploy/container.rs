//! What runs in the containers: flags that the program knows, mounts that the flags speak of, and no rights to spare.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{CERTIFICATES, base, documents};

/// Those of a base with these certificates.
fn deployments(certificates: &str) -> Vec<(String, Value)> {
    let folder = base(&[&format!("certificates={certificates}")]);
    let files = ["admission.yaml", "controllers.yaml"];
    let texts = files.map(|file| fs::read_to_string(folder.path().join("deploy").join(file)).unwrap());
    texts
        .iter()
        .flat_map(|text| documents(text))
        .filter(|((kind, _), _)| kind == "Deployment")
        .map(|((_, name), document)| (name, document))
        .collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn containers_are_started_with_flags_that_there_are() {
    let deployments: Vec<_> =
        CERTIFICATES.iter().flat_map(|certificates| deployments(certificates)).collect();
    assert_eq!(deployments.len(), 2 * CERTIFICATES.len());
    for (name, deployment) in &deployments {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let args = texts(&container["args"]);
        let (command, flags) = args.split_first().unwrap();
        let help = Command::new(env!("CARGO_BIN_EXE_admit")).args([command, "--help"]).output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        for flag in flags {
            let flag_name = flag.split('=').next().unwrap();
            assert!(
                help.contains(&format!("{flag_name} ")) || help.contains(&format!("{flag_name}\n")),
                "{name}: {flag}"
            );
        }
        for mount in container["volumeMounts"].as_array().unwrap() {
            let path = mount["mountPath"].as_str().unwrap();
            assert!(
                flags.iter().any(|flag| flag.contains(&format!("={path}"))),
                "{name}: nothing uses {path}"
            );
        }
    }
}

/// The authority of callers is mounted where the flag looks for it, and its ConfigMap is optional for nobody: without it
/// the Pod does not start, rather than answer everyone.
#[test]
fn the_webhook_asks_for_a_certificate_where_it_is_set() {
    for callers in ["anyone", "client-certificate"] {
        let folder = base(&[&format!("callers={callers}"), "clientSubject=system:apiserver"]);
        let read = |file: &str| fs::read_to_string(folder.path().join("deploy").join(file)).unwrap();
        let deployment = documents(&read("admission.yaml")).remove(&key("Deployment", "admit")).unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        let asks = callers == "client-certificate";
        for flag in ["--client-ca=/client-ca/ca.crt", "--client-subject=system:apiserver"] {
            assert_eq!(texts(&pod["containers"][0]["args"]).contains(&flag), asks, "{flag}");
        }
        let volumes = pod["volumes"].as_array().unwrap();
        let mounted = volumes.iter().find(|volume| volume["name"] == "client-ca");
        assert_eq!(
            mounted.map(|volume| &volume["configMap"]),
            asks.then_some(&json!({"name": "admit-client-ca"}))
        );
        let webhook = read("webhook.yaml");
        let said = if asks { "a user `admit.admit-system.svc`" } else { "Whoever reaches the Service" };
        assert!(webhook.contains(said), "{webhook}");
    }
}

/// Rights to read the cluster, a token to do it with, and the flag that says so come together or not at all.
#[test]
fn the_webhook_watches_its_cluster_as_it_is_set() {
    for (watch, expected) in [("true", true), ("false", false)] {
        let folder = base(&[&format!("watchCluster={watch}")]);
        let read = |file: &str| fs::read_to_string(folder.path().join("deploy").join(file)).unwrap();
        let deployment = documents(&read("admission.yaml")).remove(&key("Deployment", "admit")).unwrap();
        let pod = &deployment["spec"]["template"]["spec"];
        let args = texts(&pod["containers"][0]["args"]);
        assert_eq!(args.contains(&"--in-cluster"), expected);
        assert_eq!(pod["automountServiceAccountToken"] == true, expected);
        let rights = documents(&read("rbac.yaml"));
        assert_eq!(rights.contains_key(&key("ClusterRoleBinding", "admit")), expected);
        let Some(role) = rights.get(&key("ClusterRole", "admit")) else { continue };
        // A shipped policy compares pipelines with one another.
        let rules = role["rules"].as_array().unwrap();
        assert!(rules.iter().any(|rule| texts(&rule["resources"]) == ["cyndipipelines"]), "{rules:?}");
        assert!(!rules.iter().any(|rule| texts(&rule["resources"]).contains(&"secrets")), "{rules:?}");
    }
}

fn key(kind: &str, name: &str) -> (String, String) {
    (kind.to_owned(), name.to_owned())
}

#[test]
fn containers_have_no_rights_to_spare() {
    for (name, deployment) in deployments("secret") {
        let pod = &deployment["spec"]["template"]["spec"];
        assert!(deployment["spec"]["replicas"].as_u64() >= Some(2), "{name}");
        assert!(pod["affinity"]["podAntiAffinity"].is_object(), "{name}");
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{name}");
        assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{name}");
        for absent in ["hostNetwork", "hostPID", "hostIPC"] {
            assert!(pod[absent].is_null(), "{name}: {absent}");
        }
        let container = &pod["containers"][0];
        let security = &container["securityContext"];
        assert_eq!(security["readOnlyRootFilesystem"], true, "{name}");
        assert_eq!(security["allowPrivilegeEscalation"], false, "{name}");
        assert_eq!(texts(&security["capabilities"]["drop"]), ["ALL"], "{name}");
        assert!(container["resources"]["limits"]["memory"].is_string(), "{name}");
    }
}
