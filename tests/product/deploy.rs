//! The manifests for a cluster say what the policies and the folders say.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::repository::root;

#[test]
fn the_webhook_configuration_follows_from_the_policies() {
    let output = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["generate", "webhook", "--policies", "policies"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kept = fs::read_to_string(root().join("deploy/webhook.yaml")).unwrap();
    let generated = String::from_utf8(output.stdout).unwrap();
    assert!(kept == generated, "deploy/webhook.yaml is stale: admit generate webhook > deploy/webhook.yaml");
}

#[test]
fn kustomize_knows_every_policy_and_every_definition() {
    let policies = fs::read_to_string(root().join("policies/kustomization.yaml")).unwrap();
    let listed: BTreeSet<_> = policies
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- ")?.split_once('='))
        .map(|(_, path)| path.to_owned())
        .collect();
    let mut there = BTreeSet::new();
    shipped(&root().join("policies"), "", &mut there);
    assert!(there.len() > 40, "only {} policy files found", there.len());
    assert_eq!(listed, there, "policies/kustomization.yaml");

    let definitions = fs::read_to_string(root().join("deploy/crds/kustomization.yaml")).unwrap();
    let listed: BTreeSet<_> =
        definitions.lines().filter_map(|line| line.strip_prefix("- ")).map(ToOwned::to_owned).collect();
    let mut there = BTreeSet::new();
    shipped(&root().join("deploy/crds"), "", &mut there);
    assert_eq!(listed, there, "deploy/crds/kustomization.yaml");
}

/// Manifests below `folder` that a cluster is to have: neither suites nor kustomize's own.
fn shipped(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() {
            shipped(&path, &format!("{prefix}{name}/"), found);
        } else if name.ends_with(".yaml") && !name.ends_with(".suite.yaml") && name != "kustomization.yaml" {
            found.insert(format!("{prefix}{name}"));
        }
    }
}
