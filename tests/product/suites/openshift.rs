//! The whole recorded corpus of suites in the OpenShift API's shape, in one run of `admit test`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use super::schema::assert_is_result;
use super::{admit, text};

#[test]
fn every_recorded_case_passes_with_the_recorded_verdict() {
    let Some(corpus) = testing::corpus("openshift-api").unwrap() else { return };
    let output = admit(&corpus, &["-o", "json", "--crds", "crds", "suites"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let recorded = verdicts(&fs::read_to_string(corpus.join("recorded.jsonl")).unwrap());
    assert_is_result(&document);
    let summary = &document["summary"];
    assert_eq!(summary["cases"], recorded.values().map(Vec::len).sum::<usize>(), "{summary}");
    assert_eq!((&summary["failed"], &summary["errored"]), (&0.into(), &0.into()), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    for suite in document["suites"].as_array().unwrap() {
        let file = suite["file"].as_str().unwrap();
        let outcomes: Vec<&str> =
            suite["cases"].as_array().unwrap().iter().map(|case| case["outcome"].as_str().unwrap()).collect();
        assert_eq!(outcomes, recorded[file], "{file}");
    }
}

/// By suite, in order of its cases: whether the last request was refused.
fn verdicts(rows: &str) -> BTreeMap<String, Vec<&'static str>> {
    let mut cases: BTreeMap<String, BTreeSet<(String, u64, &'static str)>> = BTreeMap::new();
    for row in rows.lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let last = row["steps"].as_array().unwrap().last().unwrap();
        let verdict = if last["outcome"].as_u64().unwrap() < 300 { "allow" } else { "deny" };
        let case = (row["kind"].as_str().unwrap().to_owned(), row["index"].as_u64().unwrap(), verdict);
        cases.entry(row["suite"].as_str().unwrap().to_owned()).or_default().insert(case);
    }
    let in_order = |(suite, cases): (String, BTreeSet<(String, u64, &'static str)>)| {
        (suite, cases.into_iter().map(|(_, _, verdict)| verdict).collect())
    };
    cases.into_iter().map(in_order).collect()
}
