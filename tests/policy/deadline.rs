//! Stopping in time: what is not decided when the caller's clock runs out is an error, and failurePolicy has its say.

use std::cell::Cell;

use admit_policy::crd::{CompiledCrd, ValidateOptions, Write};
use admit_policy::{Deadline, EvalOptions, Verdict};
use serde_json::json;

use crate::support::{request, set, widgets_of, yaml};

const POLICIES: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: slow}
spec:
  failurePolicy: FAILURE
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [configmaps]}]
  validations:
  - expression: object.data.all(k, object.data.all(l, k != 'absent'))
  - expression: 'true'
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: slow}
spec: {policyName: slow, validationActions: [Deny]}
";

/// How often the clock was asked, and what each rule said.
fn decide(failure_policy: &str, stop_at: u32) -> (u32, Option<String>, Vec<Verdict>) {
    let set = set(&POLICIES.replace("FAILURE", failure_policy));
    let data: serde_json::Map<_, _> = (0..300).map(|at| (format!("k{at}"), json!("v"))).collect();
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
    let asked = Cell::new(0);
    let passed = || {
        asked.set(asked.get() + 1);
        asked.get() >= stop_at
    };
    let eval = EvalOptions { deadline: Some(Deadline::new(&passed)), ..EvalOptions::default() };
    let request = request("a", &json!({"object": object}));
    let decision = set.decide_with(&request, set.documents(), |_| true, eval);
    let verdicts =
        decision.outcomes.into_iter().flat_map(|outcome| outcome.rules).map(|rule| rule.verdict).collect();
    (asked.get(), decision.denial.map(|denial| denial.message), verdicts)
}

fn interrupted(expression: &str, denies: bool) -> Verdict {
    let message = format!("expression '{expression}' resulted in error: operation interrupted");
    Verdict::Errored { message, denies }
}

#[test]
fn evaluation_stops_within_a_hundred_rounds() {
    let (asked, denial, verdicts) = decide("Fail", 3);
    assert_eq!(asked, 4, "before the first expression, twice within it, and before the second");
    let first = "object.data.all(k, object.data.all(l, k != 'absent'))";
    assert_eq!(verdicts, [interrupted(first, true), interrupted("true", true)]);
    let denial = denial.expect("the request is denied");
    assert!(denial.ends_with("operation interrupted"), "{denial}");
}

#[test]
fn what_was_not_decided_is_let_through_where_failures_are_ignored() {
    let (_, denial, verdicts) = decide("Ignore", 1);
    assert_eq!(denial, None);
    assert_eq!(verdicts.len(), 2);
    assert!(verdicts.iter().all(|verdict| matches!(verdict, Verdict::Errored { denies: false, .. })));
}

#[test]
fn rules_of_custom_resources_stop_too() {
    let properties = "          numbers: {type: array, items: {type: integer, x-kubernetes-validations: [{rule: self > 0}]}}
";
    let crd = CompiledCrd::compile(&yaml(&widgets_of(properties))[0]).expect("the definition is right");
    // The first look is that of the validation, the next one that of the rules.
    let validated = validated(&crd, 120, 2);
    let expected = "numbers[99]: Invalid value: \"integer\": operation interrupted evaluating rule: self > 0";
    assert_eq!(validated, (2, true, vec![expected.to_owned()]), "the rules that follow are not run");
}

#[test]
fn validation_stops_before_the_rules() {
    let properties = "          numbers: {type: array, items: {type: integer}}\n";
    let crd = CompiledCrd::compile(&yaml(&widgets_of(properties))[0]).expect("the definition is right");
    let expected = ["<nil>: Internal error: operation interrupted".to_owned()];
    assert_eq!(validated(&crd, 100_000, 3), (3, true, expected.to_vec()), "nothing of the rest is looked at");
    let (asked, interrupted, errors) = validated(&crd, 10_000, u32::MAX);
    assert_eq!((interrupted, errors), (false, Vec::new()));
    assert!((80..400).contains(&asked), "once in a few hundred steps, not {asked} times");
}

#[test]
fn a_write_that_is_not_read_in_time_is_refused() {
    let properties = "          numbers: {type: array, items: {type: integer, default: 1}}\n";
    let crd = CompiledCrd::compile(&yaml(&widgets_of(properties))[0]).expect("the definition is right");
    let object = widget(1000);
    let passed = || true;
    let eval = EvalOptions { deadline: Some(Deadline::new(&passed)), ..EvalOptions::default() };
    let version = crd.version("v1").expect("there is one");
    let written = Write { crd: &crd, version, old: None, status: false, eval }.decide(&object);
    assert!(written.interrupted);
    let refusal = written.refusal(&crd).expect("it is refused");
    assert!(refusal.ends_with("is invalid: <nil>: Internal error: operation interrupted"), "{refusal}");
}

fn widget(numbers: usize) -> serde_json::Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "numbers": vec![1; numbers],
    })
}

/// How often the clock was asked, whether it was told to have ended, and the errors.
fn validated(crd: &CompiledCrd, numbers: usize, stop_at: u32) -> (u32, bool, Vec<String>) {
    let asked = Cell::new(0);
    let passed = || {
        asked.set(asked.get() + 1);
        asked.get() >= stop_at
    };
    let options = ValidateOptions {
        eval: EvalOptions { deadline: Some(Deadline::new(&passed)), ..EvalOptions::default() },
        ..ValidateOptions::default()
    };
    let version = crd.version("v1").expect("there is one");
    let found = version.validate(&widget(numbers), None, &options);
    (asked.get(), found.interrupted, found.errors.iter().map(ToString::to_string).collect())
}
