//! Changes of rules: those of known rules counted by hand, each kind seen by one suite and not by another, the cases that would
//! see them, and those that make no difference.

use admit_analysis::mutate::{
    Cases, Fate, Killing, Mutant, Narrowed, Operator, Seed, Settled, Survey, Tally, Trial, World, mutants,
};
use admit_analysis::prove::Solver;
use admit_policy::suite::crd::CrdSuite;
use admit_policy::suite::{self, Case, Suite};
use admit_policy::{LoadOptions, PolicySet, manifest};
use serde_json::{Value, json};

use crate::prove::solvers::Program;

/// A policy about Gauges with one rule, and its binding.
fn policy(expression: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "gauges"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["gauges"]},
            ]},
            "validations": [{"expression": expression, "message": "no"}],
        },
    })
}

fn binding() -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "gauges"},
        "spec": {"policyName": "gauges", "validationActions": ["Deny"]},
    })
}

fn gauge(spec: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gauge", "metadata": {"name": "a", "namespace": "b"}, "spec": spec})
}

fn set(documents: &[Value]) -> PolicySet {
    let documents: Vec<_> =
        documents.iter().map(|value| manifest::Document::unwritten("test".into(), value.clone())).collect();
    PolicySet::load_with(&documents, LoadOptions::default()).expect("documents")
}

/// A suite of Gauges: their specs, and what is expected of each.
fn suite(cases: &[(Value, &str)]) -> Value {
    let cases: Vec<Value> = cases
        .iter()
        .enumerate()
        .map(|(at, (spec, expect))| json!({"name": format!("{at}"), "object": gauge(spec), "expect": expect}))
        .collect();
    json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": cases})
}

fn seeds<'c>(cases: &'c [Case], suite: &Value) -> Vec<(&'c Case, Seed)> {
    let own = suite["cases"].as_array().expect("cases");
    cases.iter().zip(own).map(|(case, own)| (case, Seed::new(case, own, &suite["defaults"]))).collect()
}

/// What becomes of each change of the first document.
fn fates(documents: &[Value], suite: &Value) -> Vec<(Mutant, Fate)> {
    let set = set(documents);
    let read = Suite::decode(suite).expect("a suite");
    assert!(read.cases.iter().all(|case| suite::run(case, &set).passed()), "the suite passes as it is");
    let world = World::new(&set, seeds(&read.cases, suite));
    let trial = Trial::new(&documents[0], vec![Cases::World(&world)]);
    let all = mutants(&documents[0]).expect("changes");
    all.into_iter()
        .map(|mutant| {
            let (fate, tally) = trial.judge(&mutant, &|| false);
            assert!(fate == Fate::Refused || tally.run + tally.apart > 0, "{mutant:?}");
            assert!(tally.run > 0 || !matches!(fate, Fate::Killed { .. }), "{mutant:?}");
            (mutant, fate)
        })
        .collect()
}

fn told(expression: &str) -> Vec<(Operator, String)> {
    let all = mutants(&policy(expression)).expect("changes");
    all.into_iter().map(|mutant| (mutant.operator, mutant.becomes)).collect()
}

