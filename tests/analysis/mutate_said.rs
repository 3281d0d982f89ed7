//! Changes to what expressions say and to what they make of objects: suites that expect it see them, others do not, and are shown
//! a case that would.

use admit_analysis::mutate::{Cases, Fate, Mutant, Operator, Seed, Settled, Survey, Trial, World, mutants};
use admit_policy::suite::{self, Suite};
use admit_policy::{LoadOptions, PolicySet, manifest};
use serde_json::{Value, json};

fn definition() -> Value {
    testing::definition(
        "gauges.example.com",
        "Gauge",
        "Namespaced",
        &json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        }}}),
    )
}

/// A policy of a kind with its binding and the definition of what it is about; `spec` is what it has beside constraints.
fn documents(kind: &str, spec: &Value) -> Vec<Value> {
    let rules = json!({"resourceRules": [
        {"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["gauges"]},
    ]});
    let mut policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "gauges"},
        "spec": spec,
    });
    policy["spec"]["matchConstraints"] = rules;
    let mut binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": format!("{kind}Binding"),
        "metadata": {"name": "gauges"},
        "spec": {"policyName": "gauges"},
    });
    if kind == "ValidatingAdmissionPolicy" {
        binding["spec"]["validationActions"] = json!(["Deny"]);
    }
    vec![policy, binding, definition()]
}

fn gauge(a: i64) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Gauge", "metadata": {"name": "a", "namespace": "b"}, "spec": {"a": a}})
}

fn suite(cases: &[(i64, Value)]) -> Value {
    let case = |(at, (a, expect)): (usize, &(i64, Value))| json!({"name": format!("{at}"), "policies": ["gauges"], "object": gauge(*a), "expect": expect});
    json!({"apiVersion": "admit/v1", "kind": "Suite", "cases": cases.iter().enumerate().map(case).collect::<Vec<_>>()})
}

/// What becomes of each change of the first document that is in a field which ends so; of those that no case sees what is known.
fn judged(documents: &[Value], suite: &Value, field: &str) -> Vec<(Mutant, Fate, Option<Settled>)> {
    let loaded: Vec<_> =
        documents.iter().map(|value| manifest::Document::unwritten("test".into(), value.clone())).collect();
    let set = PolicySet::load_with(&loaded, LoadOptions::default()).expect("documents");
    let read = Suite::decode(suite).expect("a suite");
    for case in &read.cases {
        let result = suite::run(case, &set);
        assert!(result.passed(), "{}: {:?}", case.name, result.mismatches);
    }
    let own = suite["cases"].as_array().expect("cases").iter();
    let seeds = read.cases.iter().zip(own).map(|(case, own)| (case, Seed::new(case, own, &Value::Null)));
    let world = World::new(&set, seeds);
    let trial = Trial::new(&documents[0], vec![Cases::World(&world)]);
    let survey =
        Survey { trial: &trial, definitions: &[&documents[2]], builtins: None, items: 3, tries: 1_000 };
    let all = mutants(&documents[0]).expect("changes").into_iter();
    let all = all.filter(|mutant| mutant.field.ends_with(field));
    all.map(|mutant| {
        let fate = trial.judge(&mutant, &|| false).0;
        let settled = (fate == Fate::Survived)
            .then(|| survey.settle(&mutant, None, &|| false).expect("no solver to contradict"));
        (mutant, fate, settled)
    })
    .collect()
}

/// One suite sees all changes; of the other all survive, and each is shown with a case that expects what is said.
fn seen_and_shown(documents: &[Value], seeing: &Value, blind: &Value, field: &str, part: &str) {
    let seen = judged(documents, seeing, field);
    assert!(seen.len() > 2, "{seen:?}");
    assert!(seen.iter().all(|(_, fate, _)| matches!(fate, Fate::Killed { .. })), "{seen:#?}");
    for (mutant, fate, settled) in judged(documents, blind, field) {
        let (Fate::Survived, Some(Settled::Killable(killing))) = (&fate, &settled) else {
            panic!("{mutant:?}: {fate:?}, {settled:?}")
        };
        assert!(!killing.case["expect"][part].is_null(), "{}", killing.case);
    }
}

#[test]
fn messages_that_expressions_make_are_changed() {
    let documents = documents(
        "ValidatingAdmissionPolicy",
        &json!({"validations": [{
            "expression": "object.spec.a < 3",
            "messageExpression": "object.spec.a > 5 ? 'far too much' : 'too much'",
            "message": "no",
        }]}),
    );
    let deny = |message: &str| json!({"outcome": "deny", "message": message});
    let seeing = suite(&[(5, deny("too much")), (6, deny("far too much"))]);
    let blind = suite(&[(5, json!("deny")), (6, json!("deny")), (1, json!("allow"))]);
    let field = "messageExpression";
    seen_and_shown(&documents, &seeing, &blind, field, "message");
    let all = judged(&documents, &seeing, field);
    let left_out = all.iter().filter(|(mutant, ..)| mutant.operator == Operator::Message);
    assert_eq!(left_out.count(), 1, "what is written then is another message");
}

#[test]
fn audit_annotations_are_changed() {
    let documents = documents(
        "ValidatingAdmissionPolicy",
        &json!({
            "validations": [{"expression": "object.spec.a < 3", "message": "no"}],
            "auditAnnotations": [{"key": "size", "valueExpression": "object.spec.a > 1 ? 'great' : 'small'"}],
        }),
    );
    let allow = |size: &str| json!({"outcome": "allow", "annotations": {"gauges/size": size}});
    let seeing = suite(&[(1, allow("small")), (2, allow("great"))]);
    let blind = suite(&[(1, json!("allow")), (2, json!("allow")), (3, json!("deny"))]);
    seen_and_shown(&documents, &seeing, &blind, "valueExpression", "annotations");
}

#[test]
fn mutations_are_changed() {
    let documents = documents(
        "MutatingAdmissionPolicy",
        &json!({
            "reinvocationPolicy": "Never",
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression":
                "[JSONPatch{op: 'add', path: '/spec/b', value: object.spec.a > 1 ? 7 : 9}]"}}],
        }),
    );
    let made = |b: i64| json!({"outcome": "allow", "object": {"spec": {"b": b}}});
    let seeing = suite(&[(1, made(9)), (2, made(7))]);
    let blind = suite(&[(1, json!("allow")), (2, json!("allow"))]);
    seen_and_shown(&documents, &seeing, &blind, "jsonPatch.expression", "object");
}

/// A solver knows whether requests are denied, and not what is said: what a message looks at is not proved to make no difference.
#[test]
fn what_is_said_is_not_proved() {
    let documents = documents(
        "ValidatingAdmissionPolicy",
        &json!({
            "variables": [{"name": "a", "expression": "has(object.spec.b) ? 1 : 1"}],
            "validations": [{
                "expression": "object.spec.a < 3", "messageExpression": "'no: ' + string(variables.a)", "message": "no",
            }],
        }),
    );
    let blind = suite(&[(1, json!("allow"))]);
    let found = judged(&documents, &blind, "variables[0].expression");
    let told: Vec<&String> = found
        .iter()
        .filter_map(|(_, _, settled)| match settled {
            Some(Settled::Undecided(why)) => why.first(),
            _ => None,
        })
        .collect();
    assert!(
        !told.is_empty() && told.iter().all(|why| why.ends_with("what is said is not proved")),
        "{found:?}"
    );
}
