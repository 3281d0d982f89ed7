//! The shipped policies hold what their suites say, and every policy has one.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use admit_policy::PolicySet;
use admit_policy::manifest::{self, Document};
use admit_policy::suite::{self, Outcome, Suite};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../policies")
}

fn files() -> Vec<PathBuf> {
    let folders = fs::read_dir(root()).expect("policies are shipped").flatten().map(|entry| entry.path());
    let folders = folders.filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| fs::read_dir(folder).expect("a folder").flatten());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// What kustomize is told to take in a folder.
fn listed(folder: &Path) -> Vec<String> {
    let documents = read(&folder.join("kustomization.yaml"));
    let resources = documents[0].value["resources"].as_array().expect("a list").iter();
    resources.map(|name| name.as_str().expect("a path").to_owned()).collect()
}

fn read(path: &Path) -> Vec<Document> {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    manifest::read(&path.display().to_string(), &text).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// What a suite names: a file, or all manifests of a folder.
fn read_all(path: &Path) -> Vec<Document> {
    if path.is_file() {
        return read(path);
    }
    let files = files().into_iter().filter(|file| file.parent() == Some(path));
    let is_yaml = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "yaml");
    files.filter(is_yaml).flat_map(|file| read(&file)).collect()
}

/// All of them together, as they are in force.
fn all() -> PolicySet {
    // Beside manifests there are pictures of the states that they allow.
    let files =
        files().into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    let documents: Vec<Document> = files.flat_map(|file| read(&file)).collect();
    PolicySet::load(&documents).unwrap_or_else(|errors| panic!("{errors:#?}"))
}

#[test]
fn every_policy_is_bound() {
    for (policy, bindings) in all().policies() {
        assert_eq!(bindings.len(), 1, "{} needs its binding", policy.name);
    }
}

#[test]
fn what_a_cluster_is_given_lists_all_that_there_is() {
    let mut systems: Vec<String> = Vec::new();
    for file in files().iter().filter(|file| file.ends_with("kustomization.yaml")) {
        let folder = file.parent().expect("a folder");
        let name = |path: &PathBuf| path.file_name().expect("a name").to_string_lossy().into_owned();
        let of_folder: Vec<String> =
            files().iter().filter(|file| file.starts_with(folder)).map(name).collect();
        let is_manifest = |name: &&String| name.ends_with(".yaml") && !name.ends_with(".suite.yaml");
        let manifests: Vec<_> =
            of_folder.iter().filter(is_manifest).filter(|name| *name != "kustomization.yaml").collect();
        assert_eq!(listed(folder).iter().collect::<Vec<_>>(), manifests, "{}", folder.display());
        systems.push(format!("../../{}", name(&folder.to_owned())));
    }
    assert_eq!(systems.len(), 5);
    assert_eq!(listed(&root().join("native/deny")), systems);
}

/// Asks for conversions, and what converts is the product's: its command plays this one with the others.
const CONVERTED: &str = "policies/datagather/versions.suite.yaml";

#[test]
fn every_policy_is_tested_both_ways() {
    let mut tested: HashSet<String> = HashSet::new();
    for file in files().iter().filter(|file| file.to_string_lossy().ends_with(".suite.yaml")) {
        for document in read(file) {
            let suite =
                Suite::decode(&document.value).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let folder = file.parent().expect("a folder");
            let documents: Vec<Document> =
                suite.documents.iter().flat_map(|name| read_all(&folder.join(name))).collect();
            let set = PolicySet::load(&documents).unwrap_or_else(|errors| panic!("{errors:#?}"));
            if file.ends_with(CONVERTED) {
                let alone = suite.cases.iter().all(|case| suite::run(case, &set).passed());
                assert!(!alone, "{CONVERTED} can be played here");
                continue;
            }
            let mut outcomes = HashSet::new();
            for case in &suite.cases {
                let result = suite::run(case, &set);
                assert!(result.passed(), "{}: {}: {:#?}", file.display(), case.name, result.mismatches);
                outcomes.insert(result.outcome);
            }
            assert!(outcomes.contains(&Outcome::Allow), "{} accepts nothing", file.display());
            let rejects = outcomes.iter().any(|outcome| matches!(outcome, Outcome::Deny | Outcome::Warn));
            assert!(rejects, "{} rejects nothing", file.display());
            tested.extend(set.policies().map(|(policy, _)| policy.name.to_string()));
        }
    }
    let untested: Vec<String> = all().policies().map(|(policy, _)| policy.name.to_string()).collect();
    let untested: Vec<String> = untested.into_iter().filter(|name| !tested.contains(name)).collect();
    assert!(untested.is_empty(), "no suite tests {untested:?}");
}
