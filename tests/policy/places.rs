//! Suites about tokens, authorizers, webhooks and devices.

use std::collections::BTreeSet;

use admit_policy::suite::{Outcome, PlaceDocuments, Suite, run_place};
use admit_policy::{Keep, LoadOptions, PolicySet, Recording, manifest};
use serde_json::{Value, json};

const SERVER: &str = include_str!("data/places/server.yaml");
const SUITE: &str = include_str!("data/places/places.suite.yaml");

fn loaded() -> (PolicySet, PlaceDocuments) {
    let documents = manifest::read("server.yaml", SERVER).expect("is read");
    let set = PolicySet::load_with(&documents, LoadOptions::default()).expect("devices are no unknown kind");
    (set, PlaceDocuments::read(documents.iter().map(|document| &document.value)).expect("documents"))
}

fn suite() -> Value {
    manifest::read("places.suite.yaml", SUITE).expect("is read").remove(0).value
}

#[test]
fn every_place_has_its_cases() {
    let (set, documents) = loaded();
    let suite = Suite::decode(&suite()).expect("a suite");
    let recording = Recording::new(Keep::COVERAGE);
    for case in &suite.places {
        let result = run_place(case, &set, &documents, Some(&recording));
        assert!(result.passed(), "{}: {result:?}", case.name);
        assert_eq!(result.outcome, case.expected(), "{}", case.name);
    }
    assert_eq!(suite.places.len(), 18);
    let evaluated: BTreeSet<_> = recording.finish().into_keys().collect();
    let all: BTreeSet<_> = documents.expressions().into_iter().map(|expression| expression.id).collect();
    assert_eq!(evaluated, all, "each is reached");
    assert_eq!(all.len(), 9);
}

/// What differs where a case of that list expects something else.
fn differences(pointer: &str, expect: Value) -> Vec<(String, String, String)> {
    let (set, documents) = loaded();
    let mut changed = suite();
    *changed.pointer_mut(&format!("{pointer}/expect")).expect("a case") = expect;
    let place = pointer.trim_start_matches('/').replacen('/', "[", 1) + "]";
    let suite = Suite::decode(&changed).expect("a suite");
    let case = suite.places.iter().find(|case| case.path == place).expect("a case");
    let result = run_place(case, &set, &documents, None);
    result.mismatches.into_iter().map(|found| (found.what.to_owned(), found.expected, found.actual)).collect()
}

#[test]
fn what_differs_is_told_part_by_part() {
    let row = |what: &str, expected: &str, actual: &str| {
        vec![(what.to_owned(), expected.to_owned(), actual.to_owned())]
    };
    assert_eq!(
        differences("/authentication/0", json!({"user": {"username": "ann", "uid": "a-1"}})),
        row("user", "username: \"ann\"", "username: \"shop:ann\"")
    );
    assert_eq!(
        differences("/authentication/4", json!({"user": {"username": "ann"}})),
        row("user", "{\"username\":\"ann\"}", "invalid bearer token")
    );
    assert_eq!(differences("/authentication/5", json!({"error": "Unauthorized"}))[0].0, "error");
    assert_eq!(
        differences("/authorization/1", json!({"authorizers": {"ours": "called", "none": "skipped"}})),
        [
            row("authorizers", "ours: called", "ours: skipped"),
            row("authorizers", "none: skipped", "there is no none; these are: ours, node, rbac"),
        ]
        .concat()
    );
    let refused = differences("/webhooks/2", json!({"webhooks": {"pods.example.com": "called"}}));
    assert!(refused[0].2.starts_with("pods.example.com: error (expression "), "{refused:?}");
    assert_eq!(
        differences("/devices/0", json!({"devices": ["gpu-0"]})),
        row("devices", "gpu-0", "gpu.example.com/node-1/gpu-0, gpu.example.com/node-1/gpu-1")
    );
    assert_eq!(
        differences("/devices/2", json!({"devices": ["gpu-1"]}))[0].0,
        "error",
        "an error is expected, or none"
    );
}

#[test]
fn cases_need_their_documents() {
    let none = PlaceDocuments::read([]).expect("nothing is wrong with nothing");
    let set = PolicySet::new(Vec::new(), Vec::new());
    let suite = Suite::decode(&suite()).expect("a suite");
    for case in suite.places.iter().filter(|case| !case.path.starts_with("devices")) {
        let result = run_place(case, &set, &none, None);
        assert_eq!(result.outcome, Outcome::Unmatched, "{}", case.name);
        assert!(result.message.ends_with("among the suite's documents"), "{}", result.message);
    }
    let twice = manifest::read("server.yaml", &format!("{SERVER}---\n{SERVER}")).expect("is read");
    let why =
        PlaceDocuments::read(twice.iter().map(|document| &document.value)).expect_err("two configurations");
    assert_eq!(
        why.to_string(),
        "there are several documents of kind AuthenticationConfiguration, and a server reads one"
    );
}

#[test]
fn mistakes_in_such_cases_are_told_with_their_places() {
    let told = |part: Value| {
        let mut suite = json!({"apiVersion": "admit/v1", "kind": "Suite"});
        json_patch::merge(&mut suite, &part);
        Suite::decode(&suite).expect_err("is wrong").to_string()
    };
    for (part, words) in [
        (
            json!({"authentication": [{"claims": {}, "expect": {"error": "a"}}]}),
            "authentication[0].name: must be specified",
        ),
        (
            json!({"authentication": [{"name": "a", "expect": {"error": "a"}}]}),
            "authentication[0]: must have either `claims`",
        ),
        (
            json!({"authentication": [{"name": "a", "claims": [], "expect": {}}]}),
            "authentication[0].claims: must be a map",
        ),
        (
            json!({"authentication": [{"name": "a", "path": "/", "expect": {}}]}),
            "authentication[0].expect: must have either `user` or `error`",
        ),
        (
            json!({"authentication": [{"name": "a", "path": "/", "expect": {"user": {"name": "a"}}}]}),
            "authentication[0].expect.user.name: is not a field here",
        ),
        (
            json!({"authorization": [{"name": "a", "expect": {}}]}),
            "authorization[0].accessReview: must be specified",
        ),
        (
            json!({"authorization": [{"name": "a", "accessReview": {"user": "a"}, "expect": {}}]}),
            "authorization[0].accessReview: must have exactly one of",
        ),
        (
            json!({"authorization": [{"name": "a", "accessReview": {"nonResourceAttributes": {}}, "expect": {"authorizers": {"a": "asked"}}}]}),
            "authorization[0].expect.authorizers.a: `asked` is not one of called, allowed, skipped, failed, denied, not reached",
        ),
        (
            json!({"webhooks": [{"name": "a", "expect": {"webhooks": {"a": "called"}}}]}),
            "webhooks[0]: must have `object`, `oldObject` or both",
        ),
        (
            json!({"webhooks": [{"name": "a", "object": {}, "expect": {}}]}),
            "webhooks[0].expect.webhooks: must say what becomes of each",
        ),
        (
            json!({"devices": [{"name": "a", "expect": {"devices": []}}]}),
            "devices[0]: must have `class`, `claim` or `selectors`",
        ),
        (
            json!({"devices": [{"name": "a", "class": "a", "expect": {}}]}),
            "devices[0].expect: must have `devices`, `error` or both",
        ),
    ] {
        let found = told(part.clone());
        assert!(found.starts_with(words), "{part}: {found}");
    }
}
