//! Every package of `Cargo.lock` stands under a licence that `deny.toml` allows, none is banned there, and none is compiled in
//! two versions but those that it names with the reason.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::repository::{self, root};

#[test]
fn every_dependency_is_allowed() {
    let policy = policy();
    let allowed: Vec<&str> =
        policy["licenses"]["allow"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
    let banned: Vec<&str> =
        policy["bans"]["deny"].as_array().unwrap().iter().map(|c| c["crate"].as_str().unwrap()).collect();

    let metadata: Value =
        serde_json::from_str(&cargo(&["metadata", "--format-version", "1", "--locked"])).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "cargo metadata lists only {} packages", packages.len());

    let mut refused = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let licence = package["license"].as_str().unwrap_or("none");
        if banned.contains(&name) {
            refused.push(format!("{name}: banned in deny.toml"));
        }
        if !is_allowed(licence, &allowed) {
            refused.push(format!("{name}: licence `{licence}` is not in deny.toml"));
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}

#[test]
fn a_package_in_two_versions_is_named_with_its_reason() {
    let args = [
        "tree",
        "--workspace",
        "--all-features",
        "--locked",
        "--target",
        "x86_64-unknown-linux-gnu",
        "--duplicates",
        "--depth",
        "0",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ];
    // cargo also lists packages that are compiled twice in one version, for the build and for the program.
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in cargo(&args).lines().filter(|line| !line.is_empty()) {
        let mut words = line.split(' ');
        let (name, version) = (words.next().unwrap(), words.next().unwrap());
        versions.entry(name.to_owned()).or_default().insert(version.trim_start_matches('v').to_owned());
    }
    versions.retain(|_, versions| versions.len() > 1);

    let mut undue: BTreeSet<String> = BTreeSet::new();
    for entry in policy()["bans"]["skip"].as_array().unwrap() {
        let (name, version) = entry["crate"].as_str().unwrap().split_once('@').unwrap();
        assert!(!entry["reason"].as_str().unwrap().is_empty(), "{name}: say why");
        let of = |found: &String| found == version || found.starts_with(&format!("{version}."));
        let found = versions.get_mut(name);
        let listed = found.is_some_and(|found| {
            let before = found.len();
            found.retain(|found| !of(found));
            found.len() < before
        });
        if !listed {
            undue.insert(format!("{name}@{version}: no duplicate any more, so it goes from deny.toml"));
        }
    }
    for (name, left) in versions.iter().filter(|(_, left)| left.len() > 1) {
        undue.insert(format!("{name}: versions {left:?}; deny.toml names all but one, with the reason"));
    }
    assert!(undue.is_empty(), "{undue:#?}");
}

fn policy() -> toml::Table {
    std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap()
}

/// What cargo prints.
fn cargo(args: &[&str]) -> String {
    let output = repository::cargo().args(args).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {}: {}", args[0], String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn is_allowed(licence: &str, allowed: &[&str]) -> bool {
    // Old manifests join alternatives with a slash.
    spdx::Expression::parse(&licence.replace('/', " OR ")).is_ok_and(|expression| {
        expression.evaluate(|requirement| allowed.contains(&requirement.to_string().as_str()))
    })
}

#[test]
fn a_copyleft_licence_would_be_refused() {
    assert!(is_allowed("MIT OR GPL-3.0-only", &["MIT"]));
    assert!(is_allowed("MIT/Apache-2.0", &["MIT"]));
    assert!(!is_allowed("MIT AND GPL-3.0-only", &["MIT"]));
    assert!(!is_allowed("none", &["MIT"]));
}
