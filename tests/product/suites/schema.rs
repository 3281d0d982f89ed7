//! The published JSON Schemas of suites and their results against what is really read and printed.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{admit, fixture};
use crate::repository::root;
use crate::support::json_schema::complaints;

fn schema(of: &str) -> Value {
    serde_json::from_slice(&admit(&root(), &["--print-schema", of]).stdout).unwrap()
}

pub(super) fn assert_is_result(document: &Value) {
    let schema = schema("result");
    assert_eq!(complaints(&schema, document), Vec::<String>::new());
}

#[test]
fn results_follow_their_schema() {
    for arguments in [
        vec!["-o", "json"],
        vec!["-o", "json", "--run", "e"],
        vec!["-o", "json", "--fail-fast"],
        vec!["-o", "json", "--require-tests"],
    ] {
        let output = admit(&fixture(), &arguments);
        assert_is_result(&serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}")));
    }
    let shipped = admit(&root(), &["-o", "json", "policies"]);
    assert_is_result(&serde_json::from_slice(&shipped.stdout).unwrap());
}

#[test]
fn what_is_no_result_does_not() {
    let schema = schema("result");
    for wrong in [
        r#"{"suites": []}"#,
        r#"{"suites": [], "summary": {"cases": -1, "passed": 0, "failed": 0, "errored": 0}}"#,
        r#"{"suites": [{"file": "a", "cases": [{"name": "n"}]}], "summary": {"cases": 0, "passed": 0, "failed": 0, "errored": 0}}"#,
        r#"{"suites": [], "summary": {"cases": 0, "passed": 0, "failed": 0, "errored": 0}, "more": 1}"#,
    ] {
        let value = serde_json::from_str(wrong).unwrap();
        assert_ne!(complaints(&schema, &value), Vec::<String>::new(), "{wrong}");
    }
}

#[test]
fn shipped_suites_follow_their_schema() {
    let schema = schema("suite");
    let mut found = 0;
    for folder in fs::read_dir(root().join("policies")).unwrap() {
        for suite in suites(&folder.unwrap().path()) {
            found += 1;
            for document in admit_policy::manifest::read("", &fs::read_to_string(&suite).unwrap()).unwrap() {
                let complaints = complaints(&schema, &document.value);
                assert_eq!(complaints, Vec::<String>::new(), "{}", suite.display());
            }
        }
    }
    assert!(found > 4, "only {found} suites");
    let broken = fixture().join("broken.suite.yaml");
    let broken = admit_policy::manifest::read("", &fs::read_to_string(broken).unwrap()).unwrap();
    let one = |document: &admit_policy::manifest::Document| complaints(&schema, &document.value).is_empty();
    assert!(!broken.iter().all(one), "broken.suite.yaml follows the schema");
}

fn suites(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.to_string_lossy().ends_with(".suite.yaml")).collect()
}
