//! `admit test` as scripts see it: exit codes, what goes to which stream, the JSON document.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use super::{admit, text};

const POLICY: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations:
  - expression: object.metadata.name != 'bad'
    message: bad name
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec: {policyName: p, validationActions: [Deny]}
";

const SUITE: &str = "
apiVersion: admit/v1
kind: Suite
documents: [p.yaml]
cases:
- name: a bad name
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: bad, namespace: team}}
  expect: {outcome: deny, message: bad name}
- name: a good name
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: good, namespace: team}}
  expect: allow
";

/// A folder with the policy and the suite, each changed as asked.
fn folder(policy: (&str, &str), suite: (&str, &str)) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("p.yaml"), POLICY.replace(policy.0, policy.1)).unwrap();
    fs::write(folder.path().join("p.suite.yaml"), SUITE.replace(suite.0, suite.1)).unwrap();
    folder
}

#[test]
fn exit_codes_are_kept_apart() {
    let unchanged = ("", "");
    let cases = [
        (unchanged, unchanged, vec!["."], 0, ""),
        (unchanged, ("outcome: deny", "outcome: allow"), vec!["."], 1, ""),
        (unchanged, unchanged, vec!["nowhere"], 2, "cannot read `nowhere`"),
        (unchanged, unchanged, vec!["-run", "nothing", "."], 2, "no case matches `nothing`"),
        (unchanged, unchanged, vec!["--no-such-flag"], 2, "unexpected argument"),
        (
            unchanged,
            ("expect: allow", "expect: maybe"),
            vec!["."],
            2,
            "p.suite.yaml:11:3: cases[1].expect: `maybe`",
        ),
        (
            ("object.metadata.name != 'bad'", "object.metadata.name =! 'bad'"),
            unchanged,
            vec!["."],
            3,
            "p.yaml:9:5: spec.validations[0].expression: Invalid value",
        ),
    ];
    for (policy, suite, arguments, code, diagnostic) in cases {
        let folder = folder(policy, suite);
        let output = admit(folder.path(), &arguments);
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {errors}");
        assert!(errors.contains(diagnostic), "{arguments:?}: {errors}");
        assert_eq!(errors.is_empty(), code < 2, "{arguments:?}: {errors}");
    }
}

#[test]
fn a_failure_shows_what_was_expected_and_what_came() {
    let folder = folder(("", ""), ("message: bad name", "message: wrong name"));
    let output = text(&admit(folder.path(), &["-v", "p.suite.yaml"]).stdout);
    let expected = r#"    --- FAIL: a bad name  p.suite.yaml:6
        at spec.validations[0]
        message (- expected, + actual):
          - wrong name
          + bad name
        rule of policy p, spec.validations[0].expression:
          | object.metadata.name != 'bad'
            object.metadata.name = "bad"
            => false
    --- PASS: a good name (allow)
FAIL: 1 of 2 cases failed in 1 suite
"#;
    assert!(output.starts_with("FAIL  p.suite.yaml    2 cases  ") && output.ends_with(expected), "{output}");
}

#[test]
fn json_is_one_document() {
    let folder = folder(("", ""), ("message: bad name", "message: wrong name"));
    let output = admit(folder.path(), &["-o", "json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["summary"].to_string(), r#"{"cases":2,"passed":1,"failed":1,"errored":0}"#);
    let case = &document["suites"][0]["cases"][0];
    for (field, expected) in [
        ("name", "a bad name".into()),
        ("outcome", "deny".into()),
        ("expected", "deny".into()),
        ("passed", false.into()),
        ("message", "bad name".into()),
        ("field", Value::from("spec.validations[0]")),
    ] {
        assert_eq!(case[field], expected, "{field}");
    }
    assert!(case["duration_us"].is_u64());
}

#[test]
fn fail_fast_stops_at_the_first_failure() {
    let folder = folder(("", ""), ("message: bad name", "message: wrong name"));
    let output = text(&admit(folder.path(), &["-v", "--fail-fast"]).stdout);
    assert!(output.ends_with("FAIL: 1 of 1 case failed in 1 suite\n"), "{output}");
}

/// Containers by name, unless the case says that lists are replaced; definitions know no other way.
#[test]
fn built_in_kinds_are_patched_as_kubectl_patches_them() {
    let policy = POLICY
        .replace("[configmaps]", "[deployments]")
        .replace("[CREATE]", "[UPDATE]")
        .replace("apiGroups: ['']", "apiGroups: [apps]");
    let expression = "expression: object.metadata.name != 'bad'\n    message: bad name";
    assert!(policy.contains(expression));
    let policy = policy.replace(
        expression,
        "expression: 'false'\n    messageExpression: object.spec.template.spec.containers.map(c, c.name + '=' + c.image).join(',')",
    );
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("p.yaml"), policy).unwrap();
    let deployment = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: team}, spec: {selector: \
                      {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {containers: [{name: a, \
                      image: one}, {name: b, image: two}]}}}}";
    for (patch, message) in [
        ("{spec: {template: {spec: {containers: [{name: b, image: new}]}}}}", "a=one,b=new"),
        (
            "{spec: {template: {spec: {containers: [{name: b, image: new}]}}}}\n  patchType: strategic",
            "a=one,b=new",
        ),
        ("{spec: {template: {spec: {containers: [{name: b, image: new}]}}}}\n  patchType: merge", "b=new"),
        ("{spec: {template: {spec: {containers: [{name: a, $patch: delete}]}}}}", "b=two"),
        ("[{op: replace, path: /spec/template/spec/containers/0/image, value: new}]", "a=new,b=two"),
    ] {
        let suite = format!(
            "apiVersion: admit/v1\nkind: Suite\ncases:\n- name: a patch\n  oldObject: {deployment}\n  patch: {patch}\n  \
             expect: {{outcome: deny, message: '{message}'}}\n"
        );
        fs::write(folder.path().join("p.suite.yaml"), suite).unwrap();
        let output = admit(folder.path(), &["."]);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{patch}: {}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
    }
}

#[test]
fn one_file_that_cannot_be_read_hides_nothing() {
    let folder = folder(
        ("object.metadata.name != 'bad'", "object.metadata.name =! 'bad'"),
        ("[p.yaml]", "[p.yaml, q.yaml]"),
    );
    fs::write(folder.path().join("q.yaml"), "kind: [A\n").unwrap();
    let output = admit(folder.path(), &["."]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    for mistake in [
        "q.yaml:1:7: not YAML: unclosed bracket",
        "p.yaml:9:5: spec.validations[0].expression: Invalid value",
    ] {
        assert!(errors.contains(mistake), "{errors}");
    }
}
