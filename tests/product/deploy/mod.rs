//! The manifests for a cluster: they are what the program makes, the chart says what the base says, and the containers are
//! started with flags that there are. That API servers take them is a scenario of `e2e`.

mod chart;
mod container;
pub(crate) mod helm;
mod image;
mod samples;
mod wiring;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use crate::repository::root;

/// What `certificates` can be set to.
pub(crate) const CERTIFICATES: &[&str] = &["secret", "self-managed", "cert-manager"];

/// `admit generate …` in the repository's folder.
pub(crate) fn generate(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_admit")).arg("generate").args(args).current_dir(root()).output().unwrap()
}

/// A base in a folder of its own, with `settings`. Its policies are copies: making a base writes a list beside them.
pub(crate) fn base(settings: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("policies"), &folder.path().join("policies"));
    let text = |path: &str| folder.path().join(path).display().to_string();
    let (policies, out) = (text("policies"), text("deploy"));
    let mut args = vec!["manifests", "--policies", &policies, "--out", &out];
    args.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let output = generate(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &to);
        } else {
            fs::copy(&path, &to).unwrap();
        }
    }
}

/// The documents of a stream of YAML by kind and name.
fn documents(yaml: &str) -> BTreeMap<(String, String), Value> {
    let mut all = BTreeMap::new();
    for document in yaml.split("\n---\n") {
        let value: Value =
            serde_saphyr::from_str(document).unwrap_or_else(|error| panic!("{error}:\n{document}"));
        if value.is_null() {
            continue;
        }
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let key = (text("/kind"), text("/metadata/name"));
        assert!(all.insert(key.clone(), value).is_none(), "{key:?} is there twice");
    }
    all
}

#[test]
fn the_manifests_are_what_the_program_makes() {
    let output = generate(&["manifests", "--check"]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "run `admit generate manifests` and commit what it writes:\n{text}");
}

#[test]
fn a_stale_file_is_named() {
    let folder = base(&[]);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let check =
        || generate(&["manifests", "--check", "--policies", &path("policies"), "--out", &path("deploy")]);
    assert!(check().status.success());
    fs::write(path("deploy/service.yaml"), "edited").unwrap();
    let output = check();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("deploy/service.yaml is not what"), "{text}");
}

#[test]
fn single_kinds_are_printed() {
    let print = |what: &[&str]| {
        let output = generate(what);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        documents(&String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(print(&["crds"]).len(), 8);
    let rbac = print(&["rbac", "--namespace", "elsewhere"]);
    assert_eq!(
        rbac[&("Role".to_owned(), "admit-controllers".to_owned())]["metadata"]["namespace"],
        "elsewhere"
    );
    let webhook = print(&["webhook"]).into_values().next().unwrap();
    let kept = fs::read_to_string(root().join("deploy/webhook.yaml")).unwrap();
    assert_eq!(webhook, documents(&kept).into_values().next().unwrap());
}
