//! Rules that make much of little: they end within bounds, and what is too large is undecided by that name.

use std::fmt::Write as _;

use admit_analysis::prove::{Inquiry, Question, Side, Subject, Verdict};
use admit_apiserver::BuiltinKinds;
use admit_policy::GroupVersionKind;
use serde_json::{Value, json};

use super::solvers::Program;

/// A policy whose variables are each twice the one before.
pub(super) fn doubled(first: &str, times: usize, validation: &str) -> Value {
    let mut variables = vec![json!({"name": "v0", "expression": first})];
    for nth in 1..=times {
        let before = nth - 1;
        let expression = format!("variables.v{before} + variables.v{before}");
        variables.push(json!({"name": format!("v{nth}"), "expression": expression}));
    }
    let validation = validation.replace("LAST", &format!("variables.v{times}"));
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "doubled"},
        "spec": {
            "matchConstraints": {"resourceRules": [{"apiGroups": ["apps"], "operations": ["CREATE"],
                "apiVersions": ["v1"], "resources": ["deployments"]}]},
            "variables": variables, "validations": [{"expression": validation}],
        },
    })
}

pub(super) fn never_denies(policy: &Value, solver: &mut Program) -> Verdict {
    let kind = GroupVersionKind::new("apps", "v1", "Deployment");
    let subject = Subject::builtin(&BuiltinKinds, &kind).expect("it is built in");
    let left = Side::policy(policy, &subject).expect("a policy");
    let inquiry = Inquiry {
        question: Question::NeverDenies,
        subject: &subject,
        left: &left,
        right: None,
        that: None,
        items: 3,
    };
    inquiry.decide(Some(solver), &|| false).expect("confirmed")
}

#[test]
fn a_list_that_is_doubled_again_and_again_is_too_large() {
    for mut solver in Program::installed().into_iter().take(1) {
        let of = |times: usize| doubled("[1]", times, "!(-1 in LAST)");
        assert_eq!(never_denies(&of(4), &mut solver), Verdict::Holds { up_to: None });
        let Verdict::Undecided(why) = never_denies(&of(14), &mut solver) else { panic!("it is decided") };
        assert!(why.iter().any(|one| one.what.starts_with("too large: ")), "{why:?}");
    }
}

#[test]
fn a_text_that_is_doubled_again_and_again_is_left_to_the_solver() {
    for mut solver in Program::installed().into_iter().take(1) {
        let of = |times: usize| doubled("'abcdefghij'", times, "object.metadata.name != LAST");
        let verdict = never_denies(&of(14), &mut solver);
        assert!(!matches!(verdict, Verdict::Refuted(_)), "{verdict:?}");
        // Whoever makes more than the engine's budget allows has an error.
        match never_denies(&of(40), &mut solver) {
            Verdict::Refuted(found) => assert!(found.said[0].failed, "{found:?}"),
            Verdict::Undecided(_) => {}
            holds @ Verdict::Holds { .. } => panic!("{holds:?}"),
        }
    }
}

#[test]
fn as_many_expressions_as_a_document_holds_are_asked_about() {
    let many = |count: usize| {
        let mut expression = String::from("true");
        for nth in 0..count {
            let _ = write!(expression, " && object.spec.replicas != {nth}");
        }
        doubled("1", 0, &expression)
    };
    for mut solver in Program::installed().into_iter().take(1) {
        assert!(matches!(never_denies(&many(300), &mut solver), Verdict::Refuted(_)));
    }
}

/// Each variable names the one before it: what is needed comes first, and nothing nests as deep as the chain is long.
#[test]
fn a_long_chain_of_variables_takes_no_more_of_the_stack_than_a_short_one() {
    let chain = |links: usize, first: &str| {
        let mut policy = doubled(first, 0, &format!("variables.v{links} != -1"));
        let variables = policy["spec"]["variables"].as_array_mut().expect("variables");
        for nth in 1..=links {
            let expression = format!("variables.v{} == 7 ? 7 : 1", nth - 1);
            variables.push(json!({"name": format!("v{nth}"), "expression": expression}));
        }
        policy
    };
    for mut solver in Program::installed().into_iter().take(1) {
        // A solver may give up; what it would refute does not hold.
        let verdict = never_denies(&chain(600, "object.spec.replicas"), &mut solver);
        assert!(!matches!(verdict, Verdict::Refuted(_)), "{verdict:?}");
        let verdict = never_denies(&chain(3, "object.spec.replicas"), &mut solver);
        assert_eq!(verdict, Verdict::Holds { up_to: None });
        // What is not followed is told of once, however long the chain behind it is.
        let unknown = chain(600, "object.metadata.name.lowerAscii() == 'a' ? 7 : 1");
        assert!(!matches!(never_denies(&unknown, &mut solver), Verdict::Refuted(_)));
    }
}