#[test]
fn changes_of_known_rules_are_those_that_a_hand_counts() {
    use Operator::{Clause, Comparison, Constant, Logic, Negation, Presence, Quantifier};
    let cases: &[(&str, &[(Operator, &str)])] = &[
        (
            "a < 3",
            &[
                (Clause, "true"),
                (Comparison, "a <= 3"),
                (Comparison, "a >= 3"),
                (Constant, "4"),
                (Constant, "2"),
            ],
        ),
        ("a", &[(Negation, "!a"), (Clause, "true")]),
        // Each side may be left out, and is negated.
        (
            "a && b",
            &[
                (Negation, "!a"),
                (Clause, "true"),
                (Clause, ""),
                (Logic, "a || b"),
                (Negation, "!b"),
                (Clause, ""),
            ],
        ),
        // A field that is there or not: true for `has()` would leave out the same.
        (
            "has(a.b) && a.b == c",
            &[
                (Negation, "!has(a.b)"),
                (Clause, "true"),
                (Presence, ""),
                (Logic, "has(a.b) || a.b == c"),
                (Clause, ""),
                (Comparison, "a.b != c"),
            ],
        ),
        ("has(a.b) == true", &[(Clause, "true"), (Presence, "true"), (Comparison, "has(a.b) != true")]),
        (
            "a.all(x, x > b)",
            &[
                (Negation, "!a.all(x, x > b)"),
                (Clause, "true"),
                (Quantifier, "a.exists(x, x > b)"),
                (Comparison, "x >= b"),
                (Comparison, "x <= b"),
            ],
        ),
        (
            "a ? b : c",
            &[
                (Negation, "!a"),
                (Clause, "true"),
                (Clause, "b"),
                (Clause, "c"),
                (Negation, "!b"),
                (Negation, "!c"),
            ],
        ),
        // Nothing is known to be above the greatest number.
        (
            "a == 9223372036854775807",
            &[(Clause, "true"), (Comparison, "a != 9223372036854775807"), (Constant, "9223372036854775806")],
        ),
    ];
    for (expression, expected) in cases {
        let mut found = told(expression);
        let mut expected: Vec<(Operator, String)> =
            expected.iter().map(|(operator, becomes)| (*operator, (*becomes).to_owned())).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{expression}");
    }
}

#[test]
fn a_chain_loses_its_clauses_one_by_one() {
    let all = mutants(&policy("a == b && c == d && e == f && g == h")).expect("changes");
    let left_out: Vec<&str> =
        all.iter().filter(|mutant| mutant.becomes.is_empty()).map(|mutant| mutant.was.as_str()).collect();
    assert_eq!(left_out, ["a == b", "c == d", "e == f", "g == h"]);
    let wholes: Vec<Value> = all.iter().map(|mutant| mutant.of(&policy("x"))).collect();
    let texts = wholes.iter().map(|whole| &whole["spec"]["validations"][0]["expression"]);
    assert!(
        texts.clone().any(|text| text == "a == b && c == d && g == h"),
        "{:?}",
        texts.collect::<Vec<_>>()
    );
}

#[test]
fn changes_stand_at_their_operators_and_parts() {
    let text = "a.all(x, x > 1) && has(b.c)";
    let all = mutants(&policy(text)).expect("changes");
    let at = |operator: Operator| {
        let mutant = all.iter().find(|mutant| mutant.operator == operator).expect("one");
        mutant.span.expect("a place").of(text)
    };
    assert!(at(Operator::Comparison).starts_with("> 1"), "{}", at(Operator::Comparison));
    assert!(at(Operator::Logic).starts_with("&& has"), "{}", at(Operator::Logic));
    assert_eq!(at(Operator::Constant), "1");
    assert_eq!(at(Operator::Presence), "has(b.c)");
    assert_eq!(at(Operator::Quantifier), "a.all(x, x > 1)");
}

