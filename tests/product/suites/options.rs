//! What flags do.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use admit_policy::ANSWER_FIELDS;
use admit_policy::suite::{
    AUTHENTICATION_FIELDS, AUTHORIZATION_FIELDS, CASE_FIELDS, DEVICES_FIELDS, EXPECT_FIELDS, STATES_FIELDS,
    SUITE_FIELDS, WEBHOOK_FIELDS,
};
use serde_json::Value;
use tempfile::TempDir;

use super::{admit, fixture, text};

/// A folder with the fixture's policies and one suite.
fn folder(suite: &str) -> TempDir {
    let folder = TempDir::new().unwrap();
    for file in ["names.yaml", "unused.yaml"] {
        fs::copy(fixture().join(file), folder.path().join(file)).unwrap();
    }
    fs::write(folder.path().join("a.suite.yaml"), suite).unwrap();
    folder
}

const SUITE: &str = "
apiVersion: admit/v1
kind: Suite
cases:
- name: a known prefix
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: team-a}}
  expect: allow
";

#[test]
fn required_tests_are_missed_by_name_and_place() {
    let folder = folder(SUITE);
    assert_eq!(admit(folder.path(), &[]).status.code(), Some(0));
    let output = admit(folder.path(), &["--require-tests"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        text(&output.stderr),
        "admit: unused.yaml:1:1: ValidatingAdmissionPolicy `unused` is reached by no case; `admit init` writes a \
         suite\n"
    );
    assert!(
        text(&output.stdout)
            .ends_with("FAIL: 0 of 1 case failed in 1 suite; 1 document reached by no case\n")
    );
}

#[test]
fn a_suite_may_come_from_standard_input() {
    let folder = folder("");
    let mut child = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["test", "-v", "-"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(SUITE.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(text(&output.stdout).contains("--- PASS: a known prefix (allow)"), "{}", text(&output.stdout));
}

#[test]
fn dots_stand_for_recursion() {
    let folder = folder(SUITE);
    for path in ["./...", ".", "..."] {
        let output = admit(folder.path(), &[path]);
        assert!(
            text(&output.stdout).ends_with("PASS: 1 case in 1 suite\n"),
            "{path}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn kubectl_runs_it_as_a_plugin() {
    let folder = TempDir::new().unwrap();
    let plugin = folder.path().join("kubectl-admit");
    symlink(env!("CARGO_BIN_EXE_admit"), &plugin).unwrap();
    let output = Command::new(&plugin).args(["test", "--help"]).output().unwrap();
    assert!(text(&output.stdout).contains("Usage: kubectl admit test"), "{}", text(&output.stdout));
}

#[test]
fn the_schema_of_suites_has_the_fields_that_are_read() {
    let output = admit(&fixture(), &["--print-schema", "suite"]);
    let schema: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (pointer, fields) in [
        ("/properties", SUITE_FIELDS),
        ("/$defs/case/properties", CASE_FIELDS),
        ("/$defs/states/properties", STATES_FIELDS),
        ("/$defs/expectation/properties", EXPECT_FIELDS),
        ("/$defs/answer/properties", ANSWER_FIELDS),
        ("/$defs/authentication/properties", AUTHENTICATION_FIELDS),
        ("/$defs/authorization/properties", AUTHORIZATION_FIELDS),
        ("/$defs/webhooks/properties", CASE_FIELDS),
        ("/$defs/called/properties", WEBHOOK_FIELDS),
        ("/$defs/devices/properties", DEVICES_FIELDS),
    ] {
        let described: BTreeSet<&str> =
            schema.pointer(pointer).unwrap().as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, fields.iter().copied().collect(), "{pointer}");
    }
}

/// A run that is ended with the test.
struct Watching(Child);

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn watching_runs_again_when_a_policy_or_a_suite_changes() {
    let folder = folder(SUITE);
    let child = Command::new(env!("CARGO_BIN_EXE_admit"))
        .args(["test", "--watch"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut watching = Watching(child);
    let mut lines = BufReader::new(watching.0.stdout.take().unwrap()).lines();
    let mut until_waiting = || -> Vec<String> {
        lines.by_ref().map(Result::unwrap).take_while(|line| line != "waiting for changes").collect()
    };
    assert!(until_waiting().iter().any(|line| line.starts_with("PASS: 1 case")));
    let policy = fs::read_to_string(folder.path().join("names.yaml")).unwrap();
    fs::write(folder.path().join("names.yaml"), policy.replace("'team-', ", "")).unwrap();
    assert!(until_waiting().iter().any(|line| line.starts_with("FAIL: 1 of 1 case")));
    fs::write(folder.path().join("a.suite.yaml"), SUITE.replace("team-a", "shared-a")).unwrap();
    assert!(until_waiting().iter().any(|line| line.starts_with("PASS: 1 case")));
}
