//! Files that are wrong in one way each, with every line that is said of them: `data/bad/NAME.yaml` beside `NAME.txt`.

use std::fs;
use std::path::{Path, PathBuf};

use admit_policy::{LoadOptions, PolicySet};

#[test]
fn every_mistake_has_its_words_and_its_place() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/policy/data/bad");
    let mut files: Vec<PathBuf> = fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|end| end != "txt"))
        .collect();
    files.sort();
    assert!(files.len() >= 25, "only {} files", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let expected = fs::read_to_string(file.with_extension("txt")).unwrap_or_default();
        let found = lines(&name, &fs::read_to_string(&file).expect("it can be read"));
        if found != expected {
            wrong.push(format!("=== {name}\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn lines(name: &str, text: &str) -> String {
    match PolicySet::load_files([(name, text)], LoadOptions::default()) {
        Ok(_) => "loaded\n".to_owned(),
        Err(errors) => errors.iter().map(|error| format!("{error}\n")).collect(),
    }
}

#[test]
fn all_files_are_read_whatever_is_wrong_with_one() {
    let files = [("a.yaml", "kind: [A"), ("b.yaml", "kind: B"), ("c.yaml", "a: 1\na: 2\na: 3")];
    let errors = PolicySet::load_files(files, LoadOptions::default()).expect_err("all are wrong");
    let lines: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(lines.len(), 4, "{lines:#?}");
    assert!(lines[0].starts_with("a.yaml:"), "{lines:#?}");
    assert_eq!(lines[1], "b.yaml:1:1: must have `apiVersion` and `kind`");
    assert_eq!(lines[3], "c.yaml:3:1: key `a` is already set in this map");
}

#[test]
fn what_is_of_no_use_can_be_passed_over() {
    let files = [(
        "all.yaml",
        "
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: stray}}
- {apiVersion: v1, kind: Service, metadata: {name: stray}}
---
# What tells an API server where its manifests are.
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: ValidatingAdmissionPolicyConfiguration
    staticManifestsDir: /etc/kubernetes/policies
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyList
items:
- apiVersion: admissionregistration.k8s.io/v1
  kind: ValidatingAdmissionPolicy
  metadata: {name: replicas.static.k8s.io}
  spec:
    matchConstraints:
      resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: ['*'], resources: [deployments]}]
    validations: [{expression: 'object.spec.replicas <= 3'}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: replicas.static.k8s.io}
spec: {policyName: replicas.static.k8s.io, validationActions: [Deny]}
",
    )];
    let set = PolicySet::load_files(files, LoadOptions { ignore_unknown: true }).expect("the rest is right");
    let found: Vec<_> = set.policies().map(|(policy, bindings)| (&*policy.name, bindings.len())).collect();
    assert_eq!(found, [("replicas.static.k8s.io", 1)]);
    let errors = PolicySet::load_files(files, LoadOptions::default()).expect_err("two are of no use");
    assert_eq!(errors.len(), 2, "{errors:#?}");
}