/// One rule for each kind of change, a suite that sees all of that kind, and one that does not.
#[test]
fn every_kind_of_change_is_seen_by_one_suite_and_not_by_another() {
    let spec = |text: &str| serde_json::from_str::<Value>(text).expect("a spec");
    type Cases<'a> = &'a [(&'a str, &'a str)];
    let table: &[(Operator, &str, Cases<'_>, Cases<'_>)] = &[
        (
            Operator::Comparison,
            "object.spec.a <= 3",
            &[(r#"{"a": 3}"#, "allow"), (r#"{"a": 4}"#, "deny")],
            &[(r#"{"a": 2}"#, "allow"), (r#"{"a": 4}"#, "deny")],
        ),
        (
            Operator::Logic,
            "object.spec.a && object.spec.b",
            &[(r#"{"a": true, "b": false}"#, "deny")],
            &[(r#"{"a": true, "b": true}"#, "allow"), (r#"{"a": false, "b": false}"#, "deny")],
        ),
        (
            Operator::Negation,
            "!object.spec.a || object.spec.b",
            &[(r#"{"a": true, "b": false}"#, "deny")],
            &[(r#"{"a": true, "b": true}"#, "allow")],
        ),
        (
            Operator::Clause,
            "object.spec.a == 1 && object.spec.b == 1",
            &[(r#"{"a": 1, "b": 2}"#, "deny"), (r#"{"a": 2, "b": 1}"#, "deny")],
            &[(r#"{"a": 2, "b": 2}"#, "deny")],
        ),
        (
            Operator::Presence,
            "has(object.spec.a) && object.spec.a.size() < 3",
            &[("{}", "deny")],
            &[(r#"{"a": "x"}"#, "allow"), (r#"{"a": "xxx"}"#, "deny")],
        ),
        (Operator::Constant, "object.spec.a == 3", &[(r#"{"a": 3}"#, "allow")], &[(r#"{"a": 7}"#, "deny")]),
        (
            Operator::Quantifier,
            "object.spec.a.all(x, x > 0)",
            &[(r#"{"a": [0, 1]}"#, "deny")],
            &[(r#"{"a": [1]}"#, "allow"), (r#"{"a": [0]}"#, "deny")],
        ),
    ];
    for (operator, expression, seeing, blind) in table {
        let of = |cases: &[(&str, &str)]| {
            let cases: Vec<(Value, &str)> =
                cases.iter().map(|(text, expect)| (spec(text), *expect)).collect();
            let fates = fates(&[policy(expression), binding()], &suite(&cases));
            let own = fates.into_iter().filter(|(mutant, _)| mutant.operator == *operator);
            own.map(|(_, fate)| matches!(fate, Fate::Killed { .. })).collect::<Vec<bool>>()
        };
        let (seen, unseen) = (of(seeing), of(blind));
        assert!(!seen.is_empty() && seen.iter().all(|seen| *seen), "{operator:?}: {seen:?}");
        assert!(unseen.iter().any(|seen| !seen), "{operator:?}: {unseen:?}");
    }
}

/// The same of what is matched: operations, resources, selectors, actions.
#[test]
fn what_is_matched_is_changed_and_seen_too() {
    let mut policy = policy("object.spec.a == 1");
    policy["spec"]["matchConstraints"] = json!({
        "objectSelector": {"matchLabels": {"tier": "gold"}},
        "resourceRules": [
            {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["gauges", "dials"]},
        ],
    });
    let object = |kind: &str, labels: Value| {
        json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": {"name": "a", "namespace": "b", "labels": labels},
            "spec": {"a": 2}})
    };
    let gold = || json!({"tier": "gold"});
    let case =
        |name: &str, object: Value, expect: &str| json!({"name": name, "object": object, "expect": expect});
    let created = case("created", object("Gauge", gold()), "deny");
    let mut updated = case("updated", object("Gauge", gold()), "deny");
    updated["oldObject"] = object("Gauge", gold());
    let dial = case("a dial", object("Dial", gold()), "deny");
    let other = case("another tier", object("Gauge", json!({"tier": "tin"})), "unmatched");
    let of = |cases: &[&Value]| {
        let suite = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": cases});
        let fates = fates(&[policy.clone(), binding()], &suite);
        let matching = fates.into_iter().filter(|(mutant, _)| !mutant.is_of_expression());
        let told =
            matching.map(|(mutant, fate)| (mutant.operator, mutant.was, matches!(fate, Fate::Killed { .. })));
        told.collect::<Vec<_>>()
    };
    let all = of(&[&created, &updated, &dial, &other]);
    let names: Vec<(Operator, &str)> =
        all.iter().map(|(operator, was, _)| (*operator, was.as_str())).collect();
    assert_eq!(
        names,
        [
            (Operator::Operation, "CREATE"),
            (Operator::Operation, "UPDATE"),
            (Operator::Resource, "gauges"),
            (Operator::Resource, "dials"),
            (Operator::Selector, "gold"),
        ]
    );
    assert!(all.iter().all(|(.., seen)| *seen), "{all:?}");
    let seen: Vec<bool> = of(&[&created]).into_iter().map(|(.., seen)| seen).collect();
    assert_eq!(seen, [true, false, true, false, false]);

    let mut binding = binding();
    binding["spec"]["validationActions"] = json!(["Deny", "Audit"]);
    let actions = json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": [created]});
    let documents = [binding, policy];
    let fates = fates(&documents, &actions);
    let told: Vec<(&str, bool)> = fates
        .iter()
        .map(|(mutant, fate)| (mutant.was.as_str(), matches!(fate, Fate::Killed { .. })))
        .collect();
    assert_eq!(told, [("Deny", true), ("Audit", false)]);
    assert!(fates.iter().all(|(mutant, _)| mutant.operator == Operator::Action));
}

fn definition(rule: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gauges.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "gauges", "singular": "gauge", "kind": "Gauge", "listKind": "GaugeList"},
            "scope": "Namespaced",
            "versions": [
                {"name": "v1alpha1", "served": false, "storage": false, "schema": {"openAPIV3Schema": {"type": "object",
                    "x-kubernetes-validations": [{"rule": "self.metadata.name != 'old'"}]}}},
                {"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {"spec": {
                        "type": "object",
                        "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
                        "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}, "b": {"type": "boolean"}},
                    }},
                }}},
            ],
        },
    })
}

/// What is known of every change that the suite does not see.
fn settled(documents: &[Value], suite: &Value, definitions: &[&Value]) -> Vec<(Mutant, Settled)> {
    let set = set(documents);
    let read = Suite::decode(suite).expect("a suite");
    let world = World::new(&set, seeds(&read.cases, suite));
    let trial = Trial::new(&documents[0], vec![Cases::World(&world)]);
    let survey = Survey { trial: &trial, definitions, builtins: None, items: 3, tries: 1_500 };
    let mut solver = Program::installed().into_iter().next();
    let all = mutants(&documents[0]).expect("changes").into_iter();
    let survivors = all.filter(|mutant| trial.judge(mutant, &|| false).0 == Fate::Survived);
    survivors
        .map(|mutant| {
            let solver = solver.as_mut().map(|solver| solver as &mut dyn Solver);
            let settled = survey.settle(&mutant, solver, &|| false).expect("confirmed");
            (mutant, settled)
        })
        .collect()
}

fn killing(settled: &Settled) -> &Killing {
    let Settled::Killable(killing) = settled else { panic!("{settled:?}") };
    killing
}

#[test]
fn the_case_that_is_shown_sees_the_change() {
    for documents in [
        vec![policy("!has(object.spec.a) || object.spec.a < 3"), binding()],
        vec![definition("!has(self.a) || self.a < 3")],
    ] {
        let mut suite = suite(&[(json!({}), "allow")]);
        let before = settled(&documents, &suite, &[]);
        assert!(before.len() > 3, "{before:?}");
        let found: Vec<Value> = before.iter().map(|(_, settled)| killing(settled).case.clone()).collect();
        suite["cases"].as_array_mut().expect("cases").extend(found);
        let after = fates(&documents, &suite);
        let left: Vec<_> = after.iter().filter(|(_, fate)| *fate == Fate::Survived).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// What tells is beside the last of many cases, and few are tried.
#[test]
fn cases_are_looked_for_beside_all_that_there_are() {
    let documents = [policy("!has(object.spec.l) || object.spec.l.all(x, x.a < 3)"), binding()];
    let padded =
        |at: i32| (json!({"pad": (0..20).map(|key| (key * at).to_string()).collect::<Vec<_>>()}), "allow");
    let mut cases: Vec<(Value, &str)> = (1..20).map(padded).collect();
    cases.push((json!({"l": [{"a": 1}]}), "allow"));
    let suite = suite(&cases);
    let (set, read) = (set(&documents), Suite::decode(&suite).expect("a suite"));
    let world = World::new(&set, seeds(&read.cases, &suite));
    let trial = Trial::new(&documents[0], vec![Cases::World(&world)]);
    let survey = Survey { trial: &trial, definitions: &[], builtins: None, items: 3, tries: 600 };
    let all = mutants(&documents[0]).expect("changes");
    let bound = all.iter().find(|mutant| mutant.becomes == "x.a <= 3").expect("one");
    let settled = survey.settle(bound, None, &|| false).expect("no solver to contradict");
    assert_eq!(killing(&settled).case["object"]["spec"]["l"], json!([{"a": 3}]));
}

/// `a` is from 0 to 9, so that 10 is above all of it; the solver knows, and no case can tell.
#[test]
fn changes_that_make_no_difference_are_proved() {
    if Program::installed().is_empty() {
        return;
    }
    let documents = [definition("!has(self.a) || self.a < 11")];
    let suite = suite(&[(json!({}), "allow"), (json!({"a": 9}), "allow")]);
    let found = settled(&documents, &suite, &[]);
    let same: Vec<&str> = found
        .iter()
        .filter(|(_, settled)| *settled == Settled::Equivalent)
        .map(|(mutant, _)| mutant.becomes.as_str())
        .collect();
    assert_eq!(same, ["true", "self.a <= 11", "12", "10"], "{found:?}");
    // Of a policy the same, where the definition is known; else it is not.
    let known = definition("true");
    let documents = [policy("!has(object.spec.a) || object.spec.a < 11"), binding(), known.clone()];
    let found = settled(&documents, &suite, &[&known]);
    let same = found.iter().filter(|(_, settled)| *settled == Settled::Equivalent).count();
    assert!(
        same > 0 && found.iter().all(|(_, settled)| !matches!(settled, Settled::Undecided(_))),
        "{found:?}"
    );
}

#[test]
fn versions_that_are_not_served_are_not_changed() {
    let all = mutants(&definition("self.a < 3")).expect("changes");
    assert!(all.iter().all(|mutant| mutant.field.starts_with("spec.versions[1].")), "{all:?}");
    assert_eq!(all.len(), 5);
}

/// Suites in the format of the OpenShift project name no policies: they are for one version of a definition.
#[test]
fn suites_of_a_definition_see_changes_too() {
    let suite = json!({
        "name": "Gauges", "crdName": "gauges.example.com", "version": "v1",
        "tests": {"onCreate": [
            {"name": "three", "initial": "{apiVersion: example.com/v1, kind: Gauge, spec: {a: 3}}", "expectedError": "no"},
            {"name": "two", "initial": "{apiVersion: example.com/v1, kind: Gauge, spec: {a: 2}}",
             "expected": "{apiVersion: example.com/v1, kind: Gauge, spec: {a: 2}}"},
        ]},
    });
    let suite = CrdSuite::decode(&suite).expect("a suite");
    let document = definition("self.a < 3");
    let narrowed = Narrowed { file: "gauges.yaml", version: "v1", cases: suite.cases.iter().collect() };
    let trial = Trial::new(&document, vec![Cases::Narrowed(&narrowed)]);
    assert_eq!(trial.case_count(), 2);
    for mutant in mutants(&document).expect("changes") {
        let fate = trial.judge(&mutant, &|| false).0;
        assert!(matches!(fate, Fate::Killed { .. }), "{mutant:?}: {fate:?}");
    }
}

#[test]
fn what_a_server_refuses_is_no_change_and_what_is_late_is_not_judged() {
    // The bound of a list of constants is checked when the rule is stored.
    let documents = [policy("['a'][0] == object.spec.a"), binding()];
    let suite = suite(&[(json!({"a": "a"}), "allow")]);
    let found = fates(&documents, &suite);
    assert!(found.iter().any(|(_, fate)| matches!(fate, Fate::Killed { .. })), "{found:?}");
    let set = set(&documents);
    let read = Suite::decode(&suite).expect("a suite");
    let world = World::new(&set, seeds(&read.cases, &suite));
    let trial = Trial::new(&documents[0], vec![Cases::World(&world)]);
    let first = &mutants(&documents[0]).expect("changes")[0];
    assert_eq!(trial.judge(first, &|| true), (Fate::Unfinished, Tally::default()));
    let other = policy("true");
    let nothing = Trial::new(&other, Vec::new());
    assert_eq!((nothing.case_count(), nothing.judge(first, &|| false).0), (0, Fate::Survived));
}

#[test]
fn an_expression_that_is_none_is_told_with_its_place() {
    let error = mutants(&policy("a ==")).expect_err("no expression");
    assert!(error.to_string().starts_with("spec.validations[0].expression: "), "{error}");
}
