//! What `admit init` writes of kinds that Kubernetes defines: suites that pass, with objects that a server takes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use admit_policy::manifest;
use tempfile::TempDir;

use super::{admit, text};
use crate::repository::root;

/// Kinds whose least object is none that one would begin with: a definition is called as what it defines, a request for a
/// certificate is signed, and the two kinds of Events have little in common but their name. Their cases expect the
/// server's refusal.
const REFUSED: [&str; 3] = [
    "apiextensions.k8s.io-v1-customresourcedefinitions",
    "certificates.k8s.io-v1-certificatesigningrequests",
    "events.k8s.io-v1-events",
];

/// What no policy is asked about.
const UNASKED: &str = "admissionregistration.k8s.io-";

/// Every kind of which objects are stored, by a name for its policy: group, version, plural and kind.
fn stored() -> BTreeMap<String, [String; 4]> {
    let rows = fs::read_to_string(root().join("src/apiserver/resources/rows.txt")).unwrap();
    let (mut group, mut version) = ("", "");
    let mut stored = BTreeMap::new();
    for line in rows.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            (group, version) = (words[0], words[1]);
        } else if !words.contains(&"key=") {
            let (prefix, group) = if group == "-" { ("core", "") } else { (group, group) };
            let row = [group, version, words[1], words[0]].map(ToOwned::to_owned);
            stored.insert(format!("{prefix}-{version}-{}", words[1]), row);
        }
    }
    stored
}

fn policies(stored: &BTreeMap<String, [String; 4]>) -> String {
    let mut text = String::new();
    for (name, [group, version, plural, kind]) in stored {
        writeln!(
            text,
            "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  matchConstraints:
    resourceRules:
    - {{apiGroups: ['{group}'], apiVersions: [{version}], operations: [CREATE], resources: [{plural}]}}
  validations: [{{expression: object.kind == '{kind}'}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec: {{policyName: {name}, validationActions: [Deny]}}
---"
        )
        .unwrap();
    }
    text
}

#[test]
fn every_built_in_kind_has_an_object_that_passes() {
    let folder = TempDir::new().unwrap();
    let stored = stored();
    assert!(stored.len() > 50, "{}", stored.len());
    fs::write(folder.path().join("p.yaml"), policies(&stored)).unwrap();
    let written = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["init", "p.yaml"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(written.status.success(), "{}", text(&written.stderr));
    let ran = admit(folder.path(), &["."]);
    assert!(ran.status.success(), "{}{}", text(&ran.stdout), text(&ran.stderr));
    let suite = fs::read_to_string(folder.path().join("p.suite.yaml")).unwrap();
    let suite = manifest::read("p.suite.yaml", &suite).unwrap().remove(0).value;
    let cases = suite["cases"].as_array().unwrap();
    assert_eq!(cases.len(), stored.len());
    let mut refused: Vec<&str> = Vec::new();
    for case in cases {
        let name = case["policies"][0].as_str().unwrap();
        let [_, _, plural, kind] = &stored[name];
        assert_eq!(case["object"]["kind"], kind.as_str(), "the kind of {plural}");
        match case["expect"].as_str() {
            Some(outcome) => {
                let expected = if name.starts_with(UNASKED) { "unmatched" } else { "allow" };
                assert_eq!(outcome, expected, "{name}");
            }
            None => {
                assert_eq!(case["expect"]["outcome"], "deny", "{name}: {}", case["expect"]);
                assert!(case["expect"]["message"].as_str().unwrap().contains(" is invalid: "), "{name}");
                refused.push(name);
            }
        }
    }
    assert_eq!(refused, REFUSED);
}
