//! Every package of `Cargo.lock` stands under a licence that `deny.toml` allows, and none is banned there.

use std::process::Command;

use serde_json::Value;

use crate::repository::root;

#[test]
fn every_dependency_is_allowed() {
    let policy: toml::Table = std::fs::read_to_string(root().join("deny.toml")).unwrap().parse().unwrap();
    let allowed: Vec<&str> =
        policy["licenses"]["allow"].as_array().unwrap().iter().map(|l| l.as_str().unwrap()).collect();
    let banned: Vec<&str> =
        policy["bans"]["deny"].as_array().unwrap().iter().map(|c| c["crate"].as_str().unwrap()).collect();

    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
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
