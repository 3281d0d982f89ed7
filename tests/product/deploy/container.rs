//! What runs in the containers: flags that the program knows, mounts that the flags speak of, no rights to spare, and an
//! image that holds the program and nothing that runs besides.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{CERTIFICATES, base, documents};
use crate::repository::root;

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

/// No container engine is needed: the file is read as text, and what it copies must be in the repository.
#[test]
fn the_image_holds_the_program_and_nothing_else_that_runs() {
    let text = fs::read_to_string(root().join("deploy/Containerfile")).unwrap();
    let instructions: Vec<(String, String)> = joined(&text)
        .into_iter()
        .map(|line| line.split_once(' ').map(|(word, rest)| (word.to_owned(), rest.to_owned())).unwrap())
        .collect();
    let known = ["ARG", "FROM", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "LABEL", "EXPOSE"];
    assert!(instructions.iter().all(|(word, _)| known.contains(&word.as_str())), "{instructions:?}");

    let last = instructions.iter().rposition(|(word, _)| word == "FROM").unwrap();
    let (build, image) = instructions.split_at(last);
    assert_eq!(image[0].1, "scratch");
    let words: Vec<&str> = image.iter().map(|(word, _)| word.as_str()).collect();
    assert!(!words.contains(&"RUN"), "scratch has no shell");
    assert!(image.contains(&("USER".to_owned(), "65532:65532".to_owned())), "{image:?}");
    assert!(image.contains(&("ENTRYPOINT".to_owned(), "[\"/admit\"]".to_owned())), "{image:?}");
    for (word, rest) in image.iter().filter(|(word, _)| word == "COPY") {
        assert!(rest.starts_with("--from="), "{word} {rest}: the image takes from the build alone");
    }
    for (_, rest) in build.iter().filter(|(word, rest)| word == "COPY" && !rest.starts_with("--")) {
        let (sources, _) = rest.rsplit_once(' ').unwrap();
        for source in sources.split(' ') {
            assert!(root().join(source).exists(), "COPY {source}: there is no such file");
        }
    }
    // The version that the manifest asks for is the one that is built with.
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(root().join("Cargo.toml")).unwrap()).unwrap();
    let rust = manifest["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(build.iter().any(|(word, rest)| word == "ARG" && rest == &format!("RUST={rust}")), "{build:?}");
}

/// Instructions, with continued lines as one, without remarks.
fn joined(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#') && !line.is_empty());
    let mut instructions: Vec<String> = Vec::new();
    let mut continued = false;
    for line in lines {
        let body = line.trim_end_matches('\\').trim();
        match instructions.last_mut().filter(|_| continued) {
            Some(last) => *last += &format!(" {body}"),
            None => instructions.push(body.to_owned()),
        }
        continued = line.ends_with('\\');
    }
    instructions
}
